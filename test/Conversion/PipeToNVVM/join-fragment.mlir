// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -convert-pipe-to-nvvm | FileCheck %s
// Sums of the blocks of a cluster: a thread sends what it has of columns 0 to 7 to the first block, of
// the others to the second. Warps arrive at the barriers of all blocks that wait for them, and each block
// adds from the first to the last.

// CHECK-LABEL: llvm.func @join
// The barriers count the 8 warps of both blocks, and of both blocks that add.
// CHECK: %[[ALL:.*]] = llvm.mlir.constant(16 : i32)
// CHECK: nvvm.mbarrier.init %{{.*}}, %{{.*}} : !llvm.ptr<3>, i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %{{.*}} : !llvm.ptr<3>, i32
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.mbarrier.try_wait {{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK: nvvm.mapa
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<7>
// CHECK: nvvm.mapa
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<7>
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.mapa
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.mbarrier.try_wait
// CHECK: %[[FIRST:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[SECOND:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.fadd %[[FIRST]], %[[SECOND]]
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.cluster.wait
gpu.module @kernels {
gpu.func @join(%y: !pipe.global<16x128xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
    known_cluster_size = array<i32: 2, 1, 1>, pipe.shared_bytes = 16416 : i64} {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.fragment : !pipe.fragment<64x16xf32, wgmma>
    pipe.join_fragment %acc by 8 at 0 : !pipe.fragment<64x16xf32, wgmma>
    %v = pipe.read_fragment %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> vector<8xf32>
    pipe.store_fragment %v, %y[%c0, %c0] transposed : vector<8xf32>, !pipe.global<16x128xf32>
  }
  gpu.return
}
}
