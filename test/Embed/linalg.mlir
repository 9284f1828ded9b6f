// linalg around fp4: what it computes stays, what stands between becomes a function.

// RUN: fp4-opt %s --fp4-outline-islands | FileCheck %s
// RUN: fp4-opt %s --fp4-outline-islands \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS
// RUN: fp4-opt %s --pass-pipeline="builtin.module(fp4-outline-islands,builtin.module(fp4-compile{to=tiles}))" \
// RUN:   | FileCheck %s --check-prefix=TILES

// The island, and the constant that it reads.
// CHECK-LABEL: module @fp4_islands
// CHECK:       func.func @layer_fp4_0(%[[X:.*]]: tensor<?x64xbf16>,
// CHECK-SAME:      %[[W:.*]]: tensor<32x64xf4E2M1FN> {fp4.name = "weights"},
// CHECK-SAME:      %[[S:.*]]: tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// CHECK-SAME:      -> (tensor<f32>, tensor<?x32xf32>)
// CHECK:         %[[AW:.*]] = arith.constant dense<3.000000e+00> : tensor<f32>
// CHECK:         fp4.amax %[[X]]
// CHECK:         fp4.quantize
// CHECK:         fp4.swizzle_scales
// CHECK:         fp4.matmul_alpha %{{.*}}, %[[AW]]
// CHECK:         fp4.matmul
// CHECK:       module @fp4_empty
// CHECK-NOT:   fp4.
// CHECK:       func.func private @layer_fp4_0(memref<?x64xbf16>, memref<32x32xi8>, memref<1x1x512xi8>,
// CHECK-SAME:      memref<f32>, memref<?x32xf32>) attributes {llvm.emit_c_interface}
// CHECK-LABEL: func.func @layer(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<32x32xi8> {fp4.name = "weights"}, %[[S:.*]]: tensor<1x1x512xi8>,
// CHECK:         %[[NARROW:.*]] = linalg.generic
// CHECK:         %[[IN:.*]] = bufferization.to_buffer %[[NARROW]] read_only : tensor<?x64xbf16> to memref<?x64xbf16>
// CHECK:         %[[INW:.*]] = bufferization.to_buffer %[[W]] read_only : tensor<32x32xi8> to memref<32x32xi8>
// CHECK:         %[[INS:.*]] = bufferization.to_buffer %[[S]] read_only : tensor<1x1x512xi8> to memref<1x1x512xi8>
// CHECK:         %[[AMAX:.*]] = memref.alloc() : memref<f32>
// CHECK:         %[[ROWS:.*]] = tensor.dim %[[NARROW]]
// CHECK:         %[[PRODUCT:.*]] = memref.alloc(%[[ROWS]]) : memref<?x32xf32>
// CHECK:         call @layer_fp4_0(%[[IN]], %[[INW]], %[[INS]], %[[AMAX]], %[[PRODUCT]])
// CHECK:         %[[A:.*]] = bufferization.to_tensor %[[AMAX]] restrict writable : memref<f32> to tensor<f32>
// CHECK:         %[[Y:.*]] = bufferization.to_tensor %[[PRODUCT]] restrict writable
// CHECK:         linalg.sqrt ins(%[[A]] : tensor<f32>)
// CHECK:         linalg.add ins(%[[Y]], %{{.*}}

// BUFFERS-LABEL: func.func @layer(
// BUFFERS-SAME:      memref<32x32xi8> {fp4.name = "weights"}, %{{.*}}: memref<1x1x512xi8>
// BUFFERS-NOT:     tensor
// BUFFERS:         linalg.generic
// BUFFERS:         call @layer_fp4_0
// BUFFERS:         linalg.sqrt
// BUFFERS:         linalg.add

// TILES-LABEL: module @fp4_islands
// TILES-NOT:     fp4.quantize
// TILES:         func.func @layer_fp4_0(%{{.*}}: memref<?x64xbf16>, %{{.*}}: memref<32x32xi8> {fp4.name = "weights"},
// TILES-SAME:        %{{.*}}: memref<1x1x512xi8>) -> (memref<f32>, memref<?x32xf32>)
!lhs = !fp4.scaled<nvfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<32x64xf4E2M1FN>,
                   tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
