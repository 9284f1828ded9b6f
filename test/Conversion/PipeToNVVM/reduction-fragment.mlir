// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s
// Sums of the CTAs of a cluster: a thread of the second CTA sends what it has of columns 0 to 7 to
// the first, one of the first CTA what it has of the others to the second, with stores that count their
// bytes on the barrier there. Each CTA adds from the first to the last, with its own from registers, and
// its warps arrive at the barriers of all CTAs, whose places are free then.

// CHECK-LABEL: llvm.func @join
// The barriers count the 8 warps of the CTA, which announce bytes, and those of both CTAs that add.
// CHECK-DAG: %[[OWN:.*]] = llvm.mlir.constant(8 : i32)
// CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(16 : i32)
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[OWN]] : !llvm.ptr<3>, i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ALL]] : !llvm.ptr<3>, i32
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.mbarrier.try_wait {{.*}}relaxed = true{{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK: nvvm.fence.sync_restrict {order = #nvvm.mem_order<acquire>}
// CHECK-COUNT-2: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32
// CHECK-NOT: st.async
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.mbarrier.try_wait
// CHECK: %[[SECOND:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.fadd %{{.*}}, %[[SECOND]] : vector<4xf32>
// CHECK: %[[FIRST:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.fadd %[[FIRST]], %{{.*}} : vector<4xf32>
// CHECK: nvvm.fence.sync_restrict {order = #nvvm.mem_order<release>}
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.cluster.wait

// In the last turn of a loop over tiles nobody arrives. Only CTAs that have several turns have a barrier at the end.
// CHECK-LABEL: llvm.func @joins
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: ^bb{{[0-9]+}}(%[[TILE:.*]]: i32):
// CHECK-NEXT: llvm.icmp "slt" %[[TILE]], %[[TILES:.*]] : i32
// CHECK: llvm.fadd
// CHECK: %[[NEXT:.*]] = llvm.add %[[TILE]], %[[BLOCKS:.*]] : i32
// CHECK-NEXT: %[[GOES_ON:.*]] = llvm.icmp "slt" %[[NEXT]], %[[TILES]] : i32
// CHECK-NEXT: llvm.cond_br %[[GOES_ON]]
// CHECK: nvvm.fence.sync_restrict {order = #nvvm.mem_order<release>}
// CHECK: nvvm.mbarrier.arrive
// CHECK-NOT: nvvm.cluster
// CHECK: llvm.add %[[TILE]], %[[BLOCKS]] : i32
// CHECK: %[[SECOND:.*]] = llvm.add %{{.*}}, %[[BLOCKS]] : i32
// CHECK-NEXT: %[[SEVERAL:.*]] = llvm.icmp "slt" %[[SECOND]], %[[TILES]] : i32
// CHECK-NEXT: llvm.cond_br %[[SEVERAL]]
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK: nvvm.cluster.wait {aligned}

// A reduction in a loop of its own may be the last of that loop, but not of the CTA: its warps
// always arrive, and the CTA always ends with a barrier.
// CHECK-LABEL: llvm.func @reductions_in_loop
// CHECK: llvm.fadd
// CHECK-NOT: llvm.icmp "slt"
// CHECK: nvvm.fence.sync_restrict {order = #nvvm.mem_order<release>}
// CHECK: nvvm.mbarrier.arrive
// CHECK-NOT: llvm.icmp "slt"
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK: nvvm.cluster.wait {aligned}

// With two ranges each, a thread sends four pieces; a CTA adds those of both CTAs from first to last.
// CHECK-LABEL: llvm.func @ranges
// CHECK-COUNT-4: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32
// CHECK-NOT: st.async
// CHECK: %[[TWO:.*]] = llvm.fadd %{{.*}} : vector<4xf32>
// CHECK: %[[SUM2:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[THREE:.*]] = llvm.fadd %[[TWO]], %[[SUM2]]
// CHECK: %[[SUM3:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.fadd %[[THREE]], %[[SUM3]]
// CHECK: %[[SUM0:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[SUM1:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[PAIR:.*]] = llvm.fadd %[[SUM0]], %[[SUM1]]
// CHECK: llvm.fadd %[[PAIR]], %{{.*}} : vector<4xf32>
gpu.module @kernels {
gpu.func @join(%y: !pipe.global<16x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 16416 : i64} {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
    pipe.reduce %acc by 8 at 0 : !pipe.fragment<64x16xf32, wgmma>
    %v = pipe.read %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %v, %y[%c0, %c0] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<16x128xf32>
  }
  gpu.return
}

gpu.func @joins(%y: !pipe.global<16x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 16416 : i64} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    pipe.for_each_work %m, %n in (%c4, %c4) schedule #pipe.static_persistent<along_m> {
      %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
      pipe.reduce %acc by 8 at 0 : !pipe.fragment<64x16xf32, wgmma>
      %v = pipe.read %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
      pipe.store %v, %y[%c0, %c0] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<16x128xf32>
    }
  }
  gpu.return
}

gpu.func @reductions_in_loop(%y: !pipe.global<16x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 16416 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    pipe.for_each_work %m, %n in (%c4, %c4) schedule #pipe.static_persistent<along_m> {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
        pipe.reduce %acc by 8 at 0 : !pipe.fragment<64x16xf32, wgmma>
        %v = pipe.read %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
        pipe.store %v, %y[%c0, %c0] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<16x128xf32>
      }
    }
  }
  gpu.return
}

gpu.func @ranges(%y: !pipe.global<16x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 32800 : i64} {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
    %next = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
    pipe.reduce %acc, %next by 8 at 0 : !pipe.fragment<64x16xf32, wgmma>, !pipe.fragment<64x16xf32, wgmma>
    %v = pipe.read %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %v, %y[%c0, %c0] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<16x128xf32>
  }
  gpu.return
}
}
