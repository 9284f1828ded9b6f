// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// The first block of keys is in front of the loop, and the last block of values behind it. Rings say
// that keys share a channel, and values another one. Queries are loaded behind the first keys, which
// need not wait for the end of the tile before.
// CHECK-LABEL: func.func @attention
// CHECK: pipe.make_tensor_map {{.*}} columns 512 : memref<256x512xbf16> -> !pipe.tensor_map<128x64xbf16, swizzle_128B>
// CHECK: gpu.launch_func @attention_attention_0::@kernel blocks in (%c16,
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.for_each_work %[[M:.*]], %[[N:.*]] in (%c2_i32, %c8_i32)
// CHECK:   %[[TILE:.*]] = arith.subi %c1_i32, %[[M]]
// CHECK:   %[[SUMS:.*]] = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
// CHECK:   %[[K:.*]] = pipe.load %arg1[{{.*}}] {pipe.ring = "keys"} : {{.*}} -> !pipe.shared<128x64xbf16, swizzle_128B>
// CHECK:   %[[Q:.*]] = pipe.load %arg0[{{.*}}] : {{.*}} -> !pipe.shared<128x64xbf16, swizzle_128B>
// CHECK:   %[[S:.*]] = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
// CHECK:   pipe.mma %[[S]], %[[Q]], %[[K]] :
// CHECK:   %[[SCORES:.*]] = pipe.read %[[S]][0]
// CHECK:   scf.if
// CHECK:     pipe.element_index 1
// CHECK:     pipe.element_index 0
// CHECK:     arith.select
// CHECK:   %[[MAX:.*]] = pipe.reduce_rows maximum
// CHECK:   math.exp2 {{.*}} fastmath<afn>
// CHECK:   pipe.reduce_rows add {{.*}} -> tensor<64x8xf32, #pipe.distribution<wgmma>>
// CHECK:   %[[P:.*]] = arith.truncf
// CHECK:   scf.for {{.*}} iter_args(%{{.*}} = %[[MAX]], %{{.*}} = %{{.*}}, %[[BEFORE:.*]] = %[[P]], %[[SHRINK:.*]] = %{{.*}})
// CHECK:     pipe.load %arg1[{{.*}}] {pipe.ring = "keys"}
// CHECK:     pipe.mma
// CHECK:     %[[V:.*]] = pipe.load %arg2[{{.*}}] {pipe.ring = "values"}
// CHECK:     pipe.mma %[[SUMS]], %[[BEFORE]], %[[V]] accumulate %true times(%[[SHRINK]] : tensor<64x1xf32, #pipe.distribution<wgmma>>) transposed
// CHECK-NOT: pipe.write
// CHECK:   pipe.load %arg2[{{.*}}] {pipe.ring = "values"}
// CHECK:   pipe.mma %[[SUMS]], {{.*}} transposed
// CHECK:   pipe.store %{{.*}}, %arg3[
!q = tensor<1x256x8x64xbf16>
!k = tensor<1x512x2x64xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 0.125 causal : !q, !k, !k -> !q
  return %o : !q
}