module {
module @fp4_empty {} // what other modules there are stays

func.func @layer(%x: tensor<?x64xf32>, %w: tensor<32x64xf4E2M1FN> {fp4.name = "weights"},
                 %sw: tensor<32x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                 %narrow: tensor<?x64xbf16>, %bias: tensor<?x32xf32>, %scalar: tensor<f32>)
    -> (tensor<?x32xf32>, tensor<f32>) {
  %xb = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                        iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%narrow : tensor<?x64xbf16>) {
    ^bb0(%e: f32, %o: bf16):
      %t = arith.truncf %e : f32 to bf16
      linalg.yield %t : bf16
  } -> tensor<?x64xbf16>
  %aw = arith.constant dense<3.0> : tensor<f32>
  %ax = fp4.amax %xb : tensor<?x64xbf16> -> tensor<f32>
  // The operation reads a value of the island before the island is complete, and moves behind it.
  %root = linalg.sqrt ins(%ax : tensor<f32>) outs(%scalar : tensor<f32>) -> tensor<f32>
  %q, %s = fp4.quantize %xb amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  %ts = fp4.swizzle_scales %s
      : tensor<?x4xf8E4M3FN> -> tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %q_scaled = fp4.scaled %q, %ts : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled alpha %alpha : (!lhs, !rhs, tensor<f32>) -> tensor<?x32xf32>
  %r = linalg.add ins(%y, %bias : tensor<?x32xf32>, tensor<?x32xf32>)
      outs(%bias : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r, %root : tensor<?x32xf32>, tensor<f32>
}

// Foreign code between two islands: neither waits for itself.
// CHECK-LABEL: func.func @twice(
// CHECK:         call @twice_fp4_0
// CHECK:         linalg.sqrt
// CHECK:         call @twice_fp4_1
func.func @twice(%x: tensor<64x32xf32>, %d: tensor<f32>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  %root = linalg.sqrt ins(%a : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
  %alpha = fp4.matmul_alpha %a, %root : tensor<f32>, tensor<f32> -> tensor<f32>
  return %alpha : tensor<f32>
}

// Two readers of one tensor are an island, and two readers of one constant are not.
// CHECK-LABEL: func.func @shared(
// CHECK:         call @shared_fp4_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (memref<64x32xf32>, memref<f32>, memref<64x16xi8>, memref<64x1xf8E8M0FNU>) -> ()
// CHECK:         call @shared_fp4_1(
// CHECK:         call @shared_fp4_2(
func.func @shared(%x: tensor<64x32xf32>, %a: tensor<f32>, %b: tensor<f32>)
    -> (tensor<f32>, tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>, tensor<f32>, tensor<f32>) {
  %amax = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x32xf32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  %three = arith.constant dense<3.0> : tensor<f32>
  %c = fp4.matmul_alpha %a, %three : tensor<f32>, tensor<f32> -> tensor<f32>
  %d = fp4.matmul_alpha %three, %b : tensor<f32>, tensor<f32> -> tensor<f32>
  return %amax, %q, %s, %c, %d
      : tensor<f32>, tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>, tensor<f32>, tensor<f32>
}

// Islands that lie across each other: the second begins before the first, and the first ends behind
// the second.
// CHECK-LABEL: func.func @across(
// CHECK:         call @across_fp4_0(
// CHECK:         linalg.sqrt
// CHECK:         call @across_fp4_1(
// CHECK:         linalg.abs
// CHECK:         call @across_fp4_2(
// CHECK-NEXT:    bufferization.to_tensor
func.func @across(%x: tensor<64x32xf32>, %y: tensor<64x32xf32>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<64x32xf4E2M1FN>) {
  %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  %f = linalg.sqrt ins(%a : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
  %second = fp4.matmul_alpha %f, %f : tensor<f32>, tensor<f32> -> tensor<f32>
  %first = fp4.amax %y : tensor<64x32xf32> -> tensor<f32>
  %g = linalg.abs ins(%first : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
  %back = fp4.matmul_alpha %second, %g : tensor<f32>, tensor<f32> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %first
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xf32>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return %back, %q : tensor<f32>, tensor<64x32xf4E2M1FN>
}

// An operation that moves behind an island passes other operations of that island.
// CHECK-LABEL: func.func @passing(
// CHECK:         call @passing_fp4_0(
// CHECK:         call @passing_fp4_1(
// CHECK:         linalg.abs
// CHECK:         call @passing_fp4_2(
func.func @passing(%x: tensor<64x32xf32>, %y: tensor<64x32xf32>, %z: tensor<f32>, %d: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<64x32xf4E2M1FN>) {
  %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  %f = linalg.sqrt ins(%a : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
  %first = fp4.amax %y : tensor<64x32xf32> -> tensor<f32>
  %g = linalg.abs ins(%first : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
  %moved = fp4.matmul_alpha %g, %z : tensor<f32>, tensor<f32> -> tensor<f32>
  %passed = fp4.matmul_alpha %f, %z : tensor<f32>, tensor<f32> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %first
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x32xf32>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return %moved, %passed, %q : tensor<f32>, tensor<f32>, tensor<64x32xf4E2M1FN>
}

// Results that nobody reads need no call.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    return
func.func @unused(%x: tensor<64x32xf32>) {
  %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  return
}
}
