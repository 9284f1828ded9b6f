// A stage that is filled once has no empty barriers; one of a loop has.
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-elide-sync | FileCheck %s
// RUN: sed 's/producer_acquire %%tiles\[%%c0\]/producer_acquire %%tiles[%%rows]/' %s | fp4-opt --fp4-set-target=target=sm_90a --pipe-elide-sync | FileCheck %s --check-prefix=AGAIN

// CHECK: pipe.channel {{.*}} without_empty
// AGAIN-NOT: without_empty

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!in = !pipe.channel<!codes, !scales>
gpu.module @kernels {
  gpu.func @once(%rows: i32) kernel {
    %c0 = arith.constant 0 : i32
    %tiles = pipe.channel from tma to threads(128) depth 1 payload [0, 8192] barriers 9216 : !in
    pipe.role load warps 4 to 5 drives [tma] {
      %q, %s = pipe.producer_acquire %tiles[%c0] : !in
      pipe.producer_commit %tiles[%c0] : !in
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %q, %s = pipe.consumer_wait %tiles[%c0] : !in
      pipe.consumer_release %tiles[%c0] : !in
    }
    gpu.return
  }
}
