// Two warps get the MMAs and the copies; one warp keeps both.
// RUN: fp4-opt %s --fp4-set-target --pipe-split-warps | FileCheck %s
// RUN: sed 's/4 to 6/4 to 5/' %s | fp4-opt --fp4-set-target --pipe-split-warps | FileCheck %s --check-prefix=ONE
// RUN: not fp4-opt %s --fp4-set-target --pipe-expand-work --convert-pipe-to-nvvm 2>&1 | FileCheck %s --check-prefix=UNSPLIT
// UNSPLIT: error: 'pipe.role' op expects the scheduled form
// UNSPLIT: note: run pipe-schedule first

// CHECK: pipe.channel from tma to [tensor, scale_copy]
// CHECK: pipe.role mma warps 4 to 5 drives [tensor]
// CHECK-NOT: pipe.await_release
// CHECK: pipe.copy_scales %{{.*}} copied
// CHECK: pipe.role mma_scales warps 5 to 6 drives [scale_copy]
// CHECK: pipe.await_release
// CHECK-NOT: copied
// CHECK: pipe.copy_scales
// ONE: pipe.channel from tma to tensor depth
// ONE-NOT: copied

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!channel = !pipe.channel<!scales>
gpu.module @kernels {
  gpu.func @scales(%it: i32) kernel {
    %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
    pipe.role mma warps 4 to 6 drives [tensor, scale_copy] {
      %s = pipe.consumer_wait %tiles[%it] : !channel
      pipe.await_release %tiles[%it] distance 2 : !channel
      %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
      pipe.consumer_release %tiles[%it] : !channel
    }
    gpu.return
  }
}
