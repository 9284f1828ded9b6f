// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline -pipe-verify-sync -pipe-verify-capacity | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline="max-stages=2 max-accumulators=1" -pipe-verify-sync -pipe-verify-capacity | FileCheck %s --check-prefix=CAPPED
// RUN: sed "s/kernel attributes {/&pipe.max_stages = 2 : i64, pipe.max_accumulators = 1 : i64, /" %s \
// RUN:   | fp4-opt - -fp4-set-target -pipe-pipeline -pipe-verify-sync -pipe-verify-capacity | FileCheck %s --check-prefix=CAPPED --implicit-check-not=pipe.max
// RUN: sed "s/kernel attributes {/&pipe.max_stages = 1 : i64, pipe.alone, /" %s \
// RUN:   | fp4-opt - -fp4-set-target -pipe-pipeline -pipe-verify-sync -pipe-verify-capacity | FileCheck %s --check-prefix=ALONE --implicit-check-not=pipe.alone
// RUN: sed "s/kernel attributes {/&pipe.alone, /" %s | fp4-opt - -fp4-set-target -pipe-pipeline | FileCheck %s --implicit-check-not=pipe.alone
// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline="reserve-bytes=100000" -pipe-verify-capacity | FileCheck %s --check-prefix=RESERVE
// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline="reserve-bytes=11128" -pipe-verify-capacity | FileCheck %s --check-prefix=EXACT
// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline="reserve-bytes=11129" -pipe-verify-capacity | FileCheck %s --check-prefix=LESS

// A ragged last k tile: %blocks of 4 scale blocks exist.

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!sf = !pipe.global<128x17xf8E4M3FN, tiled_128x4>
!y = !pipe.global<128x128xf32>
!ab = !pipe.channel<!scales, !data, !data, !scales>
!accs = !pipe.channel<!acc>

