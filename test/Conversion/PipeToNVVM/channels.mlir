// Rings of mbarriers: stage and phase from the counter, arrivals by agent, the tcgen05 fences: behind the
// last wait before tcgen05 operations, and nowhere else.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!ch = !pipe.channel<!data>
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
!y = !pipe.global<128x64xf32>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>

gpu.module @m {
// CHECK-LABEL: llvm.func @tma_to_mma
// CHECK-SAME: %[[IT:[a-z0-9]+]]: i32, %[[BYTES:.*]]: i32
gpu.func @tma_to_mma(%it: i32, %bytes: i32) kernel {
  // CHECK-DAG: %[[DEPTH:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: %[[BARS:.*]] = llvm.getelementptr inbounds %{{.*}}[98304]
  %ab = pipe.channel from tma to tensor depth 3 payload [0] barriers 98304 : !ch
  pipe.role load warps 1 to 2 drives [tma] {
    // The producer waits for parity ((it / 3) mod 2) xor 1 on empty[it mod 3], 24 bytes behind full.
    // CHECK: %[[STAGE:.*]] = llvm.urem %[[IT]], %[[DEPTH]]
    // CHECK: %[[ROUND:.*]] = llvm.udiv %[[IT]], %[[DEPTH]]
    // CHECK: %[[PHASE:.*]] = llvm.and %[[ROUND]], %{{.*}}
    // CHECK: %[[FULL:.*]] = llvm.getelementptr inbounds %[[BARS]][%[[STAGE]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i8>
    // CHECK: %[[EMPTY:.*]] = llvm.getelementptr inbounds %[[FULL]][24]
    // CHECK: %[[PARITY:.*]] = llvm.xor %[[PHASE]], %{{.*}} : i32
    // CHECK: ^[[WAIT:bb[0-9]+]]:
    // CHECK: %[[DONE:.*]] = nvvm.mbarrier.try_wait %[[EMPTY]], %[[PARITY]] : !llvm.ptr<3>, i32 -> i1
    // CHECK: %[[AGAIN:.*]] = llvm.xor %[[DONE]]
    // CHECK: llvm.cond_br %[[AGAIN]], ^[[WAIT]], ^
    // CHECK-NOT: nvvm.tcgen05.fence
    %s = pipe.producer_acquire %ab[%it] : !ch
    // CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]] : !llvm.ptr<3>, i32{{$}}
    pipe.expect_tx %ab[%it], %bytes : !ch
    // The bytes of the loads are the commit of a tma producer.
    // CHECK-NOT: nvvm.mbarrier.arrive
    pipe.producer_commit %ab[%it] : !ch
  }
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    // The consumer waits on full for the phase itself; tcgen05 operations follow.
    // CHECK: %[[PHASE2:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
    // CHECK: %[[FULL2:.*]] = llvm.getelementptr inbounds %[[BARS]]
    // CHECK: nvvm.mbarrier.try_wait %[[FULL2]], %[[PHASE2]]
    // CHECK-NOT: nvvm.tcgen05.fence
    %s = pipe.consumer_wait %ab[%it] : !ch
    // The MMAs up to those of it - 1 arrive at full[(it + 1) mod 3]: nobody waits for them twice.
    // CHECK: %[[AHEAD:.*]] = llvm.add %[[IT]], %[[ONE]] : i32
    // CHECK: %[[STAGE3:.*]] = llvm.urem %[[AHEAD]], %[[DEPTH]]
    // CHECK: %[[FULL3:.*]] = llvm.getelementptr inbounds %[[BARS]][%[[STAGE3]]]
    // CHECK-NOT: nvvm.mbarrier.try_wait
    // CHECK: nvvm.tcgen05.commit %[[FULL3]] : !llvm.ptr<3>
    pipe.await_release %ab[%it] distance 2 : !ch
    // CHECK: %[[EMPTY2:.*]] = llvm.getelementptr inbounds %{{.*}}[24]
    // CHECK: nvvm.tcgen05.commit %[[EMPTY2]] : !llvm.ptr<3>
    pipe.consumer_release %ab[%it] : !ch
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @mma_to_threads
gpu.func @mma_to_threads(%it: i32, %y: !y) kernel
    attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 64 : i64} {
  %c0 = arith.constant 0 : i32
  %acc = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  // The warp waits, and one thread of it commits.
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // CHECK-NOT: nvvm.elect.sync
    // CHECK: nvvm.mbarrier.try_wait
    // CHECK-NOT: nvvm.tcgen05.fence
    %a = pipe.producer_acquire %acc[%it] : !accs
    // CHECK: nvvm.elect.sync
    // CHECK: nvvm.tcgen05.commit
    pipe.producer_commit %acc[%it] : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: nvvm.mbarrier.try_wait
    // CHECK: nvvm.tcgen05.fence <after>
    %a = pipe.consumer_wait %acc[%it] : !accs
    // CHECK: nvvm.tcgen05.ld
    %v = pipe.read %a[%c0] : !pipe.tmem<128x64xf32> -> tensor<128x4xf32, #pipe.distribution<lanes>>
    pipe.store %v, %y[%c0, %c0] : tensor<128x4xf32, #pipe.distribution<lanes>>, !y
    // Every thread arrives, after its reads are ordered before the barrier.
    // CHECK: nvvm.tcgen05.fence <before>
    // CHECK: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<3> -> i64
    pipe.consumer_release %acc[%it] : !accs
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @threads_to_mma
gpu.func @threads_to_mma(%it: i32) kernel {
  %ab = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 32768 : !ch
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %s = pipe.producer_acquire %ab[%it] : !ch
    // Generic stores become visible to the tensor core before the arrival.
    // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    // CHECK: nvvm.mbarrier.arrive
    pipe.producer_commit %ab[%it] : !ch
  }
  gpu.return
}

// Bytes that threads put into tensor memory have arrived there before the threads say so.
// CHECK-LABEL: llvm.func @threads_to_tmem
gpu.func @threads_to_tmem(%it: i32) kernel
    attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 64 : i64} {
  %acc = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !accs
  // CHECK: nvvm.elect.sync
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %a = pipe.consumer_wait %acc[%it] : !accs
    // CHECK: nvvm.tcgen05.commit
    pipe.consumer_release %acc[%it] : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %a = pipe.producer_acquire %acc[%it] : !accs
    // CHECK: nvvm.tcgen05.wait <store>
    // CHECK-NEXT: nvvm.tcgen05.fence <before>
    // CHECK-NEXT: nvvm.mbarrier.arrive
    pipe.producer_commit %acc[%it] : !accs
  }
  gpu.return
}

