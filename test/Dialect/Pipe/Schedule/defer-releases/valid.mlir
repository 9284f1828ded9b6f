// A deep ring is released behind the next MMAs; a ring of two is not, and neither is that of a CTA of 32 rows which
// shares its SM with another one.
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-defer-releases | FileCheck %s
// RUN: sed 's/depth 4/depth 2/' %s | fp4-opt --fp4-set-target=target=sm_90a --pipe-defer-releases | FileCheck %s --check-prefix=TWO
// RUN: sed 's/kernel {/kernel attributes {nvvm.minctasm = 2 : i32} {/' %s | fp4-opt --fp4-set-target=target=sm_90a --pipe-defer-releases | FileCheck %s --check-prefix=TWO

// CHECK: pipe.mma {{.*}} chain until_iteration
// CHECK: scf.if
// CHECK: pipe.consumer_release
// CHECK: scf.yield
// CHECK: scf.if
// CHECK: pipe.consumer_release
// TWO-NOT: until_iteration
// TWO-NOT: scf.if

!weights = !pipe.shared<4x4608xi8>
!x = !pipe.shared<32x256xbf16, swizzle_128B>
!channel = !pipe.channel<!weights, !x>
!acc = !pipe.fragment<64x32xf32, wgmma>
gpu.module @kernels {
  gpu.func @products(%n: i32, %more: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %tiles = pipe.channel from tma to threads(256) depth 4 payload [65536, 0] barriers 140000 : !channel
    pipe.role math warps 0 to 8 drives [tensor, threads] {
      %acc = pipe.accumulator : !acc
      %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %w, %x = pipe.consumer_wait %tiles[%it] : !channel
        pipe.mma %acc, %w, %x accumulate %more : !acc, !weights, !x
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
