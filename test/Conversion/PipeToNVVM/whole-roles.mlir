// Roles without threads: where tcgen05 is, the whole warp waits and computes, and elects a thread for each
// instruction that must be issued once. Stages and phases are carried through its loops.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm),canonicalize)' | FileCheck %s
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm),canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=HOPPER

!x = !pipe.shared<16x64xbf16, swizzle_128B>
!map = !pipe.tensor_map<16x64xbf16, swizzle_128B>
!ch = !pipe.channel<!x>
!two = !pipe.channel<!x, !x>

gpu.module @m {
// Two channels of one loop, of different depths; a tile of work begins where the one before ended. Values that
// follow from their counters are carried through both loops, so that there is no division.
// CHECK-LABEL: llvm.func @loads
// CHECK-NOT: llvm.urem
// CHECK-NOT: llvm.udiv
// CHECK: nvvm.shfl.sync
// CHECK-NOT: nvvm.elect.sync
// CHECK: nvvm.mbarrier.try_wait
// CHECK: %[[ONE:.*]] = nvvm.elect.sync
// CHECK-NEXT: llvm.cond_br %[[ONE]]
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: %[[TWO:.*]] = nvvm.elect.sync
// CHECK-NEXT: llvm.cond_br %[[TWO]]
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: nvvm.mbarrier.try_wait
// CHECK-COUNT-2: nvvm.elect.sync
// CHECK: llvm.icmp "eq" %{{.*}}, %[[FIVE:.*]] : i32
// CHECK: llvm.select
// CHECK-NOT: llvm.urem
// CHECK-NOT: llvm.udiv
// CHECK: llvm.return

// One thread runs the role.
// HOPPER-LABEL: llvm.func @loads
// HOPPER-NOT: nvvm.shfl.sync
// HOPPER: nvvm.elect.sync
// HOPPER-NOT: nvvm.elect.sync
// HOPPER: llvm.urem
// HOPPER: llvm.return
gpu.func @loads(%map: !map, %n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to threads(128) depth 5 payload [0] barriers 32768 : !ch
  %b = pipe.channel from tma to threads(128) depth 3 payload [10240] barriers 32896 : !ch
  pipe.role load warps 4 to 5 drives [tma] {
    %last:2 = scf.for %tile = %c0 to %n step %c1 iter_args(%i = %c0, %j = %c0) -> (i32, i32) : i32 {
      %in:2 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %i, %jt = %j) -> (i32, i32) : i32 {
        %s = pipe.producer_acquire %a[%it] : !ch
        pipe.expect_tx %a[%it], %bytes : !ch
        pipe.load %map[%k, %c0] into %s signals %a[%it] : !map, !x, !ch
        pipe.producer_commit %a[%it] : !ch
        %t = pipe.producer_acquire %b[%jt] : !ch
        pipe.expect_tx %b[%jt], %bytes : !ch
        pipe.load %map[%k, %c0] into %t signals %b[%jt] : !map, !x, !ch
        pipe.producer_commit %b[%jt] : !ch
        %next = arith.addi %it, %c1 : i32
        %after = arith.addi %jt, %c1 : i32
        scf.yield %next, %after : i32, i32
      }
      scf.yield %in#0, %in#1 : i32, i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
  }
  gpu.return
}

// A role that stores does that once: one thread runs it.
// CHECK-LABEL: llvm.func @stores
// CHECK-NOT: nvvm.shfl.sync
// CHECK: %[[ELECTED:.*]] = nvvm.elect.sync
// CHECK: llvm.cond_br %[[ELECTED]]
// CHECK-NOT: nvvm.elect.sync
// CHECK: llvm.store volatile
gpu.func @stores(%p: !llvm.ptr<1>) kernel {
  %c0 = arith.constant 0 : i32
  pipe.role load warps 0 to 1 drives [tma] {
    llvm.store volatile %c0, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}

// A role that asks which thread it is, or may learn it from what is in front of the roles, has one: else lanes would part
// where one of them is elected.
// CHECK-LABEL: llvm.func @lanes
// CHECK: %[[ELECTED:.*]] = nvvm.elect.sync
// CHECK: llvm.cond_br %[[ELECTED]]
// CHECK-NOT: nvvm.elect.sync
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-NOT: nvvm.elect.sync
// CHECK: llvm.return
gpu.func @lanes(%map: !map) kernel {
  %c0 = arith.constant 0 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to threads(128) depth 4 payload [0] barriers 32768 : !ch
  pipe.role load warps 4 to 5 drives [tma] {
    %lane = gpu.lane_id
    %first = arith.constant 0 : index
    %is_first = arith.cmpi eq, %lane, %first : index
    %s = pipe.producer_acquire %a[%c0] : !ch
    scf.if %is_first {
      pipe.expect_tx %a[%c0], %bytes : !ch
      pipe.load %map[%c0, %c0] into %s signals %a[%c0] : !map, !x, !ch
    }
    pipe.producer_commit %a[%c0] : !ch
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @lanes_before
// CHECK: nvvm.elect.sync
// CHECK-NOT: nvvm.elect.sync
// CHECK: llvm.return
gpu.func @lanes_before(%map: !map) kernel {
  %c0 = arith.constant 0 : i32
  %bytes = arith.constant 2048 : i32
  %thread = gpu.thread_id x
  %at = arith.index_cast %thread : index to i32
  %a = pipe.channel from tma to threads(128) depth 4 payload [0] barriers 32768 : !ch
  pipe.role load warps 4 to 5 drives [tma] {
    %s = pipe.producer_acquire %a[%c0] : !ch
    pipe.expect_tx %a[%c0], %bytes : !ch
    pipe.load %map[%at, %c0] into %s signals %a[%c0] : !map, !x, !ch
    pipe.producer_commit %a[%c0] : !ch
  }
  gpu.return
}

// Lanes that another role elects have nothing to do with it.
// CHECK-LABEL: llvm.func @lanes_elsewhere
// CHECK: nvvm.mbarrier.try_wait
// CHECK-COUNT-2: nvvm.elect.sync
// CHECK: llvm.return
gpu.func @lanes_elsewhere(%map: !map, %p: !llvm.ptr<1>) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to threads(128) depth 1 payload [0] barriers 32768 : !ch
  pipe.role load warps 4 to 5 drives [tma] {
    %s = pipe.producer_acquire %a[%c1] : !ch
    pipe.expect_tx %a[%c1], %bytes : !ch
    pipe.load %map[%c1, %c0] into %s signals %a[%c1] : !map, !x, !ch
    pipe.producer_commit %a[%c1] : !ch
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %lane = gpu.lane_id
    %at = arith.index_cast %lane : index to i32
    llvm.store volatile %at, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}

// A role has one thread in all of its regions if it has in one.
// CHECK-LABEL: llvm.func @twice
// CHECK: nvvm.elect.sync
// CHECK-NOT: nvvm.elect.sync
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.elect.sync
// CHECK-NOT: nvvm.elect.sync
// CHECK: llvm.store volatile
gpu.func @twice(%map: !map, %p: !llvm.ptr<1>) kernel {
  %c0 = arith.constant 0 : i32
  %bytes = arith.constant 2048 : i32
  %a = pipe.channel from tma to threads(128) depth 4 payload [0] barriers 32768 : !ch
  pipe.role load warps 4 to 5 drives [tma] {
    %s = pipe.producer_acquire %a[%c0] : !ch
    pipe.expect_tx %a[%c0], %bytes : !ch
    pipe.load %map[%c0, %c0] into %s signals %a[%c0] : !map, !x, !ch
    pipe.producer_commit %a[%c0] : !ch
  }
  pipe.role load warps 4 to 5 drives [tma] {
    llvm.store volatile %c0, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
}
