// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=TCGEN05

// Keys of a block are as many as registers have room for beside the sums of a head, but 26 blocks of
// 160 keys, an even number, take longer than 32 of 128.
// With tcgen05, a tile has two parts of 128 rows, each of a role of threads.
// CHECK-LABEL: func.func @one
// TCGEN05-LABEL: func.func @one
// TCGEN05: fp4.attention {{.*}}#fp4.plan<tile_attention, tile = [256, 64, 1], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 9 to 10 drives [tma] registers 40, mma warps 8 to 9 drives [tensor] registers 40, softmax warps 0 to 4 drives [threads] registers 232, softmax1 warps 4 to 8 drives [threads] registers 232 auxiliary, idle warps 10 to 12 drives [] registers 40>, ctas_per_sm = 1>
// CHECK: fp4.attention {{.*}}#fp4.plan<tile_attention, tile = [128, 128, 1], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 8 drives [tensor, threads] registers 240
!t = tensor<1x4096x8x128xbf16>
func.func @one(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// An odd number of blocks has 160 keys.
// CHECK-LABEL: func.func @odd
// CHECK: tile = [128, 160, 1]
!t = tensor<1x2048x8x128xbf16>
func.func @odd(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Three warpgroups have registers for the sums of 64 elements.
// CHECK-LABEL: func.func @narrow
// CHECK: tile = [192, 128, 1], {{.*}}math warps 0 to 12 drives [tensor, threads] registers 160 in_turn products, {{.*}}stages = 4
!t = tensor<1x1024x8x64xbf16>
func.func @narrow(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// With a causal mask they gain less than six tiles of 192 rows lose beside eight of 128.
// CHECK-LABEL: func.func @narrow_causal
// CHECK: tile = [128, 128, 1], {{.*}}stages = 5
!t = tensor<1x1024x8x64xbf16>
func.func @narrow_causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}

// -----

// A thread with a whole row has no registers for the sums of 256 elements: warps multiply.
// CHECK-LABEL: func.func @wide
// CHECK: tile = [128, 80, 1]
// TCGEN05-LABEL: func.func @wide
// TCGEN05: fp4.attention {{.*}}#fp4.plan<warp_attention, k_slices = 1, threads = 256, ctas_per_sm = 1>
!t = tensor<1x4096x8x256xbf16>
func.func @wide(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Tiles of a quarter as many heads as there are SMs are in order of length where L2 has their keys.
// CHECK-LABEL: func.func @several
// CHECK: tile = [128, 128, 1], schedule = #pipe.static_persistent<panels<33> serpentine = true>
!t = tensor<16x1024x16x128xbf16>
func.func @several(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Panels of a power of two of heads are not turned around. Half of the keys are in blocks of 160,
// which leave less of the last one than blocks of 144.
// CHECK-LABEL: func.func @long
// CHECK: tile = [128, 160, 1], schedule = #pipe.static_persistent<panels<4>>
!t = tensor<1x16384x16x128xbf16>
func.func @long(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}

// -----

// L2 has no room for the keys and values of one head of 64 MiB.
// CHECK-LABEL: func.func @longest
// CHECK: schedule = #pipe.static_persistent<along_n serpentine = true>
!t = tensor<1x131072x2x128xbf16>
func.func @longest(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Heads that share keys are rows of a tile of few tokens, and CTAs of a cluster share its keys where
// tiles are fewer than SMs.
// Beside tcgen05 they do not: warps multiply where tiles would be mostly empty.
// TCGEN05-LABEL: func.func @decode
// TCGEN05: #fp4.plan<warp_attention
// CHECK-LABEL: func.func @decode
// CHECK: tile = [64, 128, 4], cluster = [5, 1], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 4 to 5 drives [tma], math warps 0 to 4 drives [tensor, threads]>
!q = tensor<2x1x32x128xbf16>
!k = tensor<2x4096x8x128xbf16>
func.func @decode(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// -----

// Many sequences fill the SMs, and a group of 7 heads has room for 8.
// CHECK-LABEL: func.func @batch
// CHECK: tile = [64, 160, 8], schedule
!q = tensor<132x4x28x128xbf16>
!k = tensor<132x4096x4x128xbf16>
func.func @batch(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !q, !k, !k -> !q
  return %o : !q
}

// -----

// Few queries over quantized keys: all CTAs run at a time, and have the keys of a sequence in parts.
// CHECK-LABEL: func.func @codes
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 512, ctas_per_sm = 1>
!q = tensor<1x1x32x128xbf16>
!k = tensor<1x16384x8x128xf8E4M3FN>
func.func @codes(%q: !q, %k: !k) -> !q {
  %o = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// -----

// Neighbouring heads of codes share a CTA if all CTAs then run at a time.
// CHECK-LABEL: func.func @many_sequences
// CHECK: #fp4.plan<warp_attention, k_slices = 1, strip = 4, threads = 512, ctas_per_sm = 1>
!q = tensor<64x1x32x128xbf16>
!k = tensor<64x1024x8x128xf8E4M3FN>
func.func @many_sequences(%q: !q, %k: !k) -> !q {
  %o = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// -----

// CTAs have two heads of one long sequence of NVFP4, and one of a shorter sequence, of heads of 256,
// of MXFP4, and of as many sequences as take a CTA for each head.
// CHECK-LABEL: func.func @pairs
// CHECK: #fp4.plan<warp_attention, k_slices = 32, strip = 2, threads = 512, ctas_per_sm = 1>
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 512, ctas_per_sm = 1>
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 256, ctas_per_sm = 1>
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 512, ctas_per_sm = 1>
// CHECK: #fp4.plan<warp_attention, k_slices = 1, threads = 512, ctas_per_sm = 1>
!q = tensor<1x1x32x128xbf16>
!k = tensor<1x131072x8x128xf4E2M1FN>
!s = tensor<1x131072x8x8xf8E4M3FN>
!e = tensor<1x131072x8x4xf8E8M0FNU>
!short = tensor<1x131056x8x128xf4E2M1FN>
!t = tensor<1x131056x8x8xf8E4M3FN>
!wide_q = tensor<1x1x32x256xbf16>
!wide = tensor<1x131072x8x256xf4E2M1FN>
!w = tensor<1x131072x8x16xf8E4M3FN>
!many_q = tensor<16x1x32x128xbf16>
!many = tensor<16x8192x8x128xf4E2M1FN>
!m = tensor<16x8192x8x8xf8E4M3FN>
func.func @pairs(%q: !q, %k: !k, %s: !s, %e: !e, %short: !short, %t: !t, %wq: !wide_q, %wide: !wide, %w: !w,
                 %mq: !many_q, %many: !many, %m: !m) -> (!q, !q, !wide_q, !q, !many_q) {
  %0 = fp4.attention %q, %k, %k scales(%s, %s : !s, !s) scale 1.0 : !q, !k, !k -> !q
  %1 = fp4.attention %q, %short, %short scales(%t, %t : !t, !t) scale 1.0 : !q, !short, !short -> !q
  %2 = fp4.attention %wq, %wide, %wide scales(%w, %w : !w, !w) scale 1.0 : !wide_q, !wide, !wide -> !wide_q
  %3 = fp4.attention %q, %k, %k scales(%e, %e : !e, !e) scale 1.0 : !q, !k, !k -> !q
  %4 = fp4.attention %mq, %many, %many scales(%m, %m : !m, !m) scale 1.0 : !many_q, !many, !many -> !many_q
  return %0, %1, %2, %3, %4 : !q, !q, !wide_q, !q, !many_q
}

// -----

// Bytes with scales in pages have registers of half as many warps, and those without pages not.
// CHECK-LABEL: func.func @pages_of_bytes
// CHECK: #fp4.plan<warp_attention, k_slices = 1, threads = 256, ctas_per_sm = 1>
// CHECK: #fp4.plan<warp_attention, k_slices = 1, threads = 512, ctas_per_sm = 1>
!q = tensor<16x1x32x128xbf16>
!c = tensor<4096x16x8x128xf8E4M3FN>
!s = tensor<4096x16x8x4xf8E8M0FNU>
!k = tensor<16x4096x8x128xf8E4M3FN>
!t = tensor<16x4096x8x4xf8E8M0FNU>
func.func @pages_of_bytes(%q: !q, %c: !c, %s: !s, %k: !k, %t: !t, %n: tensor<16xi32>, %p: tensor<16x256xi32>) -> (!q, !q) {
  %o = fp4.attention %q, %c, %c scales(%s, %s : !s, !s) lengths(%n : tensor<16xi32>) pages(%p : tensor<16x256xi32>) scale 1.0 : !q, !c, !c -> !q
  %r = fp4.attention %q, %k, %k scales(%t, %t : !t, !t) scale 1.0 : !q, !k, !k -> !q
  return %o, %r : !q, !q
}

// -----

// So it is with small heads, and where there are many bytes of keys.
// CHECK-LABEL: func.func @small_heads
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 512, ctas_per_sm = 1>
// CHECK: #fp4.plan<tile_attention
// CHECK: #fp4.plan<warp_attention, k_slices = 16, threads = 256, ctas_per_sm = 1>
!q = tensor<1x1x64x64xbf16>
!k = tensor<1x16384x8x64xbf16>
!p = tensor<1x1x32x128xbf16>
!j = tensor<1x4096x8x128xbf16>
!i = tensor<1x131072x8x128xbf16>
func.func @small_heads(%q: !q, %k: !k, %p: !p, %j: !j, %i: !i) -> (!q, !p, !p) {
  %a = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  %b = fp4.attention %p, %j, %j scale 1.0 : !p, !j, !j -> !p
  %c = fp4.attention %p, %i, %i scale 1.0 : !p, !i, !i -> !p
  return %a, %b, %c : !q, !p, !p
}
