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

!q = tensor<1x200x2x128xf8E4M3FN>
!s = tensor<512x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<1x200x2x128xbf16>
func.func @block_scales(%q: !q, %s: !s) -> !o {
  // expected-error @+2 {{has kernels of 'block_scales' with tcgen05, but target sm_120a has none}}
  // expected-note @+1 {{dequantize queries to bf16: keys and values may be a quantized cache}}
  %o = fp4.attention %q, %q, %q block_scales(%s, %s : !s, !s) scale 1.0 : !q, !q, !q -> !o
  return %o : !o
}
