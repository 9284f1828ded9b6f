// The sizes of results follow from those of operands: a tensor.dim of a result is one of an operand.
// RUN: fp4-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-SAME:  (%[[X:.*]]: tensor<?x64xbf16>
// CHECK:       %[[M:.*]] = tensor.dim %[[X]], %c0
// CHECK-NEXT:  return %[[M]], %[[M]], %[[M]], %c4 :
func.func @rows(%x: tensor<?x64xbf16>, %a: tensor<f32>) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = fp4.hadamard %x : tensor<?x64xbf16> -> tensor<?x64xbf16>
  %q, %s = fp4.quantize %h amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x4xf8E4M3FN> -> tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %u = fp4.unswizzle_scales %t
      : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<?x4xf8E4M3FN>
  %y = fp4.dequantize %q scaled %u amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xf32>
  %dq = tensor.dim %q, %c0 : tensor<?x64xf4E2M1FN>
  %dt = tensor.dim %t, %c0 : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %dy = tensor.dim %y, %c0 : tensor<?x64xf32>
  %blocks = tensor.dim %s, %c1 : tensor<?x4xf8E4M3FN>
  return %dq, %dt, %dy, %blocks : index, index, index, index
}

// The rows of the input are the columns of a columnwise output; blocks are counted up.
// CHECK-LABEL: @columns
// CHECK-SAME:  (%[[X:.*]]: tensor<?x64xbf16>
// CHECK:       %[[M:.*]] = tensor.dim %[[X]], %c0
// CHECK:       %[[B:.*]] = arith.ceildivui %[[M]], %c16
// CHECK:       return %c64, %[[M]], %[[B]] :
func.func @columns(%x: tensor<?x64xbf16>, %a: tensor<f32>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q, %s, %qt, %st = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       outputs = #fp4.outputs<both>}
      : (tensor<?x64xbf16>, tensor<f32>)
      -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>,
          tensor<64x?xf4E2M1FN>, tensor<64x?xf8E4M3FN>)
  %rows = tensor.dim %qt, %c0 : tensor<64x?xf4E2M1FN>
  %columns = tensor.dim %qt, %c1 : tensor<64x?xf4E2M1FN>
  %blocks = tensor.dim %st, %c1 : tensor<64x?xf8E4M3FN>
  return %rows, %columns, %blocks : index, index, index
}

!lhs = !fp4.scaled<nvfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<32x64xf4E2M1FN>,
                   tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: @product
// CHECK-SAME:  %[[L:[a-z0-9]*]]: tensor<?x64xf4E2M1FN>
// CHECK:       %[[M:.*]] = tensor.dim %[[L]], %c0
// CHECK-NEXT:  return %[[M]], %c32, %[[M]] :
func.func @product(%l: tensor<?x64xf4E2M1FN>,
                   %sl: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                   %r: tensor<32x64xf4E2M1FN>,
                   %sr: tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l_scaled = fp4.scaled %l, %sl : !lhs
  %r_scaled = fp4.scaled %r, %sr : !rhs
  %y = fp4.matmul %l_scaled, %r_scaled : (!lhs, !rhs) -> tensor<?x32xbf16>
  %a = fp4.amax %y {per_row} : tensor<?x32xbf16> -> tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?x32xbf16>
  %n = tensor.dim %y, %c1 : tensor<?x32xbf16>
  %amaxes = tensor.dim %a, %c0 : tensor<?xf32>
  return %m, %n, %amaxes : index, index, index
}
