// Functions of the host: calls hand bytes on, and inlining gives larger islands.

// RUN: fp4-opt %s --fp4-outline-islands | FileCheck %s
// RUN: fp4-opt %s --fp4-outline-islands --fp4-outline-islands | FileCheck %s
// RUN: fp4-opt %s --inline --symbol-dce --fp4-outline-islands | FileCheck %s --check-prefix=INLINED
// RUN: fp4-opt %s --fp4-outline-islands \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: module @fp4_islands attributes {fp4.target = #fp4.target<sm_90a>}
// CHECK:         func.func @tile_fp4_0
// CHECK:         func.func @main_fp4_1
// INLINED-LABEL: module @fp4_islands
// INLINED:         func.func @main_fp4_0(
// INLINED-NEXT:      fp4.swizzle_scales
// INLINED-NEXT:      fp4.stack_scales
module attributes {fp4.target = #fp4.target<sm_90a>} {
// CHECK-LABEL: func.func private @tile(
// CHECK-SAME:      %{{.*}}: tensor<100x4xf8E4M3FN>) -> tensor<1x1x512xi8>
// CHECK:         call @tile_fp4_0
func.func private @tile(%s: tensor<100x4xf8E4M3FN>)
    -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %t = fp4.swizzle_scales %s
      : tensor<100x4xf8E4M3FN> -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// A name that is taken is not taken again.
func.func private @main_fp4_0() { return }

// CHECK-LABEL: func.func @main(
// CHECK:         %[[T:.*]] = call @tile(%{{.*}}) : (tensor<100x4xf8E4M3FN>) -> tensor<1x1x512xi8>
// CHECK:         bufferization.to_buffer %[[T]]
// CHECK:         call @main_fp4_1
// BUFFERS-LABEL: func.func @main(
// BUFFERS:         %[[T:.*]] = call @tile(%{{.*}}) : (memref<100x4xf8E4M3FN>) -> memref<1x1x512xi8>
// BUFFERS:         call @main_fp4_1(%[[T]], %{{.*}}) : (memref<1x1x512xi8>, memref<2x1x512xi8>) -> ()
func.func @main(%s: tensor<100x4xf8E4M3FN>)
    -> tensor<200x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  call @main_fp4_0() : () -> ()
  %t = call @tile(%s)
      : (tensor<100x4xf8E4M3FN>) -> tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %r = fp4.stack_scales %t, %t
      : (tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
      -> tensor<200x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %r : tensor<200x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Bytes go through branches.
// CHECK-LABEL: func.func @branch(
// CHECK:         cf.cond_br %{{.*}}, ^bb1(%{{.*}} : tensor<8x16xi8>), ^bb2
// CHECK:       ^bb1(%{{.*}}: tensor<8x16xi8>):
// CHECK:       ^bb2:
// CHECK:         call @branch_fp4_0
func.func @branch(%c: i1, %q: tensor<8x32xf4E2M1FN>, %x: tensor<8x32xf32>)
    -> tensor<8x32xf4E2M1FN> {
  cf.cond_br %c, ^given(%q : tensor<8x32xf4E2M1FN>), ^made
^given(%r: tensor<8x32xf4E2M1FN>):
  return %r : tensor<8x32xf4E2M1FN>
^made:
  %d, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x32xf32>) -> (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU>)
  cf.br ^given(%d : tensor<8x32xf4E2M1FN>)
}

// No fp4 operation, and yet 512 bytes of scales and two elements per byte; names of dimensions go,
// because the bytes have others.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:      %{{.*}}: tensor<1x1x512xi8> {fp4.name = "s"}, %{{.*}}: tensor<8x16xi8>)
// BUFFERS-LABEL: func.func @forward(
// BUFFERS-SAME:      %{{.*}}: memref<1x1x512xi8> {fp4.name = "s"}, %{{.*}}: memref<8x16xi8>
// BUFFERS-SAME:      -> (memref<1x1x512xi8>, memref<8x16xi8>)
func.func @forward(%s: tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
                       {fp4.name = "s", fp4.dims = ["M", "K/16"]},
                   %q: tensor<8x32xf4E2M1FN>)
    -> (tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x32xf4E2M1FN>) {
  return %s, %q : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x32xf4E2M1FN>
}
}
