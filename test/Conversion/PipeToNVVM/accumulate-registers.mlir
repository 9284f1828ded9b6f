// An accumulator in registers is kept where `accumulate` says so, and begins as zeros elsewhere.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!codes = !pipe.shared<64x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!weights = !pipe.shared<1x8704xi8>
!x = !pipe.shared<256x128xf8E4M3FN, swizzle_128B>

gpu.module @m {
// CHECK-LABEL: llvm.func @warps
// CHECK-SAME: %[[MORE:[a-z0-9]+]]: i1)
// CHECK: %[[SUM:.*]] = llvm.select %[[MORE]], %{{.*}}, %{{.*}} : i1, f32
// CHECK: nvvm.mma.block_scale
gpu.func @warps(%a: !codes, %s: !scales, %more: i1) kernel {
  pipe.role mma warps 0 to 2 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<32x64xf32, mma_sync>
    pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %more : !pipe.fragment<32x64xf32, mma_sync>,
        !codes, !scales, !codes, !scales
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @held
// CHECK-SAME: %[[MORE:[a-z0-9]+]]: i1)
// CHECK: wgmma.mma_async
// CHECK: %[[SUM:.*]] = llvm.select %[[MORE]], %{{.*}}, %{{.*}} : i1, f32
// CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[SUM]])
gpu.func @held(%w: !weights, %x: !x, %more: i1) kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
    %held = pipe.dequantize %w : !weights -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
    pipe.mma %acc, %held, %x accumulate %more next %w : !pipe.fragment<64x256xf32, wgmma>,
        !pipe.fragment<64x128xf8E4M3FN, wgmma>, !x, !weights
  }
  gpu.return
}
}
