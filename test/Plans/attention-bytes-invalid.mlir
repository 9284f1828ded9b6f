// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_120a -fp4-plan-kernels -verify-diagnostics

// Queries of 8 bits, or 4, where no core multiplies them in attention.

!q = tensor<1x200x2x128xf8E4M3FN>
!o = tensor<1x200x2x128xbf16>
func.func @bytes(%q: !q) -> !o {
  // expected-error @+2 {{has kernels of queries of f8E4M3FN with wgmma or tcgen05, but target sm_120a has none}}
  // expected-note @+1 {{convert queries to bf16: keys and values of f8E4M3FN are a quantized cache}}
  %o = fp4.attention %q, %q, %q scale 1.0 : !q, !q, !q -> !o
  return %o : !o
}

// -----

// Values with scales have rows of whole blocks and loads.

!q = tensor<1x200x2x128xf8E4M3FN>
!k = tensor<1x256x2x128xf8E4M3FN>
!v = tensor<1x2x128x256xf8E4M3FN>
!l = tensor<1x240x2x128xf8E4M3FN>
!w = tensor<1x2x128x240xf8E4M3FN>
!s = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t = tensor<256x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x128xbf16>
func.func @block_scales(%q: !q, %k: !k, %v: !v, %l: !l, %w: !w, %s: !s, %t: !t) -> (!o, !o) {
  %fits = fp4.attention %q, %k, %v block_scales(%s, %s, %t : !s, !s, !t) scale 1.0 : !q, !k, !v -> !o
  // expected-error @+2 {{has kernels for values with scales of a multiple of 32 keys, but operand 'value' has 240}}
  // expected-note @+1 {{append keys, and write 'lengths'}}
  %o = fp4.attention %q, %l, %w block_scales(%s, %s, %t : !s, !s, !t) scale 1.0 : !q, !l, !w -> !o
  return %fits, %o : !o, !o
}

// -----

!q = tensor<1x200x2x96xf8E4M3FN>
!v = tensor<1x200x2x64xf8E4M3FN>
!s = tensor<512x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x64xbf16>
func.func @head(%q: !q, %v: !v, %s: !s) -> !o {
  // expected-error @+2 {{has kernels for heads of 64, 128, 192 or 256 elements, but operand 'key' has 96}}
  // expected-note @+1 {{append zeros to the heads of query and key, or of value}}
  %o = fp4.attention %q, %q, %v block_scales(%s, %s : !s, !s) scale 1.0 : !q, !q, !v -> !o
  return %o : !o
}

// -----

!q = tensor<1x200x2x128xf8E4M3FN>
!s = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x128xbf16>
func.func @tiles(%q: !q, %s: !s) -> !o {
  // expected-error @+2 {{has tiles of 'block_scales' with tcgen05, but target sm_120a has none}}
  // expected-note @+1 {{leave the plan out where the target has mma.sync with block_scale, or dequantize queries to bf16}}
  %o = fp4.attention %q, %q, %q block_scales(%s, %s : !s, !s) scale 1.0 {fp4.plan = #fp4.plan<tile_attention>} : !q, !q, !q -> !o
  return %o : !o
}
