// Rings that walk in step: each iteration of the role math uses a stage of raw and one of tiles, which other warps have
// converted from a stage of codes. A role that fills codes or tiles does not wait if an earlier wait implies that the
// stage is empty: then there is no barrier, no wait and no arrival for it. raw has all of them.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' \
// RUN:   | grep -oE 'llvm.func @[a-z_]+|nvvm.mbarrier.[a-z_.]+' | FileCheck %s

!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!halves = !pipe.shared<128x128xf16, swizzle_128B>
!in = !pipe.channel<!codes, !scales>
!out = !pipe.channel<!halves>
!acc = !pipe.fragment<64x128xf32, wgmma>

gpu.module @m {
// Stages of raw are released behind all uses of the others.
// CHECK-LABEL: llvm.func @implied
// CHECK-COUNT-8: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @implied() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 2 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %tiles[%i] : !out
      pipe.consumer_release %raw[%i] : !in
    }
  }
  gpu.return
}

// The ring of codes and tiles has more stages than raw.
// CHECK-LABEL: llvm.func @deeper
// CHECK-COUNT-9: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @deeper() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 3 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 2 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %tiles[%i] : !out
      pipe.consumer_release %raw[%i] : !in
    }
  }
  gpu.return
}

// The ring of codes has fewer stages: they may not be read yet when raw has an empty stage.
// CHECK-LABEL: llvm.func @shallow
// CHECK-COUNT-13: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @shallow() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 3 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 3 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %tiles[%i] : !out
      pipe.consumer_release %raw[%i] : !in
    }
  }
  gpu.return
}

// Math warps may still multiply tiles that they release behind raw,
// CHECK-LABEL: llvm.func @early
// CHECK-COUNT-10: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @early() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 2 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %raw[%i] : !in
      pipe.consumer_release %tiles[%i] : !out
    }
  }
  gpu.return
}

// and one iteration later they do not.
// CHECK-LABEL: llvm.func @one_stage_more
// CHECK-COUNT-9: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @one_stage_more() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 3 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %raw[%i] : !in
      pipe.consumer_release %tiles[%i] : !out
    }
  }
  gpu.return
}

// The role that loads codes waits for raw behind that: its knowledge is an iteration older.
// CHECK-LABEL: llvm.func @codes_first
// CHECK-COUNT-12: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @codes_first() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 2 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.producer_commit %tiles[%i] : !out
      pipe.consumer_release %codes[%i] : !in
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %tiles[%i] : !out
      pipe.consumer_release %raw[%i] : !in
    }
  }
  gpu.return
}

// Copies may write what threads have read behind a fence. Here the release has the only one.
// CHECK-LABEL: llvm.func @unfenced
// CHECK-COUNT-10: nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.try_wait{{$}}
// CHECK-NEXT: nvvm.mbarrier.arrive{{$}}
gpu.func @unfenced() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %raw = pipe.channel from tma to threads(256) depth 2 payload [98304, 147456] barriers 165888 : !in
  %codes = pipe.channel from tma to threads(224) depth 2 payload [122880, 159744] barriers 165952 : !in
  %tiles = pipe.channel from threads(224) to threads(256) depth 2 payload [0] barriers 166016 : !out
  pipe.role load warps 8 to 9 drives [tma] {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %raw_q, %raw_s = pipe.producer_acquire %raw[%i] : !in
      pipe.expect_tx %raw[%i], %c8 : !in
      pipe.producer_commit %raw[%i] : !in
      %codes_q, %codes_s = pipe.producer_acquire %codes[%i] : !in
      pipe.expect_tx %codes[%i], %c8 : !in
      pipe.producer_commit %codes[%i] : !in
    }
  }
  pipe.role convert warps 9 to 16 drives [threads] auxiliary {
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %q, %s = pipe.consumer_wait %codes[%i] : !in
      %h = pipe.producer_acquire %tiles[%i] : !out
      pipe.dequantize %q scaled %s into %h : !codes, !scales, !halves
      pipe.consumer_release %codes[%i] : !in
      pipe.producer_commit %tiles[%i] : !out
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !acc
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c0 : i32
      %q, %s = pipe.consumer_wait %raw[%i] : !in
      %h = pipe.consumer_wait %tiles[%i] : !out
      pipe.mma %acc, %q scaled %s, %h accumulate %more : !acc, !codes, !scales, !halves
      pipe.consumer_release %tiles[%i] : !out
      pipe.consumer_release %raw[%i] : !in
    }
  }
  gpu.return
}
}
