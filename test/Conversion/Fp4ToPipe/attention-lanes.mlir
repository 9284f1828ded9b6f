// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// Two parts of a tile, each with a role of threads, share keys and values. Powers of the block before
// are written first; then, part by part, the products of the next keys are issued, and those of the
// powers, which are added to sums in tensor memory. Threads scale the sums of rows whose maximum has grown by more than
// 2^8.
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.for_each_work
// CHECK:   %[[Q0:.*]] = pipe.load %arg0[{{.*}}] plane %{{.*}} : {{.*}} -> !pipe.shared<128x128xbf16, swizzle_128B>
// CHECK:   %[[Q1:.*]] = pipe.load %arg0[{{.*}}] plane %{{.*}} : {{.*}} -> !pipe.shared<128x128xbf16, swizzle_128B>
// CHECK:   scf.for
// CHECK:     %[[MORE:.*]] = arith.cmpi sgt, %{{.*}}, %c1_i32
// CHECK:     %[[P0:.*]] = pipe.write %{{.*}} {pipe.ring = "powers0"} : {{.*}} -> !pipe.tmem<128x64xbf16>
// CHECK:     %[[P1:.*]] = pipe.write %{{.*}} {pipe.ring = "powers1", pipe.role = "softmax1"} : {{.*}} -> !pipe.tmem<128x64xbf16>
// CHECK:     %[[K:.*]] = pipe.load %arg1[{{.*}}] {pipe.ring = "keys"}
// CHECK:     %[[V:.*]] = pipe.load %arg2[{{.*}}] {pipe.ring = "values"}
// CHECK:     %[[S0:.*]] = pipe.accumulator {pipe.ring = "scores0"} : !pipe.tmem<128x64xf32>
// CHECK:     pipe.mma %[[S0]], %[[Q0]], %[[K]] :
// CHECK:     %[[O0:.*]] = pipe.accumulator {pipe.kept, pipe.ring = "sums0"} : !pipe.tmem<128x128xf32>
// CHECK:     pipe.mma %[[O0]], %[[P0]], %[[V]] accumulate %[[MORE]] transposed :
// CHECK:     %[[S1:.*]] = pipe.accumulator {pipe.ring = "scores1"} : !pipe.tmem<128x64xf32>
// CHECK:     pipe.mma %[[S1]], %[[Q1]], %[[K]] :
// CHECK:     %[[O1:.*]] = pipe.accumulator {pipe.kept, pipe.ring = "sums1"} : !pipe.tmem<128x128xf32>
// CHECK:     pipe.mma %[[O1]], %[[P1]], %[[V]] accumulate %[[MORE]] transposed :
// CHECK:     pipe.read %[[S0]]
// CHECK:     pipe.reduce_rows maximum {{.*}} -> tensor<128x1xf32, #pipe.distribution<lanes>>
// CHECK:     %[[EXPONENT:.*]] = arith.mulf
// CHECK:     %[[SHRINK:.*]] = math.exp2 %[[EXPONENT]]
// CHECK:     %[[STAYS:.*]] = arith.cmpf oge, %[[EXPONENT]],
// CHECK:     arith.select %[[STAYS]]
// CHECK:     %[[FACTOR:.*]] = arith.select %[[STAYS]], %{{.*}}, %[[SHRINK]]
// CHECK:     math.exp2
// CHECK:     arith.truncf
// CHECK:     pipe.scale_rows %[[O0]] by %[[FACTOR]]
// CHECK:     pipe.read %[[S1]][%c0_i32] {pipe.role = "softmax1"}
// CHECK:     pipe.scale_rows %[[O1]] by %{{.*}} {pipe.role = "softmax1"}
// CHECK:   pipe.mma %[[LAST:acc[_0-9]*]], {{.*}} transposed :
// CHECK:   pipe.mma {{.*}} transposed :
// CHECK:   pipe.read %[[LAST]][%c0_i32] : {{.*}} -> tensor<128x64xf32
// CHECK:   pipe.store {{.*}} heads = [16, 10, 128]
// CHECK:   pipe.read %[[LAST]][%c64_i32]
!q = tensor<1x100x20x128xbf16>
!k = tensor<1x512x2x128xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 0.125 causal : !q, !k, !k -> !q
  return %o : !q
}
