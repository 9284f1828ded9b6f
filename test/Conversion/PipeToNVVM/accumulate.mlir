// The first instruction of an MMA takes `accumulate`. Without it, an MMA overwrites its accumulator.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!a = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!sums = !pipe.tmem<128x64xf32>
!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.tmem<128x8xf8E4M3FN, tiled_128x4>

gpu.module @m {
// CHECK-LABEL: llvm.func @dense
// CHECK-SAME: %[[MORE:[a-z0-9]+]]: i1)
// CHECK-DAG: %[[TRUE:.*]] = llvm.mlir.constant(true) : i1
// CHECK: nvvm.tcgen05.mma %{{.*}}, %[[MORE]] {{.*}}kind = #nvvm.tcgen05_mma_kind<f8f6f4>
// CHECK-COUNT-3: nvvm.tcgen05.mma %{{.*}}, %[[TRUE]]
gpu.func @dense(%sums: !sums, %a: !a, %b: !b, %more: i1) kernel {
  pipe.role mma warps 0 to 1 drives [tensor] {
    pipe.mma %sums, %a, %b accumulate %more : !sums, !a, !b
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @overwrites
// CHECK-DAG: %[[TRUE:.*]] = llvm.mlir.constant(true) : i1
// CHECK-DAG: %[[FALSE:.*]] = llvm.mlir.constant(false) : i1
// CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[FALSE]], %{{.*}}, %{{.*}} {
// CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[TRUE]], %{{.*}}, %{{.*}} {
gpu.func @overwrites(%acc: !pipe.tmem<128x128xf32>, %a: !codes, %s: !scales) kernel {
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    pipe.mma %acc, %a scaled %s, %a scaled %s : !pipe.tmem<128x128xf32>, !codes, !scales, !codes, !scales
  }
  gpu.return
}
}
