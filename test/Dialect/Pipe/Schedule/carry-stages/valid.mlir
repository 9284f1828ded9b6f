// A loop carries the stages of a ring of three; rings of four need no division.
// RUN: fp4-opt %s --fp4-set-target --pipe-carry-stages | FileCheck %s
// RUN: sed 's/depth 3/depth 4/' %s | fp4-opt --fp4-set-target --pipe-carry-stages | FileCheck %s --check-prefix=FOUR

// CHECK: iter_args(%[[IT:[a-z0-9]+]] = %{{.*}}, %[[STAGE:[a-z0-9]+]] = %{{.*}}, %[[PHASE:[a-z0-9]+]] =
// CHECK-NEXT: %[[AT:.*]] = pipe.stage_of %[[IT]] at %[[STAGE]], %[[PHASE]] of 3
// CHECK-NEXT: pipe.consumer_wait %{{.*}}[%[[AT]]]
// FOUR-NOT: pipe.stage_of

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!channel = !pipe.channel<!data>
gpu.module @kernels {
  gpu.func @waits(%n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 49152 : !channel
    pipe.role mma warps 4 to 5 drives [tensor] whole {
      %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %tile = pipe.consumer_wait %tiles[%it] : !channel
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
