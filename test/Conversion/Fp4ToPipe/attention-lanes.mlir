// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// Two parts of a tile, each with a role of threads, share keys and values. Powers of the block before
// are written first; then the products of the next keys, and those of the powers, are issued.
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.for_each_work
// CHECK:   %[[Q0:.*]] = pipe.load %arg0[{{.*}}] plane %{{.*}} : {{.*}} -> !pipe.shared<128x128xbf16, swizzle_128B>
// CHECK:   %[[O0:.*]] = pipe.accumulator : !pipe.fragment<128x128xf32, lanes>
// CHECK:   %[[Q1:.*]] = pipe.load %arg0[{{.*}}] plane %{{.*}} : {{.*}} -> !pipe.shared<128x128xbf16, swizzle_128B>
// CHECK:   %[[O1:.*]] = pipe.accumulator {pipe.role = "softmax1"} : !pipe.fragment<128x128xf32, lanes>
// CHECK:   scf.for
// CHECK:     %[[P0:.*]] = pipe.write %{{.*}} {pipe.ring = "powers0"} : {{.*}} -> !pipe.tmem<128x64xbf16>
// CHECK:     %[[P1:.*]] = pipe.write %{{.*}} {pipe.ring = "powers1", pipe.role = "softmax1"} : {{.*}} -> !pipe.tmem<128x64xbf16>
// CHECK:     %[[K:.*]] = pipe.load %arg1[{{.*}}] {pipe.ring = "keys"}
// CHECK:     %[[S0:.*]] = pipe.accumulator {pipe.ring = "scores0"} : !pipe.tmem<128x64xf32>
// CHECK:     pipe.mma %[[S0]], %[[Q0]], %[[K]] :
// CHECK:     %[[S1:.*]] = pipe.accumulator {pipe.ring = "scores1"} : !pipe.tmem<128x64xf32>
// CHECK:     pipe.mma %[[S1]], %[[Q1]], %[[K]] :
// CHECK:     %[[V:.*]] = pipe.load %arg2[{{.*}}] {pipe.ring = "values"}
// CHECK:     %[[R0:.*]] = pipe.accumulator {pipe.ring = "products0"} : !pipe.tmem<128x128xf32>
// CHECK:     pipe.mma %[[R0]], %[[P0]], %[[V]] transposed :
// CHECK:     %[[R1:.*]] = pipe.accumulator {pipe.ring = "products1"} : !pipe.tmem<128x128xf32>
// CHECK:     pipe.mma %[[R1]], %[[P1]], %[[V]] transposed :
// CHECK:     %[[ADDED:.*]] = pipe.read %[[R0]][%c0_i32] :
// CHECK:     %[[BEFORE:.*]] = pipe.read %[[O0]][0]
// CHECK:     %[[SUMS:.*]] = math.fma %[[BEFORE]], %{{.*}}, %[[ADDED]]
// CHECK:     pipe.write %[[SUMS]], %[[O0]][0]
// CHECK:     pipe.read %[[S0]]
// CHECK:     pipe.reduce_rows maximum {{.*}} -> tensor<128x1xf32, #pipe.distribution<lanes>>
// CHECK:     math.exp2
// CHECK:     pipe.read %[[R1]][%c0_i32] {pipe.role = "softmax1"}
// CHECK:     pipe.read %[[S1]][%c0_i32] {pipe.role = "softmax1"}
// CHECK:   pipe.mma {{.*}} transposed :
// CHECK:   pipe.mma {{.*}} transposed :
// CHECK:   pipe.store {{.*}} heads = [16, 10, 128]
!q = tensor<1x100x20x128xbf16>
!k = tensor<1x512x2x128xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 0.125 causal : !q, !k, !k -> !q
  return %o : !q
}
