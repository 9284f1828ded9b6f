// Prologue, dispatch and teardown of a kernel with roles, and its launch attributes.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!ch = !pipe.channel<!data>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>

// Dynamic shared memory is one external symbol, aligned for the 128-byte swizzle.
// CHECK: llvm.mlir.global external @fp4_dynamic_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

// A tensor map is a grid constant: prefetched and read by TMA in parameter space.
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant},
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: i32)
// CHECK-SAME: attributes {fp4.dynamic_shared_bytes = 32856 : i64, gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 192, 1, 1>}
gpu.module @m {
gpu.func @kernel(%a: !map, %y: !pipe.global<?x512xbf16>, %m: i32) kernel
    attributes {pipe.shared_bytes = 32856 : i64, pipe.tmem_columns = 256 : i64,
                pipe.tmem_slot = 32848 : i64} {
  // Thread 0 initializes: the full barriers of %ab, for whose empty ones nobody waits, then those of %acc,
  // whose empty barrier expects 128 threads; the fence makes them visible to the async proxy.
  // CHECK-DAG: %[[SHARED:.*]] = llvm.mlir.addressof @fp4_dynamic_shared
  // CHECK-DAG: %[[MANY:.*]] = llvm.mlir.constant(128 : i32)
  // CHECK-DAG: %[[USERS:.*]] = llvm.mlir.constant(160 : i32)
  // CHECK-DAG: %[[MMAWARP:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x : i32
  // CHECK: %[[QUOTIENT:.*]] = llvm.lshr %[[TID]]
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[QUOTIENT]]
  // CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[TID]]
  // CHECK: llvm.cond_br %[[FIRST]]
  // CHECK: nvvm.prefetch tensormap in_param_space, %[[MAP]] : !llvm.ptr
  // CHECK: %[[FULL0:.*]] = llvm.getelementptr inbounds %[[SHARED]][32768]
  // CHECK: nvvm.mbarrier.init %[[FULL0]], %{{.*}} : !llvm.ptr<3>, i32
  // CHECK-COUNT-2: nvvm.mbarrier.init
  // CHECK: nvvm.mbarrier.init %{{.*}}, %[[MANY]]
  // CHECK-NOT: nvvm.mbarrier.init
  // CHECK: nvvm.fence.mbarrier.init

  // Behind the barrier of the CTA the mma warp allocates. The warps that use tensor memory, and no others,
  // read the address after a barrier of their own.
  // CHECK: nvvm.barrier
  // CHECK: %[[SLOT:.*]] = llvm.getelementptr inbounds %[[SHARED]][32848]
  // CHECK: llvm.icmp "ult" %[[WARP]], %{{.*}} : i32
  // CHECK: llvm.icmp "eq" %[[WARP]], %[[MMAWARP]] : i32
  // CHECK: nvvm.tcgen05.alloc %[[SLOT]], %{{.*}} : !llvm.ptr<3>, i32
  // CHECK: nvvm.tcgen05.relinquish_alloc_permit
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %[[USERS]]
  // CHECK: %[[LOADED:.*]] = llvm.load %[[SLOT]] : !llvm.ptr<3> -> i32
  // CHECK: llvm.br ^[[USE:.*]](%[[LOADED]] : i32)
  // CHECK: ^[[USE]](%[[ANY:.*]]: i32):
  // CHECK: %[[TMEM:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[ANY]]
  %ab = pipe.channel from tma to tensor depth 2 payload [0] barriers 32768 : !ch
  %acc = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 32800 : !accs
  %c0 = arith.constant 0 : i32
  // The warp of a role runs its region. A stage that is filled once was never full before.
  // CHECK-NOT: nvvm.elect.sync
  // CHECK-NOT: nvvm.mbarrier.try_wait
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab[%c0] : !ch
  }
  // CHECK: nvvm.mbarrier.try_wait
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab[%c0] : !ch
    %t = pipe.producer_acquire %acc[%m] : !accs
  }
  // All threads of the epilogue run theirs.
  // CHECK-NOT: nvvm.elect.sync
  // CHECK: nvvm.mbarrier.try_wait
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %s = pipe.consumer_wait %acc[%c0] : !accs
  }
  // CHECK: nvvm.barrier
  // CHECK: llvm.icmp "eq" %[[WARP]], %[[MMAWARP]] : i32
  // CHECK: %[[BASE:.*]] = llvm.inttoptr %[[TMEM]] : i32 to !llvm.ptr<6>
  // CHECK: nvvm.tcgen05.dealloc %[[BASE]], %{{.*}} : !llvm.ptr<6>, i32
  // CHECK: llvm.return
  gpu.return
}
}
