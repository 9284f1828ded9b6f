// Operations whose rows do not need each other are cut into rows by a host compiler's own tiling, and
// the slices of packed rows are slices of bytes.

// RUN: fp4-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s
// RUN: fp4-opt %s --transform-interpreter --canonicalize --cse --fp4-outline-islands --canonicalize \
// RUN:   | FileCheck %s --check-prefix=OUTLINED
// RUN: fp4-opt %s --transform-interpreter --canonicalize --cse --fp4-outline-islands \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" -o /dev/null

// CHECK-LABEL: func.func @quantize(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[A:.*]]: tensor<f32>)
// CHECK:         %[[M:.*]] = tensor.dim %[[X]], %c0
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[M]] step %c32
// CHECK:           %[[ROWS:.*]] = affine.min
// CHECK:           %[[TILE:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[ROWS]], 64] [1, 1]
// CHECK:           %[[Q:.*]], %[[S:.*]] = fp4.quantize %[[TILE]] amax %[[A]]
// CHECK-SAME:          -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
// CHECK:           tensor.insert_slice %[[Q]] into %{{.*}}[%[[I]], 0] [%[[ROWS]], 64] [1, 1]
// CHECK:           tensor.insert_slice %[[S]] into %{{.*}}[%[[I]], 0] [%[[ROWS]], 4] [1, 1]
// OUTLINED-LABEL: func.func @quantize(
// OUTLINED:         tensor.empty(%{{.*}}) : tensor<?x32xi8>
// OUTLINED:         scf.for
// OUTLINED:           call @quantize_fp4_0
// OUTLINED:           tensor.insert_slice %{{.*}} into %{{.*}}[%{{.*}}, 0] [%{{.*}}, 32] [1, 1] : tensor<?x32xi8> into tensor<?x32xi8>
func.func @quantize(%x: tensor<?x64xf32>, %a: tensor<f32>)
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xf32>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}

// Amaxes of rows are cut with the rows, and a scalar is not.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:      %[[Q:[a-z0-9]*]]: tensor<96x64xf4E2M1FN>, %[[S:[a-z0-9]*]]: tensor<96x4xf8E4M3FN>
// CHECK-SAME:      %[[A:[a-z0-9]*]]: tensor<96xf32>
// CHECK:         scf.for %[[I:.*]] = %c0 to %c96 step %c32
// CHECK:           tensor.extract_slice %[[Q]][%[[I]], 0] [32, 64] [1, 1]
// CHECK:           tensor.extract_slice %[[S]][%[[I]], 0] [32, 4] [1, 1]
// CHECK:           tensor.extract_slice %[[A]][%[[I]]] [32] [1]
// CHECK:           fp4.dequantize {{.*}} -> tensor<32x64xbf16>
// OUTLINED-LABEL: func.func @rows(
// OUTLINED-SAME:      %[[Q:[a-z0-9]*]]: tensor<96x32xi8>
// OUTLINED:           tensor.extract_slice %[[Q]][%{{.*}}, 0] [32, 32] [1, 1] : tensor<96x32xi8> to tensor<32x32xi8>
// OUTLINED:           call @rows_fp4_0
func.func @rows(%q: tensor<96x64xf4E2M1FN>, %s: tensor<96x4xf8E4M3FN>, %a: tensor<96xf32>)
    -> tensor<96x64xbf16> {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, per_row}
      : (tensor<96x64xf4E2M1FN>, tensor<96x4xf8E4M3FN>, tensor<96xf32>) -> tensor<96x64xbf16>
  return %y : tensor<96x64xbf16>
}

// A producer goes into the loop of its consumer.
// CHECK-LABEL: func.func @fused(
// CHECK:         scf.for
// CHECK:           %[[R:.*]] = fp4.hadamard {{.*}} -> tensor<32x64xbf16>
// CHECK:           fp4.amax %[[R]] {per_row} : tensor<32x64xbf16> -> tensor<32xf32>
// CHECK:           tensor.insert_slice %{{.*}} into %{{.*}}[%{{.*}}] [32] [1]
func.func @fused(%x: tensor<96x64xbf16>) -> tensor<96xf32> {
  %r = fp4.hadamard %x : tensor<96x64xbf16> -> tensor<96x64xbf16>
  %a = fp4.amax %r {per_row} : tensor<96x64xbf16> -> tensor<96xf32>
  return %a : tensor<96xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %ops = transform.structured.match ops{["fp4.quantize", "fp4.dequantize"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %ops tile_sizes [32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %amax = transform.structured.match ops{["fp4.amax"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %amax tile_sizes [32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
