// Two k tiles in an iteration have known sets; an odd number of k tiles does not.
// RUN: fp4-opt %s --fp4-set-target --pipe-unroll | FileCheck %s
// RUN: sed 's/constant 8/constant 7/' %s | fp4-opt --fp4-set-target --pipe-unroll | FileCheck %s --check-prefix=ODD

// CHECK: sets 2 set 0
// CHECK: sets 2 set 1
// ODD-NOT: set {{[01]}} :

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
gpu.module @kernels {
  gpu.func @scales() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] whole {
      %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
        %s = pipe.consumer_wait %tiles[%it] : !channel
        %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
        pipe.consumer_release %tiles[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
