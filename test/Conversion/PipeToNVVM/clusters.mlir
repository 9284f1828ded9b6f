// Barriers of several CTAs: who announces, who signals whom, and at whose barriers a commit arrives.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!tiles = !pipe.channel<!scales>
!half_map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!ab = !pipe.channel<!data, !scales>

// CHECK-LABEL: llvm.func @pair
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 2, 1>
gpu.module @m {
gpu.func @pair(%sf: !map, %it: i32) kernel attributes {known_cluster_size = array<i32: 2, 2, 1>,
    pipe.shared_bytes = 4136 : i64, pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 4128 : i64} {
  %c0 = arith.constant 0 : i32
  %bytes = arith.constant 4096 : i32
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[THREE:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank : i32
  // CHECK: nvvm.cluster.arrive.relaxed {aligned}
  // CHECK-NEXT: nvvm.cluster.wait {aligned}
  // CHECK: nvvm.tcgen05.alloc %{{.*}} {group = #nvvm.cta_group<cta_2>}
  // CHECK: nvvm.barrier id
  %ab = pipe.channel from tma to tensor scope cluster depth 2 payload [0] barriers 4096 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %s = pipe.producer_acquire %ab[%it] : !tiles
    // The leader alone announces; both loads signal it.
    // CHECK: %[[ODD:.*]] = llvm.urem %[[RANK]], %[[TWO]]
    // CHECK: %[[LEADS:.*]] = llvm.icmp "eq" %[[ODD]]
    // CHECK: llvm.cond_br %[[LEADS]]
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    pipe.expect_tx %ab[%it], %bytes : !tiles
    // CHECK: %[[LEADER:.*]] = llvm.sub %[[RANK]], %{{.*}}
    // CHECK: nvvm.mapa %{{.*}}, %[[LEADER]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {group = #nvvm.cta_group<cta_2>}
    pipe.load %sf[%c0, %c0] into %s signals %ab[%it] : !map, !scales, !tiles
    pipe.producer_commit %ab[%it] : !tiles
  }
  // CHECK: llvm.and %{{.*}}, %{{.*}} : i1
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab[%it] : !tiles
    // CHECK: nvvm.tcgen05.cp {{.*}}group = #nvvm.cta_group<cta_2>
    %t = pipe.copy_scales %s at 0 : !scales -> !pscales
    // The release arrives at both CTAs of the pair.
    // CHECK: %[[REST:.*]] = llvm.urem %[[RANK]], %[[TWO]]
    // CHECK: %[[FIRST:.*]] = llvm.sub %[[RANK]], %[[REST]]
    // CHECK: %[[WIDE:.*]] = llvm.shl %[[THREE]], %[[FIRST]]
    // CHECK: %[[WORD:.*]] = llvm.inline_asm "", "=r,0" %[[WIDE]]
    // CHECK: %[[MASK:.*]] = llvm.trunc %[[WORD]] : i32 to i16
    // CHECK: nvvm.tcgen05.commit %{{.*}}, multicast_mask = %[[MASK]] {group = #nvvm.cta_group<cta_2>}
    pipe.consumer_release %ab[%it] : !tiles
  }
  // CHECK: nvvm.cluster.arrive {aligned}
  // CHECK: nvvm.tcgen05.dealloc %{{.*}} {group = #nvvm.cta_group<cta_2>}
  gpu.return
}
}

// Clusters of two sizes: which runs the CTA follows from their number of CTAs. Masks, and the CTAs that release a
// stage, are selected. A CTA of the smaller one loads both parts of a tile, and its place in the tiles is that in the grid.
// CHECK-LABEL: llvm.func @two_sizes
// CHECK-SAME: fp4.clusters = array<i32: 2, 1, 2, 2>
// CHECK-SAME: nvvm.cluster_dim = array<i32: 0, 0, 0>
// CHECK-SAME: nvvm.cluster_max_blocks = 4 : i32
gpu.module @two {
gpu.func @two_sizes(%a: !half_map, %sf: !map, %it: i32) kernel attributes {known_cluster_size = array<i32: 2, 2, 1>,
    pipe.fallback_cluster = array<i32: 2, 1>, pipe.shared_bytes = 36904 : i64, pipe.tmem_columns = 32 : i64,
    pipe.tmem_slot = 36896 : i64} {
  %c0 = arith.constant 0 : i32
  %bytes = arith.constant 36864 : i32
  %x = gpu.cluster_block_id x
  %row = arith.index_cast %x : index to i32
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank : i32
  // CHECK: %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.cluster.nctarank : i32
  // CHECK: %[[SMALL:.*]] = llvm.icmp "ne" %[[BLOCKS]]
  // CHECK: nvvm.read.ptx.sreg.ctaid.x
  // CHECK: llvm.select %[[SMALL]]
  // CHECK: nvvm.mbarrier.init
  %ab = pipe.channel from tma to tensor scope cluster depth 2 payload [0, 32768] barriers 36864 : !ab
  pipe.role load warps 5 to 6 drives [tma] {
    %as, %s = pipe.producer_acquire %ab[%it] : !ab
    pipe.expect_tx %ab[%it], %bytes : !ab
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}multicast_mask
    // CHECK: llvm.cond_br %[[SMALL]]
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}multicast_mask
    pipe.load %a[%row, %c0] multicast n into %as signals %ab[%it] : !half_map, !data, !ab
    pipe.load %sf[%row, %c0] into %s signals %ab[%it] : !map, !scales, !ab
    pipe.producer_commit %ab[%it] : !ab
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %as, %s = pipe.consumer_wait %ab[%it] : !ab
    %t = pipe.copy_scales %s at 0 : !scales -> !pscales
    // CHECK: llvm.select %[[SMALL]]
    // CHECK: nvvm.tcgen05.commit
    pipe.consumer_release %ab[%it] : !ab
  }
  gpu.return
}
}
