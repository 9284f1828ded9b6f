// Kernels that the conversion refuses: they are not pipelined yet or do not fit the target.
// RUN: split-file %s %t
// RUN: not fp4-opt %t/tcgen05.mlir --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=TCGEN05
// RUN: fp4-opt %t/tcgen05.mlir --pass-pipeline='builtin.module(fp4-set-target{target=sm_100a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' -o /dev/null
// TCGEN05: error: target 'sm_90a' has no tcgen05
// TCGEN05: note: targets with tcgen05: sm_100a

// RUN: not fp4-opt %t/tcgen05.mlir --pass-pipeline='builtin.module(fp4-set-target{target=sm_1},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'sm_1'

// RUN: not fp4-opt %t/shared.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: expects at most 232448 bytes of shared memory on sm_100a, but got 232449

// RUN: not fp4-opt %t/specialized.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: 'pipe.channel' op expects the pipelined form
// FORM: note: run pipe-pipeline first

// RUN: not fp4-opt %t/tmem.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=TMEM
// TMEM: error: a kernel with tiles in tensor memory must have a role that drives tensor, which allocates it, and the attribute pipe.tmem_columns

// RUN: not fp4-opt %t/copy.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=TMEM

//--- copy.mlir
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
gpu.module @m {
gpu.func @kernel(%it: i32) kernel {
  %ab = pipe.channel from tma to tensor depth 1 payload [0] barriers 2048 : !tiles
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %s = pipe.consumer_wait %ab[%it] : !tiles
    %t = pipe.copy_scales %s at 0 : !scales -> !tscales
    pipe.consumer_release %ab[%it] : !tiles
  }
  gpu.return
}
}
//--- tmem.mlir
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @m {
gpu.func @kernel(%it: i32) kernel {
  %acc = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 0 : !accs
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %s = pipe.consumer_wait %acc[%it] : !accs
  }
  gpu.return
}
}
//--- tcgen05.mlir
gpu.module @m {
gpu.func @kernel() kernel attributes {pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 0 : i64} {
  gpu.return
}
}
//--- shared.mlir
gpu.module @m {
gpu.func @kernel() kernel attributes {pipe.shared_bytes = 232449 : i64} {
  gpu.return
}
}
//--- specialized.mlir
!ch = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
gpu.module @m {
gpu.func @kernel() kernel {
  %ab = pipe.channel from tma to tensor : !ch
  pipe.role load warps 0 to 1 drives [tma] {
    %s = pipe.producer_acquire %ab : !ch
  }
  gpu.return
}
}
