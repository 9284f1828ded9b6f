// ptxas accepts attention of blocks with scales for sm_120a without spills: one token and eight rows, and tiles of 16
// rows, of NVFP4 and of MXFP8, beside values of e4m3 and with scales of values.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_120a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: nv_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: nv_tile_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: mx_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: mx_tile_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: nv_all_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: nv_all_wide_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: mx_all_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: mx_all_wide_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!n = tensor<16x1x8x128xf4E2M1FN>
!m = tensor<1x512x8x128xf4E2M1FN>
!k = tensor<16x4096x1x128xf4E2M1FN>
!v = tensor<16x4096x1x128xf8E4M3FN>
!w = tensor<1x512x8x128xf8E4M3FN>
!ns = tensor<16384x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<65536x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ms = tensor<4096x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @nv(%q: !n, %k: !k, %v: !v, %s: !ns, %t: !ks) -> tensor<16x1x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %t : !ns, !ks) scale 0.09 : !n, !k, !v -> tensor<16x1x8x128xbf16>
  return %o : tensor<16x1x8x128xbf16>
}
func.func @nv_tile(%q: !m, %k: !m, %v: !w, %s: !ms) -> tensor<1x512x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s : !ms, !ms) scale 0.09 causal : !m, !m, !w -> tensor<1x512x8x128xbf16>
  return %o : tensor<1x512x8x128xbf16>
}

!bn = tensor<16x1x8x128xf8E4M3FN>
!bs = tensor<16384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!bt = tensor<65536x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!bu = tensor<4096x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @mx(%q: !bn, %k: !v, %v: !v, %s: !bs, %t: !bt) -> tensor<16x1x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %t : !bs, !bt) scale 0.09 : !bn, !v, !v -> tensor<16x1x8x128xbf16>
  return %o : tensor<16x1x8x128xbf16>
}
func.func @mx_tile(%q: !w, %k: !w, %v: !w, %s: !bu) -> tensor<1x512x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s : !bu, !bu) scale 0.09 causal : !w, !w, !w -> tensor<1x512x8x128xbf16>
  return %o : tensor<1x512x8x128xbf16>
}

!nr = tensor<1x8x128x512xf4E2M1FN>
!nt = tensor<1024x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!nw = tensor<1x256x2x256xf4E2M1FN>
!nx = tensor<1x2x256x256xf4E2M1FN>
!ny = tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @nv_all(%q: !m, %k: !m, %v: !nr, %s: !ms, %t: !nt) -> tensor<1x512x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %t : !ms, !ms, !nt) scale 0.09 causal : !m, !m, !nr -> tensor<1x512x8x128xbf16>
  return %o : tensor<1x512x8x128xbf16>
}
func.func @nv_all_wide(%q: !nw, %k: !nw, %v: !nx, %s: !ny) -> tensor<1x256x2x256xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %s : !ny, !ny, !ny) scale 0.09 causal : !nw, !nw, !nx -> tensor<1x256x2x256xbf16>
  return %o : tensor<1x256x2x256xbf16>
}

!mr = tensor<1x8x128x512xf8E4M3FN>
!mt = tensor<1024x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!mw = tensor<1x256x2x256xf8E4M3FN>
!mx = tensor<1x2x256x256xf8E4M3FN>
!my = tensor<512x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @mx_all(%q: !w, %k: !w, %v: !mr, %s: !bu, %t: !mt) -> tensor<1x512x8x128xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %t : !bu, !bu, !mt) scale 0.09 causal : !w, !w, !mr -> tensor<1x512x8x128xbf16>
  return %o : tensor<1x512x8x128xbf16>
}
func.func @mx_all_wide(%q: !mw, %k: !mw, %v: !mx, %s: !my) -> tensor<1x256x2x256xbf16> {
  %o = fp4.attention %q, %k, %v block_scales(%s, %s, %s : !my, !my, !my) scale 0.09 causal : !mw, !mw, !mx -> tensor<1x256x2x256xbf16>
  return %o : tensor<1x256x2x256xbf16>
}
