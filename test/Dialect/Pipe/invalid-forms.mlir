// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// Odd forms that the generic syntax, or a kernel written by hand, may have. The first operation of a case is legal.

!f16 = !pipe.shared<64x128xf16, swizzle_128B>
!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!acc = !pipe.fragment<64x64xf32, wgmma>
gpu.module @m {
gpu.func @awaited(%a: !codes, %sa: !scales, %b: !f16) kernel {
  pipe.role math warps 0 to 8 drives [threads, tensor] {
    %acc = pipe.accumulator : !acc
    pipe.mma %acc, %a scaled %sa, %b chain until_mma : !acc, !codes, !scales, !f16
    // (C625)
    // expected-error @+2 {{with 'chain until_mma' must have an MMA of the same B behind it in its block}}
    // expected-note @+1 {{leave 'chain' out at the last MMA of this B}}
    pipe.mma %acc, %a scaled %sa, %b chain until_mma : !acc, !codes, !scales, !f16
  }
  gpu.return
}
}

// -----

!f16 = !pipe.shared<64x128xf16, swizzle_128B>
!codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
!acc = !pipe.fragment<64x64xf32, wgmma>
gpu.module @m {
gpu.func @looped(%a: !codes, %sa: !scales, %b: !f16, %c0: i32, %c1: i32, %n: i32) kernel {
  pipe.role math warps 0 to 8 drives [threads, tensor] {
    %acc = pipe.accumulator : !acc
    scf.for %k = %c0 to %n step %c1 : i32 {
      pipe.mma %acc, %a scaled %sa, %b chain until_iteration : !acc, !codes, !scales, !f16
    }
    // (C625)
    // expected-error @+2 {{with 'chain until_iteration' must be in a loop}}
    // expected-note @+1 {{leave 'chain' out, and the accumulator is complete when the MMA ends}}
    pipe.mma %acc, %a scaled %sa, %b chain until_iteration : !acc, !codes, !scales, !f16
  }
  gpu.return
}
}

// -----

!ch = !pipe.channel<!pipe.shared<64x64xbf16, swizzle_128B>>
gpu.module @m {
gpu.func @loaded(%m: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %c0: i32) kernel {
  %ch = pipe.channel from tma to threads(128) : !ch
  %twin = pipe.load %m[%c0, %c0] : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !pipe.shared<64x64xbf16, swizzle_128B>
  // (C110)
  // expected-error @+2 {{must fill a destination and signal its channel, but does not fill}}
  // expected-note @+1 {{write 'into %slot signals %channel', or a result and neither}}
  %t = "pipe.load"(%m, %c0, %c0, %ch) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 1, 0>}> : (!pipe.tensor_map<64x64xbf16, swizzle_128B>, i32, i32, !ch) -> !pipe.shared<64x64xbf16, swizzle_128B>
  gpu.return
}
}

// -----

!ch = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @m {
gpu.func @idle() kernel {
  %ch = pipe.channel from tensor to threads(128) : !ch
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %twin = pipe.consumer_wait %ch : !ch
    pipe.consumer_release %ch : !ch
  }
  pipe.role spare warps 4 to 8 drives [] registers 24 {
    // (C119)
    // expected-error @+2 {{must be in a role that drives an engine, but is in #pipe.role<spare warps 4 to 8 drives [] registers 24>}}
    // expected-note @+1 {{name the engine whose operations use the channel: 'drives [threads]'}}
    %acc = pipe.consumer_wait %ch : !ch
    pipe.consumer_release %ch : !ch
  }
  gpu.return
}
}

// -----

func.func @double(%twin: tensor<128x32xf32, #pipe.distribution<lanes>>, %y: !pipe.global<128x1024xf32>,
               %v: tensor<128x32xf8E5M2FNUZ, #pipe.distribution<lanes>>, %z: !pipe.global<128x1024xf8E5M2FNUZ>, %c0: i32) {
  pipe.store %twin, %y[%c0, %c0] : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<128x1024xf32>
  // (C118)
  // expected-error @+2 {{value must have elements of f32, bf16, f16, f8E8M0FNU or the elements of a format, but got 'f8E5M2FNUZ'}}
  // expected-note @+1 {{convert the elements before they are stored}}
  pipe.store %v, %z[%c0, %c0] : tensor<128x32xf8E5M2FNUZ, #pipe.distribution<lanes>>, !pipe.global<128x1024xf8E5M2FNUZ>
  return
}

// -----

func.func @operand() {
  %twin = pipe.accumulator : !pipe.tmem<128x64xf32>
  // expected-error @+2 {{accumulator must have elements of f32, but got '!pipe.tmem<128x64xbf16>'}}
  // expected-note @+1 {{tiles of scales come from pipe.copy_scales}}
  %acc = pipe.accumulator : !pipe.tmem<128x64xbf16>
  return
}

// -----

func.func private @twin(tensor<128x8xi32, #pipe.distribution<lanes>>)
// (C653)
// expected-error @+2 {{tensor of #pipe.distribution<lanes> must have elements that a register holds, but got 'complex<f32>'}}
// expected-note @+1 {{write a float, an integer or an index}}
func.func private @bad(tensor<128x8xcomplex<f32>, #pipe.distribution<lanes>>)

// -----

gpu.module @m {
gpu.func @named(%y: !pipe.global<128x64xf32>, %c0: i32) kernel {
  pipe.clear_rows %y[%c0 to %c0] {pipe.role = "clear"} : !pipe.global<128x64xf32>
  // (C656)
  // expected-error @+2 {{'pipe.role' must be the name of a role, at an operation of an engine in a kernel without roles, but got 7 : i32}}
  // expected-note @+1 {{write {pipe.role = "convert"} before pipe-specialize-warps}}
  pipe.clear_rows %y[%c0 to %c0] {pipe.role = 7 : i32} : !pipe.global<128x64xf32>
  gpu.return
}
}
