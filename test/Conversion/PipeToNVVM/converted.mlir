// A role that converts tiles hands over what it made, and then gives back what it read: one fence is behind the
// accesses of both. If the role reads the stage once more in between, the release has a fence of its own.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!halves = !pipe.shared<128x128xf16, swizzle_128B>
!in = !pipe.channel<!codes, !scales>
!out = !pipe.channel<!halves>

// CHECK-LABEL: llvm.func @once
// CHECK: llvm.store {{.*}} {alignment = 16 : i64}
// CHECK: nvvm.fence.proxy
// CHECK-NOT: nvvm.fence.proxy
// CHECK: nvvm.mbarrier.arrive
// CHECK-NOT: nvvm.fence.proxy
// CHECK: nvvm.mbarrier.arrive
gpu.module @m {
gpu.func @once() kernel attributes {pipe.shared_bytes = 100096 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 100088 : i64} {
  %in = pipe.channel from tma to threads(96) depth 2 payload [65536, 81920] barriers 100000 : !in
  %out = pipe.channel from threads(96) to threads(256) depth 2 payload [0] barriers 100032 : !out
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %q, %s = pipe.producer_acquire %in[%i] : !in
      pipe.producer_commit %in[%i] : !in
    }
  }
  pipe.role convert warps 9 to 12 drives [threads] auxiliary {
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %in[%i] : !in
      %h = pipe.producer_acquire %out[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %out[%i] : !out
      %next = arith.addi %i, %c1 : i32
      pipe.consumer_release %in[%i] : !in
    }
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @again
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.mbarrier.arrive
gpu.func @again() kernel attributes {pipe.shared_bytes = 132960 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 132952 : i64} {
  %in = pipe.channel from tma to threads(96) depth 2 payload [98304, 114688] barriers 132864 : !in
  %out = pipe.channel from threads(96) to threads(256) depth 2 payload [0] barriers 132896 : !out
  %more = pipe.channel from threads(96) to threads(256) depth 1 payload [65536] barriers 132928 : !out
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %q, %s = pipe.producer_acquire %in[%i] : !in
      pipe.producer_commit %in[%i] : !in
    }
  }
  pipe.role convert warps 9 to 12 drives [threads] auxiliary {
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %in[%i] : !in
      %h = pipe.producer_acquire %out[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %out[%i] : !out
      %g = pipe.producer_acquire %more[%i] : !out
      pipe.dequantize %q scaled %s into %g : !codes, !scales, !halves
      pipe.consumer_release %in[%i] : !in
      pipe.producer_commit %more[%i] : !out
    }
  }
  gpu.return
}
}
