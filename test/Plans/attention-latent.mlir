// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics | FileCheck %s

// A tile has 64 heads of a token. Two tiles leave SMs for slices of keys, whose sums another kernel adds.
// CHECK-LABEL: func.func @one
// CHECK: fp4.attention {{.*}}#fp4.plan<tile_attention, tile = [64, 64, 64], k_slices = 64, schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 4 drives [tensor, threads] registers 240, values warps 4 to 8 drives [tensor, threads] registers 240 auxiliary, idle warps 9 to 12 drives [] registers 24>, ctas_per_sm = 1>
!q = tensor<1x1x128x576xbf16>
!c = tensor<1x16384x1x576xbf16>
!o = tensor<1x1x128x512xbf16>
func.func @one(%q: !q, %c: !c) -> !o {
  %o = fp4.attention %q, %c, %c scale 1.0 latent 512 : !q, !c, !c -> !o
  return %o : !o
}

// -----

// Heads of a few tokens are rows of one tile, and there are tiles for all SMs.
// CHECK-LABEL: func.func @many
// CHECK: tile = [64, 64, 16], k_slices = 1,
!q = tensor<132x3x16x576xbf16>
!c = tensor<132x512x1x576xbf16>
!o = tensor<132x3x16x512xbf16>
func.func @many(%q: !q, %c: !c) -> !o {
  %o = fp4.attention %q, %c, %c scale 1.0 latent 512 : !q, !c, !c -> !o
  return %o : !o
}

// -----

// Warps beside the loading one transpose values of bytes.
// CHECK-LABEL: func.func @bytes
// CHECK: roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 40, math warps 0 to 4 drives [tensor, threads] registers 232, values warps 4 to 8 drives [tensor, threads] registers 232 auxiliary, transpose warps 9 to 12 drives [threads] registers 40 auxiliary>
!q = tensor<1x1x16x576xf8E4M3FN>
!c = tensor<1x512x1x576xf8E4M3FN>
!o = tensor<1x1x16x512xbf16>
func.func @bytes(%q: !q, %c: !c) -> !o {
  %o = fp4.attention %q, %c, %c scale 1.0 latent 512 : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xf8E4M3FN>
!c = tensor<1x512x1x192xf8E4M3FN>
!o = tensor<1x1x16x128xbf16>
func.func @transposers(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{must have a plan whose 'roles' have one named 'transpose', but got #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 4 drives [tensor, threads] registers 240, values warps 4 to 8 drives [tensor, threads] registers 240 auxiliary, idle warps 9 to 12 drives [] registers 24>}}
  // expected-note @+1 {{leave 'roles' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 4 drives [tensor, threads] registers 240, values warps 4 to 8 drives [tensor, threads] registers 240 auxiliary, idle warps 9 to 12 drives [] registers 24>>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x96xbf16>
!c = tensor<1x512x1x96xbf16>
!o = tensor<1x1x16x64xbf16>
func.func @elements(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{has kernels of 'latent' for a multiple of 64 elements of a head up to 576, and of 128 elements of values up to 512, but got 96 and 64}}
  // expected-note @+1 {{append zeros to the heads of query and key}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 64 : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x96x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x96x128xbf16>
func.func @heads(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{has kernels of 'latent' for up to 64 heads that share keys, or a multiple, but got 96}}
  // expected-note @+1 {{append heads of zeros to the query}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<8x4x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @pages(%q: !q, %c: !c, %n: tensor<1xi32>, %p: tensor<1x8xi32>) -> !o {
  // expected-error @+2 {{has kernels for pages of a multiple of 8 tokens, but those of operand 'key' have 4}}
  // expected-note @+1 {{pages of 16, 32, 64 or 128 tokens are usual}}
  %o = fp4.attention %q, %c, %c lengths(%n : tensor<1xi32>) pages(%p : tensor<1x8xi32>) scale 1.0 latent 128 : !q, !c, !c -> !o
  return %o : !o
}

// -----

// Keys of packed sequences are one slice.
// CHECK-LABEL: func.func @packed
// CHECK: k_slices = 1,
!q = tensor<?x16x192xbf16>
!c = tensor<8x64x1x192xbf16>
!o = tensor<?x16x128xbf16>
func.func @packed(%q: !q, %c: !c, %n: tensor<1xi32>, %p: tensor<1x8xi32>, %a: tensor<2xi32>) -> !o {
  %o = fp4.attention %q, %c, %c lengths(%n : tensor<1xi32>) pages(%p : tensor<1x8xi32>) query_offsets(%a : tensor<2xi32>) scale 1.0 latent 128 : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @tile(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{must have a plan whose 'tile' is [64, 64, H], H a power of two from 16 to 64, but got [64, 32, 16]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, tile = [64, 32, 16]>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @cluster(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{must have a plan whose 'cluster' is left out beside 'latent', but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, cluster = [2, 1]>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<?x16x192xbf16>
!c = tensor<8x64x1x192xbf16>
!o = tensor<?x16x128xbf16>
func.func @packed_slices(%q: !q, %c: !c, %n: tensor<1xi32>, %p: tensor<1x8xi32>, %a: tensor<2xi32>) -> !o {
  // expected-error @+2 {{must have a plan whose 'k_slices' is at most 1, but got 2}}
  // expected-note @+1 {{leave 'k_slices' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c lengths(%n : tensor<1xi32>) pages(%p : tensor<1x8xi32>) query_offsets(%a : tensor<2xi32>) scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, k_slices = 2>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @slices(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{must have a plan whose 'k_slices' is at most 8, but got 9}}
  // expected-note @+1 {{leave 'k_slices' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, k_slices = 9>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @roles(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{must have a plan whose 'roles' have one named 'values' of 4 warps that drives tensor and threads, but got #pipe.role_plan<math warps 0 to 4 drives [tensor, threads], load warps 4 to 5 drives [tma]>}}
  // expected-note @+1 {{leave 'roles' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %c, %c scale 1.0 latent 128 {fp4.plan = #fp4.plan<tile_attention, roles = #pipe.role_plan<math warps 0 to 4 drives [tensor, threads], load warps 4 to 5 drives [tma]>>} : !q, !c, !c -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x16x192xbf16>
!k = tensor<1x512x1x192xbf16>
func.func @without(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'k_slices' is left out without 'latent', but got 2}}
  // expected-note @+1 {{leave 'k_slices' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention, k_slices = 2>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<1x1x16x192xbf16>
!c = tensor<1x512x1x192xbf16>
!o = tensor<1x1x16x128xbf16>
func.func @order(%q: !q, %c: !c) -> !o {
  // expected-error @+2 {{has kernels of 'latent' for 'in_blocks' 64 and 'growth' 0, but got #fp4.key_order<in_blocks = 128, growth = 0.000000e+00>}}
  // expected-note @+1 {{write 'order <in_blocks = 64, growth = 0.0>'}}
  %o = fp4.attention %q, %c, %c scale 1.0 order <in_blocks = 128, growth = 0.0> latent 128 : !q, !c, !c -> !o
  return %o : !o
}