// Two waits on the way to an operation, in a loop and before it: the last one has the fence, and the one
// of the next iteration is the same.
// CHECK-LABEL: llvm.func @fences
gpu.func @fences(%n: i32) kernel
    attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 65536 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 66000 : !accs
  %xs = pipe.channel from tma to tensor depth 2 payload [0] barriers 66032 : !pipe.channel<!x>
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [32768] barriers 66064 : !pipe.channel<!h>
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-NOT: nvvm.tcgen05.fence
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-NOT: nvvm.tcgen05.fence
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK: nvvm.tcgen05.mma
  // CHECK-NOT: nvvm.tcgen05.fence
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs[%c0] : !pipe.channel<!h>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = pipe.producer_acquire %acc[%i] : !accs
      %x = pipe.consumer_wait %xs[%i] : !pipe.channel<!x>
      pipe.mma %a, %x, %h : !pipe.tmem<128x64xf32>, !x, !h
      pipe.consumer_release %xs[%i] : !pipe.channel<!x>
      pipe.producer_commit %acc[%i] : !accs
    }
    pipe.consumer_release %hs[%c0] : !pipe.channel<!h>
  }
  gpu.return
}

// The last wait of a loop is before the first operation of its next turn.
// CHECK-LABEL: llvm.func @back_edge
gpu.func @back_edge(%n: i32) kernel
    attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 65536 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 66000 : !accs
  %xs = pipe.channel from tma to tensor depth 2 payload [0] barriers 66032 : !pipe.channel<!x>
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [32768] barriers 66064 : !pipe.channel<!h>
  // CHECK-COUNT-2: nvvm.mbarrier.try_wait
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK: nvvm.tcgen05.mma
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK-NOT: nvvm.tcgen05.fence
  // CHECK: llvm.return
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs[%c0] : !pipe.channel<!h>
    %a = pipe.producer_acquire %acc[%c0] : !accs
    %x = pipe.consumer_wait %xs[%c0] : !pipe.channel<!x>
    scf.for %i = %c0 to %n step %c1 : i32 {
      pipe.mma %a, %x, %h : !pipe.tmem<128x64xf32>, !x, !h
      pipe.await_release %xs[%i] distance 1 : !pipe.channel<!x>
    }
  }
  gpu.return
}

// The right twin leaves the loop after the wait, and nothing follows.
// CHECK-LABEL: llvm.func @no_back_edge
gpu.func @no_back_edge(%n: i32) kernel
    attributes {pipe.tmem_columns = 128 : i64, pipe.tmem_slot = 65536 : i64} {
  %c0 = arith.constant 0 : i32
  %acc = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 66000 : !accs
  %xs = pipe.channel from tma to tensor depth 2 payload [0] barriers 66032 : !pipe.channel<!x>
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [32768] barriers 66064 : !pipe.channel<!h>
  // CHECK: nvvm.tcgen05.mma
  // CHECK-NOT: nvvm.tcgen05.fence
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-NOT: nvvm.tcgen05.fence
  // CHECK: llvm.return
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs[%c0] : !pipe.channel<!h>
    %a = pipe.producer_acquire %acc[%c0] : !accs
    %x = pipe.consumer_wait %xs[%c0] : !pipe.channel<!x>
    pipe.mma %a, %x, %h : !pipe.tmem<128x64xf32>, !x, !h
    pipe.await_release %xs[%c0] distance 1 : !pipe.channel<!x>
  }
  gpu.return
}

// The second stage of a ring of one is filled when the first is empty.
// CHECK-LABEL: llvm.func @twice
gpu.func @twice() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [0] barriers 512
      : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  // CHECK: nvvm.tcgen05.commit
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
    pipe.consumer_release %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  }
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.mbarrier.arrive
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %h = pipe.producer_acquire %hs[%c1] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
    pipe.producer_commit %hs[%c1] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  }
  gpu.return
}

// Stages that are filled once: no wait for an empty one, and nothing that it would wait for.
// CHECK-LABEL: llvm.func @once
gpu.func @once() kernel {
  %c0 = arith.constant 0 : i32
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [0] barriers 512
      : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-NOT: nvvm.tcgen05.commit
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %h = pipe.consumer_wait %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
    pipe.consumer_release %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  }
  // CHECK-NOT: nvvm.mbarrier.try_wait
  // CHECK: nvvm.mbarrier.arrive
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %h = pipe.producer_acquire %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
    pipe.producer_commit %hs[%c0] : !pipe.channel<!pipe.shared<16x16xbf16, swizzle_32B>>
  }
  gpu.return
}
}
