// Scales of a pair with 128 rows. Each 64 rows of A have a block, each half of the scales of B is a box of its own for every
// 4 columns, and one copy takes both halves of 4 columns to their lanes.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!amap = !pipe.tensor_map<64x8xf8E8M0FNU, tiled_128x4>
!bmap = !pipe.tensor_map<128x4xf8E8M0FNU, tiled_128x4>
!a = !pipe.shared<64x8xf8E8M0FNU, tiled_128x4>
!b = !pipe.shared<256x8xf8E8M0FNU, halves_128x4>
!ta = !pipe.tmem<64x8xf8E8M0FNU, tiled_128x4, pair>
!tb = !pipe.tmem<256x8xf8E8M0FNU, halves_128x4, pair>
!tiles = !pipe.channel<!a, !b>

// CHECK-LABEL: llvm.func @pair
gpu.module @m {
gpu.func @pair(%sa: !amap, %sb: !bmap, %row: i32, %it: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 3088 : i64, pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 3080 : i64} {
  %c0 = arith.constant 0 : i32
  // CHECK-DAG: %[[HALF:.*]] = llvm.mlir.constant(128 : i32)
  // CHECK-DAG: %[[SIX:.*]] = llvm.mlir.constant(6 : i32)
  %ab = pipe.channel from tma to tensor scope cluster depth 1 payload [0, 1024] barriers 3072 : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    %ta, %tb = pipe.producer_acquire %ab[%it] : !tiles
    // CHECK: %[[BLOCK:.*]] = llvm.lshr %arg2, %[[SIX]]
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} box[%{{.*}}, %{{.*}}, %[[BLOCK]]]
    pipe.load %sa[%row, %c0] into %ta signals %ab[%it] : !amap, !a, !tiles
    // CHECK: %[[PART:.*]] = llvm.mul {{.*}}, %[[HALF]]
    // CHECK: %[[OF_HALF:.*]] = llvm.add %arg2, %[[PART]]
    // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask
    pipe.load %sb[%row, %c0] multicast m into %tb signals %ab[%it] : !bmap, !b, !tiles
    // The two halves of the two blocks of columns.
    // CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
    // CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
    pipe.load %sb[%row, %c0] into %tb signals %ab[%it] : !bmap, !b, !tiles
    pipe.producer_commit %ab[%it] : !tiles
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s, %t = pipe.consumer_wait %ab[%it] : !tiles
    // CHECK-COUNT-2: nvvm.tcgen05.cp {{.*}}group = #nvvm.cta_group<cta_2>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>, shape = #nvvm.tcgen05_cp_shape<shape_32x128b>
    %ca = pipe.copy_scales %s at 0 : !a -> !ta
    // CHECK-COUNT-2: nvvm.tcgen05.cp {{.*}}group = #nvvm.cta_group<cta_2>, multicast = #nvvm.tcgen05_cp_multicast<warpx2_01_23>, shape = #nvvm.tcgen05_cp_shape<shape_64x128b>
    // CHECK-NOT: nvvm.tcgen05.cp
    %cb = pipe.copy_scales %t at 8 : !b -> !tb
    pipe.consumer_release %ab[%it] : !tiles
  }
  gpu.return
}
}
