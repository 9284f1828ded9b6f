// A role of two warps that multiplies and copies scales: the first one multiplies, and the second one copies. A third
// barrier of each stage says that its scales are copied.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!tiles = !pipe.channel<!data, !data, !scales, !scales>
!accs = !pipe.channel<!acc>

// Three stages from byte 110592 on: full at 0, 8 and 16, empty at 24, 32 and 40, copied at 48, 56 and 64; and one barrier
// at 72 for all copies.
// CHECK-LABEL: llvm.func @product
gpu.module @m {
gpu.func @product(%more: i1) kernel attributes {pipe.shared_bytes = 110696 : i64, pipe.tmem_columns = 256 : i64,
    pipe.tmem_slot = 110688 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 110672 : !accs
  %ab = pipe.channel from tma to tensor depth 3 payload [0, 49152, 98304, 104448] barriers 110592 : !tiles
  // One arrival at full barriers, two at empty ones: MMAs and copies release a stage. One at the last four.
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: nvvm.mbarrier.init {{.*}}, %[[ONE]]
  // CHECK-COUNT-3: nvvm.mbarrier.init {{.*}}, %[[ONE]]
  // CHECK-COUNT-3: nvvm.mbarrier.init {{.*}}, %[[TWO]]
  // CHECK-COUNT-4: nvvm.mbarrier.init {{.*}}, %[[ONE]]
  // CHECK-NOT: nvvm.mbarrier.init

  // In each turn one warp waits for scales that are copied, 48 bytes behind the full barrier. The first turn is in front of
  // the loop. The accumulator is filled once.
  // CHECK: %[[SCALES:.*]] = llvm.getelementptr {{.*}}[48]
  // CHECK: nvvm.mbarrier.try_wait %[[SCALES]]
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK-NOT: {{nvvm.mbarrier.try_wait|nvvm.tcgen05.cp}}
  // CHECK-COUNT-4: nvvm.tcgen05.mma.block_scale
  // CHECK: nvvm.tcgen05.commit
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-NOT: {{nvvm.mbarrier.try_wait|nvvm.tcgen05.cp}}
  // CHECK-COUNT-4: nvvm.tcgen05.mma.block_scale
  // CHECK-COUNT-2: nvvm.tcgen05.commit

  // The other warp waits for the data and for the set of scales. The warp arrives as soon as the copies are on their
  // way, and the stage is released when they are complete.
  // CHECK-COUNT-2: nvvm.mbarrier.try_wait
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK-NOT: nvvm.mbarrier.try_wait
  // CHECK-COUNT-8: nvvm.tcgen05.cp
  // CHECK: nvvm.tcgen05.fence <before>
  // CHECK: %[[COPIED:.*]] = llvm.getelementptr {{.*}}[48]
  // CHECK: nvvm.mbarrier.arrive %[[COPIED]]
  // CHECK: nvvm.tcgen05.commit
  // In the end it waits for all copies, which tensor memory is not freed before.
  // CHECK: %[[LAST:.*]] = llvm.getelementptr {{.*}}[110664]
  // CHECK: nvvm.tcgen05.commit %[[LAST]]
  // CHECK: nvvm.mbarrier.try_wait %[[LAST]]
  // CHECK-NOT: nvvm.tcgen05.commit
  pipe.role mma warps 4 to 6 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs[%c0] : !accs
    %n = scf.for %k = %c0 to %c7 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %a, %b, %sa, %sb = pipe.consumer_wait %ab[%it] : !tiles
      pipe.await_release %ab[%it] distance 2 : !tiles
      %ta = pipe.copy_scales %sa at 128 sets 2 : !scales -> !tscales
      %tb = pipe.copy_scales %sb at 160 sets 2 : !scales -> !tscales
      pipe.mma %acc, %a scaled %ta, %b scaled %tb accumulate %more : !acc, !data, !tscales, !data, !tscales
      pipe.consumer_release %ab[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    pipe.producer_commit %accs[%c0] : !accs
  }
  gpu.return
}
}
