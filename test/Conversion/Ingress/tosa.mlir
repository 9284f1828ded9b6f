// The block-scaled operations of tosa, as fp4 operations. One GEMM serves all batches if the right side
// has one; else each batch has its own, and their rows come one after the other.

// RUN: fp4-opt %s --convert-tosa-to-fp4=recipe=ocp_ceil | FileCheck %s

// CHECK-LABEL: func.func @linear(
// CHECK:         %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]]
// CHECK:         fp4.quantize %[[X]] {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_ceil>}
// CHECK-COUNT-2: fp4.swizzle_scales
// CHECK:         fp4.matmul {{.*}} : (!mxfp4
// CHECK:         tensor.expand_shape {{.*}} output_shape [2, 48, 32]
// CHECK-NOT:     tosa.
func.func @linear(%x: tensor<2x48x64xf32> {fp4.name = "x"}, %w: tensor<1x32x64xf32> {fp4.name = "w"})
    -> (tensor<2x48x32xf32> {fp4.name = "y"}) {
  %q, %s = tosa.cast_to_block_scaled %x {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<2x48x64xf32>) -> (tensor<2x48x64xf4E2M1FN>, tensor<2x48x2xf8E8M0FNU>)
  %qw, %sw = tosa.cast_to_block_scaled %w {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<1x32x64xf32>) -> (tensor<1x32x64xf4E2M1FN>, tensor<1x32x2xf8E8M0FNU>)
  %y = tosa.matmul_t_block_scaled %q, %s, %qw, %sw {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<2x48x64xf4E2M1FN>, tensor<2x48x2xf8E8M0FNU>, tensor<1x32x64xf4E2M1FN>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<2x48x32xf32>
  return %y : tensor<2x48x32xf32>
}

// CHECK-LABEL: func.func @batches(
// CHECK:         tensor.extract_slice %{{.*}}[0, 0, 0] [1, 16, 64] [1, 1, 1]
// CHECK:         %[[Y0:.*]] = fp4.matmul
// CHECK:         tensor.extract_slice %{{.*}}[1, 0, 0] [1, 16, 64] [1, 1, 1]
// CHECK:         %[[Y1:.*]] = fp4.matmul
// CHECK:         tensor.concat dim(0) %[[Y0]], %[[Y1]]
func.func @batches(%a: tensor<2x16x64xf4E2M1FN>, %sa: tensor<2x16x2xf8E8M0FNU>,
                   %b: tensor<2x32x64xf4E2M1FN>, %sb: tensor<2x32x2xf8E8M0FNU>)
    -> (tensor<2x16x32xf32> {fp4.name = "y"}) {
  %y = tosa.matmul_t_block_scaled %a, %sa, %b, %sb {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<2x16x64xf4E2M1FN>, tensor<2x16x2xf8E8M0FNU>, tensor<2x32x64xf4E2M1FN>,
         tensor<2x32x2xf8E8M0FNU>) -> tensor<2x16x32xf32>
  return %y : tensor<2x16x32xf32>
}

// Elements of 8 bits.
// CHECK-LABEL: func.func @eight_bits(
// CHECK:         fp4.matmul {{.*}} : (!mxfp8_e5m2
func.func @eight_bits(%a: tensor<1x16x64xf8E5M2>, %sa: tensor<1x16x2xf8E8M0FNU>,
                      %b: tensor<1x32x64xf8E5M2>, %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x16x32xf32> {
  %y = tosa.matmul_t_block_scaled %a, %sa, %b, %sb {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<1x16x64xf8E5M2>, tensor<1x16x2xf8E8M0FNU>, tensor<1x32x64xf8E5M2>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x16x32xf32>
  return %y : tensor<1x16x32xf32>
}

// A vector is one row, and the rows of a matrix may be dynamic.
// CHECK-LABEL: func.func @casts(
// CHECK:         fp4.quantize %{{.*}} {format = #fp4.format<mxfp4>{{.*}} : (tensor<1x64xf32>)
// CHECK:         fp4.dequantize %{{.*}} scaled %{{.*}} {format = #fp4.format<mxfp4>} : {{.*}} -> tensor<?x64xbf16>
func.func @casts(%v: tensor<64xf32>, %d: tensor<?x64xf4E2M1FN>, %s: tensor<?x2xf8E8M0FNU>)
    -> (tensor<1x64xf4E2M1FN>, tensor<2xf8E8M0FNU>, tensor<?x64xbf16>) {
  %q, %t = tosa.cast_to_block_scaled %v {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<64xf32>) -> (tensor<64xf4E2M1FN>, tensor<2xf8E8M0FNU>)
  %m = tensor.expand_shape %q [[0, 1]] output_shape [1, 64]
      : tensor<64xf4E2M1FN> into tensor<1x64xf4E2M1FN>
  %x = tosa.cast_from_block_scaled %d, %s {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xbf16>
  return %m, %t, %x : tensor<1x64xf4E2M1FN>, tensor<2xf8E8M0FNU>, tensor<?x64xbf16>
}

// Elementwise operations, casts and reshapes beside fp4 operations are lowered, and their constants.
// CHECK-LABEL: func.func @epilogue(
// CHECK:         linalg.generic
// CHECK:         fp4.quantize
// CHECK:         fp4.matmul
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT:     tosa.
// CHECK:         return
func.func @epilogue(%x: tensor<1x48x64xf32>, %w: tensor<1x32x64xf4E2M1FN>, %sw: tensor<1x32x2xf8E8M0FNU>,
                    %bias: tensor<32xf32>) -> (tensor<48x32xbf16> {fp4.name = "y"}) {
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %x2 = tosa.mul %x, %x, %shift : (tensor<1x48x64xf32>, tensor<1x48x64xf32>, tensor<1xi8>) -> tensor<1x48x64xf32>
  %q, %s = tosa.cast_to_block_scaled %x2 {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<1x48x64xf32>) -> (tensor<1x48x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>)
  %y = tosa.matmul_t_block_scaled %q, %s, %w, %sw {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<1x48x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>, tensor<1x32x64xf4E2M1FN>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32>
  %row = tosa.const_shape {values = dense<[1, 1, 32]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %b = tosa.reshape %bias, %row : (tensor<32xf32>, !tosa.shape<3>) -> tensor<1x1x32xf32>
  %sum = tosa.add %y, %b : (tensor<1x48x32xf32>, tensor<1x1x32xf32>) -> tensor<1x48x32xf32>
  %clamped = tosa.clamp %sum {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x48x32xf32>) -> tensor<1x48x32xf32>
  %narrow = tosa.cast %clamped : (tensor<1x48x32xf32>) -> tensor<1x48x32xbf16>
  %matrix = tosa.const_shape {values = dense<[48, 32]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %z = tosa.reshape %narrow, %matrix : (tensor<1x48x32xbf16>, !tosa.shape<2>) -> tensor<48x32xbf16>
  return %z : tensor<48x32xbf16>
}

// The activation has two batches, which one GEMM serves.
// CHECK-LABEL: func.func @activation(
func.func @activation(%a: tensor<2x16x64xf4E2M1FN>, %sa: tensor<2x16x2xf8E8M0FNU>, %w: tensor<1x32x64xf4E2M1FN>,
                      %sw: tensor<1x32x2xf8E8M0FNU>, %bias: tensor<1x1x32xf32>) -> (tensor<2x16x32xf32> {fp4.name = "y"}) {
  %y = tosa.matmul_t_block_scaled %a, %sa, %w, %sw {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<2x16x64xf4E2M1FN>, tensor<2x16x2xf8E8M0FNU>, tensor<1x32x64xf4E2M1FN>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<2x16x32xf32>
  %sum = tosa.add %y, %bias : (tensor<2x16x32xf32>, tensor<1x1x32xf32>) -> tensor<2x16x32xf32>
  %z = tosa.sigmoid %sum : (tensor<2x16x32xf32>) -> tensor<2x16x32xf32>
  return %z : tensor<2x16x32xf32>
}
