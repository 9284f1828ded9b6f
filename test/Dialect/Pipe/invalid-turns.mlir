// RUN: fp4-opt %s -verify-diagnostics -split-input-file
// Roles whose warpgroups have stages or products in turn.

#twin = #pipe.role<convert warps 4 to 12 drives [threads] in_turn stages auxiliary>
// (C497)
// expected-error @+2 {{role convert in turn must have several warpgroups, but got warps 4 to 8}}
// expected-note @+1 {{give the role 8 or more warps, a multiple of 4, from a multiple of 4 on, or leave 'in_turn' out}}
#role = #pipe.role<convert warps 4 to 8 drives [threads] in_turn stages auxiliary>

// -----

// (C497)
// expected-error @+2 {{role math in turn must drive threads and nothing else}}
// expected-note @+1 {{write 'drives [threads]', or leave 'in_turn' out}}
#role = #pipe.role<math warps 0 to 8 drives [tensor, threads] in_turn stages>

// -----

#twin = #pipe.role<math warps 0 to 8 drives [tensor, threads] in_turn products>
// (C497)
// expected-error @+2 {{role math with products in turn must drive tensor and threads}}
// expected-note @+1 {{write 'drives [tensor, threads]', or leave 'in_turn' out}}
#role = #pipe.role<math warps 0 to 8 drives [threads] in_turn products>

// -----

#twin = #pipe.role<math warps 0 to 12 drives [tensor, threads] in_turn products>
// (C497)
// expected-error @+2 {{'in_turn' must have stages or products behind it, but got tiles}}
// expected-note @+1 {{with 'stages' a warpgroup has stages of its own, and with 'products' warpgroups begin their MMAs one after the other}}
#role = #pipe.role<math warps 0 to 12 drives [tensor, threads] in_turn tiles>

// -----

!a = !pipe.shared<128x64xbf16, swizzle_128B>
!b = !pipe.shared<64x64xbf16, swizzle_128B>
!sums = !pipe.fragment<64x64xf32, wgmma>
gpu.module @m {
gpu.func @twin(%a: !a, %b: !b, %c0: i32, %c1: i32, %c4: i32) kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] in_turn products {
    %acc = pipe.accumulator : !sums
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      pipe.mma %acc, %a, %b : !sums, !a, !b
    }
  }
  gpu.return
}
gpu.func @branch(%a: !a, %b: !b, %more: i1) kernel {
  // expected-note @+1 {{the role begins here; leave 'in_turn' out where warpgroups multiply by themselves}}
  pipe.role math warps 0 to 8 drives [tensor, threads] in_turn products {
    %acc = pipe.accumulator : !sums
    scf.if %more {
      // (C498)
      // expected-error @+1 {{must multiply 16-bit floats by wgmma, and be in loops alone, because the warpgroups of its role have products in turn}}
      pipe.mma %acc, %a, %b : !sums, !a, !b
    }
  }
  gpu.return
}
}

// -----

!w = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
!ws = !pipe.channel<!w>
gpu.module @m {
gpu.func @twin(%c0: i32, %c1: i32, %c4: i32) kernel {
  %ws = pipe.channel from tma to threads(128) : !ws
  pipe.role convert warps 4 to 12 drives [threads] in_turn stages auxiliary {
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %step = arith.constant 1 : i32
    }
    %one = arith.constant 1 : i32
    scf.for %k = %c0 to %c4 step %one : i32 {
      %w = pipe.consumer_wait %ws : !ws
      pipe.consumer_release %ws : !ws
    }
  }
  gpu.return
}
gpu.func @bad() kernel {
  %ws = pipe.channel from tma to threads(128) : !ws
  // expected-note @+1 {{the role begins here; leave 'in_turn' out where a role takes stages outside of such a loop}}
  pipe.role convert warps 4 to 12 drives [threads] in_turn stages auxiliary {
    // (C498)
    // expected-error @+1 {{must be directly in a loop with step 1, because the warpgroups of its role have its stages in turn}}
    %w = pipe.consumer_wait %ws : !ws
    pipe.consumer_release %ws : !ws
  }
  gpu.return
}
}
