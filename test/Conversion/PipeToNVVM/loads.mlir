// TMA loads and bulk copies of scales into a stage.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' \
// RUN:   | FileCheck %s --check-prefix=SM90

!map = !pipe.tensor_map<192x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<192x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<256x8xf8E8M0FNU, tiled_128x4>
!sf = !pipe.global<384x9xf8E8M0FNU, tiled_128x4>
!ch = !pipe.channel<!data, !scales>

gpu.module @m {
// CHECK-LABEL: llvm.func @load
// CHECK-SAME: %[[MAP:.*]]: !llvm.ptr {{{.*}}}, %[[SF:.*]]: !llvm.ptr<1>, %[[ROW:.*]]: i32, %[[COL:.*]]: i32, %[[BLOCKS:.*]]: i32, %{{.*}}: i32)
gpu.func @load(%b: !map, %sf: !sf, %row: i32, %col: i32, %blocks: i32, %it: i32) kernel {
  %ab = pipe.channel from tma to tensor depth 2 payload [0, 49152] barriers 53248 : !ch
  pipe.role load warps 0 to 1 drives [tma] {
    // CHECK-DAG: %[[LAST:.*]] = llvm.mlir.constant(2 : i32)
    // A stage's tile: place plus stage times its bytes.
    // CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(24576 : i32)
    // CHECK-DAG: %[[SPLACE:.*]] = llvm.mlir.constant(49152 : i32)
    // CHECK: llvm.mul %{{.*}}, %[[BYTES]]
    // CHECK: %[[TILE:.*]] = llvm.inttoptr %{{.*}} : i32 to !llvm.ptr<3>
    // CHECK: llvm.add %{{.*}}, %[[SPLACE]]
    // CHECK: %[[STILE:.*]] = llvm.inttoptr %{{.*}} : i32 to !llvm.ptr<3>
    %s, %sc = pipe.producer_acquire %ab[%it] : !ch
    // The map of packed fp4 counts bytes: column / 2 comes first.
    // CHECK: %[[FULL:.*]] = llvm.getelementptr inbounds %{{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i8>
    // CHECK: %[[BYTE:.*]] = llvm.lshr %[[COL]], %{{.*}} : i32
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TILE]], %[[MAP]], %[[FULL]], box[%[[BYTE]], %[[ROW]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // SM90: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    pipe.load %b[%row, %col] into %s signals %ab[%it] : !map, !data, !ch
    // Two rows of blocks; 3 blocks per row of the buffer (9 scale columns). Only the blocks that
    // exist are copied, and the second row of blocks is clamped to the buffer's last, 2.
    // CHECK: %[[SIZE:.*]] = llvm.mul %[[BLOCKS]], %{{.*}} : i32
    // CHECK: %[[SRC0:.*]] = llvm.getelementptr inbounds %[[SF]][%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<512 x i8>
    // CHECK: nvvm.cp.async.bulk.shared.cluster.global %[[STILE]], %[[SRC0]], %{{.*}}, %[[SIZE]] : !llvm.ptr<3>, <1>
    // CHECK: llvm.intr.smin(%{{.*}}, %[[LAST]])
    // CHECK: %[[DST1:.*]] = llvm.getelementptr inbounds %[[STILE]][1024]
    // CHECK: nvvm.cp.async.bulk.shared.cluster.global %[[DST1]], %{{.*}}, %{{.*}}, %[[SIZE]]
    pipe.load %sf[%row, %col] existing %blocks into %sc signals %ab[%it] : !sf, !scales, !ch
  }
  gpu.return
}
// No tile reaches beyond the buffer's last row of blocks.
// CHECK-LABEL: llvm.func @whole_tiles
// CHECK-COUNT-2: nvvm.cp.async.bulk.shared.cluster.global
// CHECK-NOT: llvm.intr.smin
gpu.func @whole_tiles(%b: !map, %sf: !pipe.global<512x9xf8E8M0FNU, tiled_128x4>, %row: i32, %col: i32, %blocks: i32, %it: i32) kernel {
  %ab = pipe.channel from tma to tensor depth 2 payload [0, 49152] barriers 53248 : !ch
  pipe.role load warps 0 to 1 drives [tma] {
    %s, %sc = pipe.producer_acquire %ab[%it] : !ch
    pipe.load %sf[%row, %col] existing %blocks into %sc signals %ab[%it] {in_bounds} : !pipe.global<512x9xf8E8M0FNU, tiled_128x4>, !scales, !ch
  }
  gpu.return
}
}
