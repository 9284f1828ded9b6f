// A loading warp is whole on a target with tcgen05, and not on sm_90a.
// RUN: fp4-opt %s --fp4-set-target --pipe-elect-threads | FileCheck %s
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-elect-threads | FileCheck %s --check-prefix=THREAD

// CHECK: pipe.role load warps 5 to 6 drives [tma] whole
// THREAD: pipe.role load warps 5 to 6 drives [tma] {

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!channel = !pipe.channel<!data>
gpu.module @kernels {
  gpu.func @loads(%a: !map, %it: i32) kernel {
    %c0 = arith.constant 0 : i32
    %tiles = pipe.channel from tma to tensor depth 8 payload [0] barriers 131072 : !channel
    pipe.role load warps 5 to 6 drives [tma] {
      %tile = pipe.producer_acquire %tiles[%it] : !channel
      pipe.load %a[%c0, %c0] into %tile signals %tiles[%it] : !map, !data, !channel
      pipe.producer_commit %tiles[%it] : !channel
    }
    gpu.return
  }
}
