// Bytes of tiles with several row blocks, and plans that fill a memory to its end: shared memory in
// pipeline.mlir, tensor memory here.
// RUN: fp4-opt %s -split-input-file -fp4-set-target -pipe-pipeline -pipe-verify-capacity | FileCheck %s

// A tile of 256 rows has two row blocks: 1024 bytes for each block of columns that exists.
!wide = !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!wide>
!sf = !pipe.global<256x20xf8E4M3FN, tiled_128x4>
gpu.module @kernels {
// CHECK-LABEL: gpu.func @wide
gpu.func @wide(%sf: !sf, %blocks: i32) kernel {
  %c0 = arith.constant 0 : i32
  %ab = pipe.channel from tma to tensor : !tiles
  // CHECK: pipe.producer_acquire
  // CHECK: %[[PER:.*]] = arith.constant 1024 : i32
  // CHECK: %[[BYTES:.*]] = arith.muli %{{.*}}, %[[PER]]
  // CHECK: %[[SUM:.*]] = arith.addi %[[BYTES]], %{{.*}}
  // CHECK: pipe.expect_tx %{{.*}}, %[[SUM]]
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab : !tiles
    pipe.load %sf[%c0, %c0] existing %blocks into %s signals %ab : !sf, !wide, !tiles
    pipe.producer_commit %ab : !tiles
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab : !tiles
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}

// -----

// Two accumulators of 256 columns are all of tensor memory.
!accs = !pipe.channel<!pipe.tmem<128x256xf32>>
gpu.module @kernels {
// CHECK-LABEL: gpu.func @full
// CHECK-SAME: pipe.tmem_columns = 512
// CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0]
gpu.func @full(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %accs = pipe.channel from tensor to threads(128) : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = pipe.producer_acquire %accs : !accs
      pipe.producer_commit %accs : !accs
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = pipe.consumer_wait %accs : !accs
      pipe.consumer_release %accs : !accs
    }
  }
  gpu.return
}
}
