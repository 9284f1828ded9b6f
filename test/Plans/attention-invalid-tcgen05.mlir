// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-plan-kernels -verify-diagnostics

!q = tensor<2x256x8x128xbf16>
!k = tensor<2x512x2x128xbf16>
func.func @twin(%q: !q, %k: !k) -> !q {
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [256, 64, 1]>} : !q, !k, !k -> !q
  return %o : !q
}
func.func @tile(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'tile' is [256, N, H], N 64, or 128 where 512 columns of tensor memory have room, or the keys of 'in_blocks', and H 1, or a power of two from 4 to 64, but got [256, 128, 1]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [256, 128, 1]>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

// The order of an operation and the tile of its plan.
!q = tensor<2x256x8x64xbf16>
func.func @twin(%q: !q) -> !q {
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 0.0> {fp4.plan = #fp4.plan<tile_attention, tile = [256, 64, 1]>} : !q, !q, !q -> !q
  return %o : !q
}
func.func @order(%q: !q) -> !q {
  // expected-error @+2 {{must have a plan whose 'tile' is [256, N, H], N 64, or 128 where 512 columns of tensor memory have room, or the keys of 'in_blocks', and H 1, or a power of two from 1 to 64, but got [256, 128, 1]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 0.0> {fp4.plan = #fp4.plan<tile_attention, tile = [256, 128, 1]>} : !q, !q, !q -> !q
  return %o : !q
}
func.func @keys(%q: !q) -> !q {
  // expected-error @+2 {{has kernels with tcgen05 for 'in_blocks' 64, or 128 where 512 columns of tensor memory have room, but got 96}}
  // expected-note @+1 {{write 'order <in_blocks = 64, growth = 8.0>'}}
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 96, growth = 0.0> : !q, !q, !q -> !q
  return %o : !q
}
!v = tensor<2x256x8x128xbf16>
func.func @room(%q: !q, %v: !v) -> !v {
  // expected-error @+2 {{has kernels with tcgen05 for 'in_blocks' 64, or 128 where 512 columns of tensor memory have room, but got 128}}
  // expected-note @+1 {{write 'order <in_blocks = 64, growth = 8.0>'}}
  %o = fp4.attention %q, %q, %v scale 1.0 order <in_blocks = 128, growth = 0.0> : !q, !q, !v -> !v
  return %o : !v
}
func.func @warps(%q: !q) -> !q {
  // expected-error @+2 {{has kernels without 'order' but for tiles with tcgen05, but got #fp4.key_order<in_blocks = 64, growth = 0.000000e+00>}}
  // expected-note @+1 {{leave 'order' out: the order of other kernels is their own}}
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 0.0> {fp4.plan = #fp4.plan<warp_attention>} : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<2x256x8x128xbf16>
!k = tensor<2x512x2x128xbf16>
func.func @cluster(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'cluster' is left out beside tcgen05, but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention, cluster = [2, 1]>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x256x8x256xbf16>
!k = tensor<2x512x2x256xbf16>
func.func @values(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{has kernels with tcgen05 for heads of 64 or 128 elements of operand 'value', but got 256}}
  // expected-note @+1 {{family warp_attention has up to 256 elements}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<?x8x256xbf16>
!n = tensor<3xi32>
func.func @packed(%q: !q, %n: !n) -> !q {
  // expected-error @+2 {{has kernels of warps without 'query_offsets', but got these}}
  // expected-note @+1 {{family tile_attention takes packed sequences, with wgmma, or with tcgen05 for operand 'value' of 64 or 128 elements}}
  %o = fp4.attention %q, %q, %q query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<?x8x256xbf16>
!n = tensor<3xi32>
func.func @packed_tiles(%q: !q, %n: !n) -> !q {
  // expected-error @+2 {{has kernels with tcgen05 for heads of 64 or 128 elements of operand 'value', but got 256}}
  // expected-note @+1 {{take values of at most 128 elements: no other family has packed sequences}}
  %o = fp4.attention %q, %q, %q query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 {fp4.plan = #fp4.plan<tile_attention>} : !q, !q, !q -> !q
  return %o : !q
}

// -----

// The roles of a tile with two parts.
!q = tensor<2x256x8x64xbf16>
func.func @roles(%q: !q) -> !q {
  // expected-error @+2 {{must have a plan whose 'roles' drive the engine threads with 4 warps from a multiple of 4, but got #pipe.role_plan<load warps 9 to 10 drives [tma], mma warps 8 to 9 drives [tensor], softmax warps 0 to 8 drives [threads]>}}
  // expected-note @+1 {{leave 'roles' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %q, %q scale 1.0 {fp4.plan = #fp4.plan<tile_attention, roles = #pipe.role_plan<load warps 9 to 10 drives [tma], mma warps 8 to 9 drives [tensor], softmax warps 0 to 8 drives [threads]>>} : !q, !q, !q -> !q
  return %o : !q
}

// -----

// Powers of e4m3 are up to 2^8.
!q = tensor<1x200x2x128xf8E4M3FN>
!o = tensor<1x200x2x128xbf16>
func.func @twin(%q: !q) -> !o {
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 8.0> : !q, !q, !q -> !o
  return %o : !o
}
func.func @bytes(%q: !q) -> !o {
  // expected-error @+2 {{has kernels of queries of 8 bits, or 4, for 'growth' 0 to 8, but got #fp4.key_order<in_blocks = 64, growth = 9.000000e+00>}}
  // expected-note @+1 {{powers are up to 2^8, or 2688 of NVFP4, which the largest numbers of their types limit}}
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 9.0> : !q, !q, !q -> !o
  return %o : !o
}

// -----

// Rows of values of 4 bits are multiples of 16 bytes.
!q = tensor<1x200x2x128xf4E2M1FN>
!k = tensor<1x160x2x128xf4E2M1FN>
!s = tensor<512x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<512x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!v = tensor<1x2x128x160xf4E2M1FN>
!u = tensor<256x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!l = tensor<1x150x2x128xf4E2M1FN>
!lt = tensor<512x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lv = tensor<1x2x128x150xf4E2M1FN>
!o = tensor<1x200x2x128xbf16>
func.func @twin(%q: !q, %k: !k, %v: !v, %s: !s, %t: !t, %u: !u) -> !o {
  %o = fp4.attention %q, %k, %v block_scales(%s, %t, %u : !s, !t, !u) scale 1.0 : !q, !k, !v -> !o
  return %o : !o
}
func.func @keys(%q: !q, %k: !l, %v: !lv, %s: !s, %t: !lt, %u: !u) -> !o {
  // expected-error @+2 {{has kernels for values with scales of a multiple of 32 keys, but operand 'value' has 150}}
  // expected-note @+1 {{append keys, and write 'lengths'}}
  %o = fp4.attention %q, %k, %v block_scales(%s, %t, %u : !s, !lt, !u) scale 1.0 : !q, !l, !lv -> !o
  return %o : !o
}

// -----

// Rows of 192 bytes are no whole lines of the widest swizzle.
!q = tensor<1x128x2x192xf8E4M3FN>
!s = tensor<256x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!v = tensor<1x128x2x128xf8E4M3FN>
!o = tensor<1x128x2x128xbf16>
func.func @mx(%q: !q, %v: !v, %s: !s) -> !o {
  // expected-error @+2 {{has kernels of MXFP8 for heads of 64, 128 or 256 elements, but operand 'query' has 192}}
  // expected-note @+1 {{append zeros to the heads of query and key}}
  %o = fp4.attention %q, %q, %v block_scales(%s, %s : !s, !s) scale 1.0 : !q, !q, !v -> !o
  return %o : !o
}

// -----

// A block of keys begins where a tile of the scales of values does.
!q = tensor<1x200x2x128xf8E4M3FN>
!k = tensor<1x160x2x128xf8E4M3FN>
!v = tensor<1x2x128x160xf8E4M3FN>
!s = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!u = tensor<256x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x128xbf16>
func.func @mx_twin(%q: !q, %k: !k, %v: !v, %s: !s, %u: !u) -> !o {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %u : !s, !s, !u) scale 1.0 order <in_blocks = 128, growth = 0.0> : !q, !k, !v -> !o
  return %o : !o
}
func.func @mx_block(%q: !q, %k: !k, %v: !v, %s: !s, %u: !u) -> !o {
  // expected-error @+2 {{has values of MXFP8, and 'in_blocks' must be 128, but got 64}}
  // expected-note @+1 {{write 'order <in_blocks = 128, growth = 0.0>'}}
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %u : !s, !s, !u) scale 1.0 order <in_blocks = 64, growth = 0.0> : !q, !k, !v -> !o
  return %o : !o
}

// -----

// Warps multiply blocks by mma.sync, which has no scales here.
!q = tensor<1x200x2x128xf8E4M3FN>
!s = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x128xbf16>
func.func @warps(%q: !q, %s: !s) -> !o {
  // expected-error @+2 {{has warps of 'block_scales' with mma.sync of sm_120a, but target sm_100a has none}}
  // expected-note @+1 {{family tile_attention has 'block_scales' with tcgen05}}
  %o = fp4.attention %q, %q, %q block_scales(%s, %s : !s, !s) scale 1.0 {fp4.plan = #fp4.plan<warp_attention>} : !q, !q, !q -> !o
  return %o : !o
}
