// RUN: fp4-opt %s -fp4-set-target -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s

// Rows of 128 bytes: 8 stores of 16 bytes at places that the swizzle gives them. The tile is handed over
// behind a fence between the proxies, and stored by one thread. The second stage's release waits until all
// bulk groups but its own have been read, and arrives for the stage before it.
!map = !pipe.tensor_map<128x64xbf16, swizzle_128B>
!tile = !pipe.shared<128x64xbf16, swizzle_128B>
!tiles = !pipe.channel<!tile>
gpu.module @m {
// CHECK-LABEL: llvm.func @two
gpu.func @two(%y: !map, %v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %n: i32, %row: i32, %col: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %staged = pipe.channel from threads(128) to bulk_store depth 2 payload [0] barriers 32768 : !tiles
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK: nvvm.mbarrier.arrive
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %slot = pipe.producer_acquire %staged[%it] : !tiles
      pipe.stage %v into %slot : tensor<128x64xbf16, #pipe.distribution<lanes>>, !tile
      pipe.producer_commit %staged[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  // CHECK: nvvm.elect.sync
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}]
  // CHECK: nvvm.cp.async.bulk.commit.group
  // CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
  // CHECK: llvm.icmp "uge"
  // CHECK: llvm.sub
  // CHECK: nvvm.mbarrier.arrive
  // CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
  pipe.role store warps 6 to 7 drives [bulk_store] {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %full = pipe.consumer_wait %staged[%it] : !tiles
      pipe.store %full, %y[%row, %col] : !tile, !map
      pipe.consumer_release %staged[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}

// One stage: its own group has been read before it is released.
// CHECK-LABEL: llvm.func @one
gpu.func @one(%y: !map, %v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %n: i32, %row: i32, %col: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %staged = pipe.channel from threads(128) to bulk_store depth 1 payload [0] barriers 16384 : !tiles
  // CHECK: nvvm.cp.async.bulk.commit.group
  // CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
  // CHECK-NOT: llvm.icmp
  // CHECK: nvvm.mbarrier.arrive
  pipe.role store warps 6 to 7 drives [bulk_store] {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %full = pipe.consumer_wait %staged[%it] : !tiles
      pipe.store %full, %y[%row, %col] : !tile, !map
      pipe.consumer_release %staged[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %slot = pipe.producer_acquire %staged[%it] : !tiles
      pipe.stage %v into %slot : tensor<128x64xbf16, #pipe.distribution<lanes>>, !tile
      pipe.producer_commit %staged[%it] : !tiles
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// Rows of 16 bytes without a swizzle, one store each, which threads of another role read: no TMA takes part.
!factors = !pipe.shared<128x4xf32>
!handed = !pipe.channel<!factors>
gpu.module @linear {
// CHECK-LABEL: llvm.func @rows
gpu.func @rows(%v: tensor<128x4xf32, #pipe.distribution<lanes>>) kernel {
  %c0 = arith.constant 0 : i32
  %handed = pipe.channel from threads(128) to threads(128) depth 1 payload [0] barriers 2048 : !handed
  // CHECK: llvm.and %{{.*}}, %{{.*}} : i32
  // CHECK-COUNT-1: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.mbarrier.arrive
  pipe.role scales warps 4 to 8 drives [threads] auxiliary {
    %slot = pipe.producer_acquire %handed[%c0] : !handed
    pipe.stage %v into %slot : tensor<128x4xf32, #pipe.distribution<lanes>>, !factors
    pipe.producer_commit %handed[%c0] : !handed
  }
  pipe.role math warps 0 to 4 drives [threads] {
    %full = pipe.consumer_wait %handed[%c0] : !handed
    pipe.consumer_release %handed[%c0] : !handed
  }
  gpu.return
}
}
