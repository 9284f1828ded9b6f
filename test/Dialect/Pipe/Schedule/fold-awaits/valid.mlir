// A wait of distance 2 behind each wait for a stage folds; one of distance 1 does not.
// RUN: fp4-opt %s --fp4-set-target --pipe-fold-awaits | FileCheck %s
// RUN: sed 's/distance 2/distance 1/' %s | fp4-opt --fp4-set-target --pipe-fold-awaits | FileCheck %s --check-prefix=APART

// CHECK: pipe.await_release {{.*}} distance 2 folded
// APART: pipe.await_release {{.*}} distance 1 :

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
gpu.module @kernels {
  gpu.func @scales() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.consumer_wait %tiles[%it] : !channel
        pipe.await_release %tiles[%it] distance 2 : !channel
        %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