// The launch asks for the shared memory.
// CHECK-LABEL: func.func @host
// CHECK: %[[BYTES:.*]] = arith.constant 221320 : i32
// CHECK: gpu.launch_func @kernels::@gemm {{.*}} dynamic_shared_memory_size %[[BYTES]]
// A kernel that is to be alone asks for so much that an SM with 233472 bytes, 1024 of which each CTA takes besides, has no
// room for two.
// ALONE: %[[BYTES:.*]] = arith.constant 115713 : i32
// ALONE: gpu.launch_func @kernels::@gemm {{.*}} dynamic_shared_memory_size %[[BYTES]]
// ALONE: gpu.func @gemm{{.*}}pipe.shared_bytes = {{[0-9][0-9][0-9][0-9][0-9]}} : i64
module attributes {gpu.container_module} {
func.func @host(%a: memref<128x144xi8>, %sf: memref<1x5x512xi8>, %y: memref<128x128xf32>, %n: index, %m: i32) {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %map = pipe.make_tensor_map %a columns 272 : memref<128x144xi8> -> !map
  %s = pipe.view %sf : memref<1x5x512xi8> -> !sf
  %g = pipe.view %y : memref<128x128xf32> -> !y
  gpu.launch_func @kernels::@gemm blocks in (%n, %c1, %c1) threads in (%c192, %c1, %c1)
      args(%map : !map, %s : !sf, %g : !y, %m : i32)
  return
}

// Swizzled tiles come first in shared memory, whatever their order in the payload, then scales, then
// barriers, then the slot. Two accumulators of 128 columns, scale tiles behind them.
// CHECK-LABEL: gpu.func @gemm
// CHECK-SAME: pipe.shared_bytes = 221320 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 221312 : i64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[TILES:.*]] = pipe.channel from tma to tensor depth 6 payload [196608, 0, 98304, 208896] barriers 221184
// CHECK: %[[ACCS:.*]] = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 221280

// CAPPED: gpu.func @gemm
// CAPPED-SAME: pipe.tmem_columns = 256
// CAPPED: pipe.channel from tma to tensor depth 2
// CAPPED: pipe.channel from tensor to threads(128) depth 1

// RESERVE: pipe.channel from tma to tensor depth 3

// Six stages take 221320 bytes: all that is left of 232448, or one more.
// EXACT: pipe.channel from tma to tensor depth 6
// LESS: pipe.channel from tma to tensor depth 5
gpu.module @kernels {
gpu.func @gemm(%a: !map, %sf: !sf, %y: !y, %tiles: i32) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %ab = pipe.channel from tma to tensor : !ab
  %accs = pipe.channel from tensor to threads(128) : !accs

  // The counter goes through both loops and starts at 0 once. The bytes are 128 rows of 128 bytes for
  // both boxes, 512 per existing scale block and operand.
  // CHECK: pipe.role load
  // CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[IT0:.*]] = %[[ZERO]]) -> (i32)
  // CHECK:   %[[INNER:.*]] = scf.for {{.*}} iter_args(%[[IT:.*]] = %[[IT0]]) -> (i32)
  // CHECK:     %[[BLOCKS:.*]] = arith.minsi
  // CHECK:     pipe.producer_acquire %[[TILES]][%[[IT]]]
  // CHECK:     %[[FIXED:.*]] = arith.constant 32768 : i32
  // CHECK:     %[[PER:.*]] = arith.constant 1024 : i32
  // CHECK:     %[[SCALES:.*]] = arith.muli %[[BLOCKS]], %[[PER]]
  // CHECK:     %[[SUM:.*]] = arith.addi %[[SCALES]], %[[FIXED]]
  // CHECK:     pipe.expect_tx %[[TILES]][%[[IT]]], %[[SUM]]
  // CHECK:     pipe.load {{.*}} signals %[[TILES]][%[[IT]]]
  // CHECK:     pipe.load {{.*}} existing %[[BLOCKS]] {{.*}} signals %[[TILES]][%[[IT]]]
  // CHECK:     pipe.producer_commit %[[TILES]][%[[IT]]]
  // CHECK:     %[[NEXT:.*]] = arith.addi %[[IT]], %{{.*}} : i32
  // CHECK:     scf.yield %[[NEXT]]
  // CHECK:   scf.yield %[[INNER]]
  pipe.role load warps 5 to 6 drives [tma] {
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      scf.for %k = %c0 to %c2 step %c1 : i32 {
        %column = arith.muli %k, %c256 : i32
        %kb = arith.muli %k, %c4 : i32
        %left = arith.subi %c5, %kb : i32
        %blocks = arith.minsi %left, %c4 : i32
        %sas, %as, %bs, %sbs = pipe.producer_acquire %ab : !ab
        pipe.load %a[%c0, %column] into %as signals %ab : !map, !data, !ab
        pipe.load %a[%c0, %column] into %bs signals %ab : !map, !data, !ab
        pipe.load %sf[%c0, %kb] existing %blocks into %sas signals %ab : !sf, !scales, !ab
        pipe.load %sf[%c0, %kb] existing %blocks into %sbs signals %ab : !sf, !scales, !ab
        pipe.producer_commit %ab : !ab
      }
    }
  }
  // Two channels, two counters: the accumulator's advances once per output tile.
  // CHECK: pipe.role mma
  // CHECK: scf.for {{.*}} iter_args(%[[K0:.*]] = %[[ZERO]], %[[T:.*]] = %[[ZERO]]) -> (i32, i32)
  // CHECK:   pipe.producer_acquire %[[ACCS]][%[[T]]]
  // CHECK:   %[[KN:.*]] = scf.for {{.*}} iter_args(%[[KIT:.*]] = %[[K0]]) -> (i32)
  // CHECK:     pipe.consumer_wait %[[TILES]][%[[KIT]]]
  // One warp multiplies and copies scales, so these have two sets, though there is room for six.
  // CHECK:     pipe.await_release %[[TILES]][%[[KIT]]] distance 2
  // CHECK:     pipe.copy_scales {{.*}} at 256 sets 2
  // CHECK:     pipe.copy_scales {{.*}} at 288 sets 2
  // CHECK:     pipe.consumer_release %[[TILES]][%[[KIT]]]
  // CHECK:   pipe.producer_commit %[[ACCS]][%[[T]]]
  // CHECK:   %[[TN:.*]] = arith.addi %[[T]]
  // CHECK:   scf.yield %[[KN]], %[[TN]]
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %acc = pipe.producer_acquire %accs : !accs
      scf.for %k = %c0 to %c2 step %c1 : i32 {
        %kb = arith.muli %k, %c4 : i32
        %left = arith.subi %c5, %kb : i32
        %blocks = arith.minsi %left, %c4 : i32
        %sas, %as, %bs, %sbs = pipe.consumer_wait %ab : !ab
        %ta = pipe.copy_scales %sas blocks %blocks : !scales -> !tscales
        %tb = pipe.copy_scales %sbs blocks %blocks : !scales -> !tscales
        %more = arith.cmpi sgt, %k, %c0 : i32
        pipe.mma %acc, %as scaled %ta, %bs scaled %tb accumulate %more existing %blocks : !acc, !data, !tscales, !data, !tscales
        pipe.consumer_release %ab : !ab
      }
      pipe.producer_commit %accs : !accs
    }
  }
  // CHECK: pipe.role epilogue
  // CHECK: scf.for {{.*}} iter_args(%[[E:.*]] = %[[ZERO]])
  // CHECK:   pipe.consumer_wait %[[ACCS]][%[[E]]]
  // CHECK:   pipe.consumer_release %[[ACCS]][%[[E]]]
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = pipe.consumer_wait %accs : !accs
      scf.for %c = %c0 to %c128 step %c64 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
        pipe.store %v, %y[%row, %c] : tensor<128x64xf32, #pipe.distribution<lanes>>, !y
      }
      pipe.consumer_release %accs : !accs
    }
  }
  gpu.return
}
}
}
