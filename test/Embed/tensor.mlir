// tensor around fp4: views of packed rows belong to the island, sizes come from what it reads, and
// other views are the host's.

// RUN: fp4-opt %s --fp4-outline-islands --canonicalize --cse | FileCheck %s
// RUN: fp4-opt %s --fp4-outline-islands \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS
// RUN: fp4-opt %s --pass-pipeline="builtin.module(fp4-outline-islands,builtin.module(fp4-compile{to=tiles}))" \
// RUN:   | FileCheck %s --check-prefix=TILES

// CHECK-LABEL: func.func @experts_fp4_0(
// CHECK-SAME:      %[[Q:.*]]: tensor<3x8x64xf4E2M1FN>, %[[S:.*]]: tensor<8x4xf8E4M3FN>) -> tensor<8x64xbf16>
// CHECK:         tensor.extract_slice %[[Q]]
// CHECK:         fp4.dequantize
// TILES-LABEL: func.func @experts_fp4_0(
// TILES-SAME:      %{{.*}}: memref<3x8x32xi8>, %{{.*}}: memref<8x4xi8>) -> memref<8x64xbf16>

// CHECK-LABEL: func.func @experts(
// CHECK-SAME:      %[[Q:.*]]: tensor<3x8x32xi8>, %[[S:.*]]: tensor<24x4xf8E4M3FN>
// CHECK:         tensor.extract_slice %[[S]][8, 0] [8, 4] [1, 1]
// CHECK:         call @experts_fp4_0
// CHECK:         tensor.insert_slice
// BUFFERS-LABEL: func.func @experts(
// BUFFERS:         memref.subview
// BUFFERS:         call @experts_fp4_0(%{{.*}}, %{{.*}}, %{{.*}}) : (memref<3x8x32xi8>, memref<8x4xf8E4M3FN>, memref<8x64xbf16>) -> ()
func.func @experts(%q: tensor<3x8x64xf4E2M1FN>, %s: tensor<24x4xf8E4M3FN>,
                   %to: tensor<16x64xbf16>) -> tensor<16x64xbf16> {
  %a = arith.constant dense<2.0> : tensor<f32>
  %plane = tensor.extract_slice %q[1, 0, 0] [1, 8, 64] [1, 1, 1]
      : tensor<3x8x64xf4E2M1FN> to tensor<8x64xf4E2M1FN>
  %scales = tensor.extract_slice %s[8, 0] [8, 4] [1, 1] : tensor<24x4xf8E4M3FN> to tensor<8x4xf8E4M3FN>
  %y = fp4.dequantize %plane scaled %scales amax %a {format = #fp4.format<nvfp4>}
      : (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>, tensor<f32>) -> tensor<8x64xbf16>
  %r = tensor.insert_slice %y into %to[8, 0] [8, 64] [1, 1] : tensor<8x64xbf16> into tensor<16x64xbf16>
  return %r : tensor<16x64xbf16>
}

// A size that the host asks for needs no result; tiles are counted up from the rows.
// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[Q:.*]]: tensor<?x32xi8>
// CHECK-SAME:      -> (tensor<?x1x512xi8>, index, index, index)
// CHECK-DAG:     %[[M:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG:     %[[UNITS:.*]] = arith.ceildivui %[[M]], %c128
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG:     memref.alloc(%[[UNITS]]) : memref<?x1x512xi8>
// CHECK:         return %{{.*}}, %[[M]], %[[N]], %c64
func.func @sizes(%x: tensor<?x64xf32>, %given: tensor<?x64xf4E2M1FN>)
    -> (tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = fp4.amax %x : tensor<?x64xf32> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xf32>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x4xf8E4M3FN> -> tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %rows = tensor.dim %t, %c0 : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %given_rows = tensor.dim %given, %c0 : tensor<?x64xf4E2M1FN>
  %given_columns = tensor.dim %given, %c1 : tensor<?x64xf4E2M1FN>
  return %t, %rows, %given_rows, %given_columns
      : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, index, index, index
}

// Constants of types that only fp4 stores are bytes, here in the tiles of their layout.
// CHECK-LABEL: func.func @constants(
// CHECK-SAME:      -> (tensor<2x1xi8>, tensor<1x1x512xi8>)
// CHECK-DAG:     arith.constant dense<{{\[\[}}33], [67]]> : tensor<2x1xi8>
// CHECK-DAG:     arith.constant dense<"0x40404040{{[0-9A-F]+}}"> : tensor<1x1x512xi8>
func.func @constants()
    -> (tensor<2x2xf4E2M1FN>, tensor<33x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q = arith.constant dense<[[0.5, 1.0], [1.5, 2.0]]> : tensor<2x2xf4E2M1FN>
  %s = arith.constant dense<2.0> : tensor<33x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %s : tensor<2x2xf4E2M1FN>, tensor<33x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
