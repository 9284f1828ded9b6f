// fp4 in loops and branches: each block has its islands, and bytes go through the results.

// RUN: fp4-opt %s --fp4-outline-islands | FileCheck %s
// RUN: fp4-opt %s --fp4-outline-islands \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries allow-return-allocs-from-loops function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS
// RUN: fp4-opt %s --pass-pipeline="builtin.module(fp4-outline-islands,builtin.module(fp4-compile{to=tiles}))" -o /dev/null

// CHECK-LABEL: func.func @steps(
// CHECK:         scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (tensor<64x32xf32>)
// CHECK:           %[[IN:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK:           call @steps_fp4_0(%[[IN]],
// CHECK:           linalg.fill
// BUFFERS-LABEL: func.func @steps(
// BUFFERS:         scf.for
// BUFFERS-NOT:       tensor
// BUFFERS:           call @steps_fp4_0
// BUFFERS:           linalg.fill
func.func @steps(%x: tensor<64x32xf32>, %n: index) -> tensor<64x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<64x32xf32> {
    %a = fp4.amax %y : tensor<64x32xf32> -> tensor<f32>
    %e = tensor.extract %a[] : tensor<f32>
    %z = linalg.fill ins(%e : f32) outs(%y : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.yield %z : tensor<64x32xf32>
  }
  return %r : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @choice(
// CHECK-SAME:      %[[C:.*]]: i1, %[[A:.*]]: tensor<1x1x512xi8>, %{{.*}}: tensor<100x4xf8E4M3FN>)
// CHECK-SAME:      -> tensor<1x1x512xi8>
// CHECK:         %[[R:.*]] = scf.if %[[C]] -> (tensor<1x1x512xi8>)
// CHECK:           scf.yield %[[A]] : tensor<1x1x512xi8>
// CHECK:         else
// CHECK:           call @choice_fp4_0
// CHECK:         arith.select %[[C]], %[[R]], %[[A]] : tensor<1x1x512xi8>
// BUFFERS-LABEL: func.func @choice(
// BUFFERS-SAME:      memref<1x1x512xi8>
// BUFFERS:         memref.alloc() : memref<1x1x512xi8>
func.func @choice(%c: i1, %a: tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                  %b: tensor<100x4xf8E4M3FN>)
    -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %r = scf.if %c -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
    scf.yield %a : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  } else {
    %t = fp4.swizzle_scales %b
        : tensor<100x4xf8E4M3FN> -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    scf.yield %t : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  }
  %s = arith.select %c, %r, %a : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %s : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// A loop that hands the result of an island on hands on new memory each time: one-shot-bufferize wants
// to be told that it may.
// CHECK-LABEL: func.func @until(
// CHECK:         scf.while (%{{.*}} = %{{.*}}) : (tensor<8x16xi8>) -> tensor<8x16xi8>
// CHECK:           scf.condition(%{{.*}}) %{{.*}} : tensor<8x16xi8>
// CHECK:         do {
// CHECK:           call @until_fp4_0
func.func @until(%q: tensor<8x32xf4E2M1FN>, %x: tensor<8x32xf32>, %c: i1)
    -> tensor<8x32xf4E2M1FN> {
  %r = scf.while (%p = %q) : (tensor<8x32xf4E2M1FN>) -> tensor<8x32xf4E2M1FN> {
    scf.condition(%c) %p : tensor<8x32xf4E2M1FN>
  } do {
  ^bb0(%p: tensor<8x32xf4E2M1FN>):
    %d, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
        : (tensor<8x32xf32>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>)
    scf.yield %d : tensor<8x32xf4E2M1FN>
  }
  return %r : tensor<8x32xf4E2M1FN>
}
