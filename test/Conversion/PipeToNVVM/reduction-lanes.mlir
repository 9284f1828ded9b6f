// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s
// Sums of the accumulators of two CTAs: a thread reads the 8 columns that the other CTA adds and sends them there,
// with stores that count their bytes on the barrier of that CTA. The thread reads its own columns last, and adds from
// the first CTA to the last, its own from registers in their place.

// CHECK-LABEL: llvm.func @join
// The barriers count the 4 warps of the CTA, which announce bytes, and those of both CTAs that add.
// CHECK-DAG: %[[OWN:.*]] = llvm.mlir.constant(4 : i32)
// CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[OWN]] : !llvm.ptr<3>, i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ALL]] : !llvm.ptr<3>, i32
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.mbarrier.try_wait {{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK: nvvm.tcgen05.ld {{.*}}shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>{{.*}}vector<8xi32>
// CHECK: tcgen05.wait::ld
// CHECK-COUNT-2: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32
// CHECK-NOT: st.async
// CHECK: nvvm.tcgen05.ld
// CHECK: tcgen05.wait::ld
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.mbarrier.try_wait
// CHECK: %[[IS_FIRST:.*]] = llvm.icmp "eq" %[[PLACE:.*]], %{{.*}} : i32
// CHECK: %[[SENT:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[FIRST:.*]] = llvm.select %[[IS_FIRST]], %[[KEPT:.*]], %[[SENT]] : i1, vector<4xf32>
// CHECK: %[[IS_SECOND:.*]] = llvm.icmp "eq" %[[PLACE]], %{{.*}} : i32
// CHECK: %[[OTHER:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[SECOND:.*]] = llvm.select %[[IS_SECOND]], %[[KEPT2:.*]], %[[OTHER]] : i1, vector<4xf32>
// CHECK: llvm.fadd %[[FIRST]], %[[SECOND]] : vector<4xf32>

// The last of three CTAs adds no columns: it waits for none, and nobody sends it any.
// CHECK-LABEL: llvm.func @three
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: llvm.icmp "ult" %{{.*}}, %[[TWO]] : i32
// CHECK: st.async
// CHECK: llvm.icmp "ult" %{{.*}}, %[[TWO]] : i32
// CHECK: st.async
// CHECK: llvm.icmp "ult" %{{.*}}, %[[TWO]] : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx

!acc = !pipe.tmem<128x16xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @join(%y: !pipe.global<128x16xf32>) kernel attributes {known_block_size = array<i32: 160, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 8224 : i64, pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 8216 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 8192 : !accs
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.consumer_wait %accs[%c0] : !accs
    %v = pipe.reduce %acc at 4096 : !acc -> tensor<128x8xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs[%c0] : !accs
    pipe.store %v, %y[%c0, %c0] : tensor<128x8xf32, #pipe.distribution<lanes>>, !pipe.global<128x16xf32>
  }
  pipe.role mma warps 4 to 5 drives [tensor] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.producer_acquire %accs[%c0] : !accs
    pipe.producer_commit %accs[%c0] : !accs
  }
  gpu.return
}

gpu.func @three(%y: !pipe.global<128x16xf32>) kernel attributes {known_block_size = array<i32: 160, 1, 1>,
    known_cluster_size = array<i32: 3, 1, 1>, pipe.shared_bytes = 16416 : i64, pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 16408 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 16384 : !accs
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.consumer_wait %accs[%c0] : !accs
    %v = pipe.reduce %acc at 4096 : !acc -> tensor<128x8xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs[%c0] : !accs
    pipe.store %v, %y[%c0, %c0] : tensor<128x8xf32, #pipe.distribution<lanes>>, !pipe.global<128x16xf32>
  }
  pipe.role mma warps 4 to 5 drives [tensor] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.producer_acquire %accs[%c0] : !accs
    pipe.producer_commit %accs[%c0] : !accs
  }
  gpu.return
}
}
