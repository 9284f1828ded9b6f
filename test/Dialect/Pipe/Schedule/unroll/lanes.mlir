// The last sums of a loop may be those of tensor memory, which are added where they are.
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-unroll | FileCheck %s
// CHECK: pipe.promote {{.*}} : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>, f32

!e = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!sums = !pipe.fragment<64x64xf32, wgmma>
gpu.module @m {
gpu.func @k(%a: !e, %ta: !pipe.shared<64x4xf32>, %tb: !pipe.shared<1x4xf32>, %n: i32, %tm: !pipe.tmem<128x64xf32>, %f: f32) kernel {
  pipe.role math warps 0 to 4 drives [threads, tensor] {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %acc = pipe.accumulator : !sums
    %lanes = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
    scf.for %o = %c0 to %n step %c1 : i32 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        %s = pipe.accumulator : !sums
        %v = pipe.scales %ta[0], %tb block %i : !pipe.shared<64x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
        pipe.mma %s, %a, %a : !sums, !e, !e
        pipe.promote %acc, %s scaled %v at %c0 : !sums, !sums, vector<3xf32>
      }
      pipe.promote %lanes, %tm scaled %f : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>, f32
    }
  }
  gpu.return
}
}
