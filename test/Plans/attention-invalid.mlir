// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics

!t = tensor<1x64x8x128xbf16>
!q = tensor<1x64x8x80xbf16>
func.func @elements(%q: !q, %k: !q, %v: !t) -> !t {
  // expected-error @+2 {{has kernels for heads of multiples of 32 up to 256 elements, but operand 'query' has 80}}
  // expected-note @+1 {{append zeros to the heads of query and key, or of value}}
  %o = fp4.attention %q, %k, %v scale 1.0 : !q, !q, !t -> !t
  return %o : !t
}

// -----

!q = tensor<1x127x8x128xbf16>
!s = tensor<127x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @quantizer(%q: !q) -> (tensor<127x1024xf4E2M1FN>, !s) {
  // expected-error @+2 {{has no kernel for fp4.epilogue_quantize: kernels of few queries leave scales row-major, and nobody clears what pads tiles}}
  // expected-note @+1 {{quantize the result with fp4.quantize}}
  %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : !q, !q, !q -> quantized(tensor<127x1024xf4E2M1FN>, !s)
  return %c, %s : tensor<127x1024xf4E2M1FN>, !s
}

// -----

!q = tensor<1x127x8x128xbf16>
!s = tensor<127x32xf8E8M0FNU>
func.func @quantizer_of_tiles(%q: !q) -> (tensor<127x1024xf4E2M1FN>, !s) {
  // expected-error @+2 {{has no kernel for fp4.epilogue_quantize: warps have so few queries}}
  // expected-note @+1 {{quantize the result with fp4.quantize}}
  %c, %s = fp4.attention %q, %q, %q scale 1.0 epilogue {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } {fp4.plan = #fp4.plan<tile_attention>} : !q, !q, !q -> quantized(tensor<127x1024xf4E2M1FN>, !s)
  return %c, %s : tensor<127x1024xf4E2M1FN>, !s
}

// -----

!q = tensor<2x64x8x128xbf16>
!c = tensor<9x20x8x128xbf16>
func.func @pages(%q: !q, %k: !c, %n: tensor<2xi32>, %p: tensor<2x4xi32>) -> !q {
  // expected-error @+2 {{has kernels for pages of a multiple of 8 tokens, but those of operand 'key' have 20}}
  // expected-note @+1 {{pages of 16, 32, 64 or 128 tokens are usual}}
  %o = fp4.attention %q, %k, %k lengths(%n : tensor<2xi32>) pages(%p : tensor<2x4xi32>) scale 1.0 : !q, !c, !c -> !q
  return %o : !q
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @tile(%q: !q, %k: !k, %v: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'tile' is [128, N, H], N a multiple of 16 up to 256, and H 1, or a power of two from 4 to 64, but got [128, 64, 2]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %v scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 64, 2]>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x1x8x64xbf16>
!k = tensor<2x4096x1x64xbf16>
func.func @cluster(%q: !q, %k: !k, %v: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'cluster' is [S, 1], S at most 8, but got [16, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %v scale 1.0 {fp4.plan = #fp4.plan<tile_attention, cluster = [16, 1]>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x1x8x128xbf16>
!c = tensor<9x24x8x128xf8E4M3FN>
func.func @pages_of_codes(%q: !q, %k: !c, %n: tensor<2xi32>, %p: tensor<2x4xi32>) -> !q {
  // expected-error @+2 {{has kernels for pages of a multiple of 16 tokens, but those of operand 'key' have 24}}
  // expected-note @+1 {{pages of 16, 32, 64 or 128 tokens are usual}}
  %o = fp4.attention %q, %k, %k lengths(%n : tensor<2xi32>) pages(%p : tensor<2x4xi32>) scale 1.0 : !q, !c, !c -> !q
  return %o : !q
}

// -----

!q = tensor<2x1x8x192xbf16>
!k = tensor<2x96x2x192xf4E2M1FN>
!s = tensor<2x96x2x12xf8E4M3FN>
func.func @elements_of_codes(%q: !q, %k: !k, %s: !s) -> !q {
  // expected-error @+2 {{has kernels for heads of 64, 128 or 256 elements, but operand 'key' has 192}}
  // expected-note @+1 {{append zeros to the heads of query and key, or of value}}
  %o = fp4.attention %q, %k, %k scales(%s, %s : !s, !s) scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
func.func @threads(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'threads' are a power of two whose states fit in 49152 bytes of shared memory, but got 512}}
  // expected-note @+1 {{leave 'threads' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<warp_attention, threads = 512>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
func.func @parts(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'k_slices' is at most 6, but got 7}}
  // expected-note @+1 {{leave 'k_slices' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<warp_attention, k_slices = 7>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
func.func @family(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{has no kernel of family tile_attention}}
  // expected-note @+1 {{it has kernels of: warp_attention}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<1x200x2x96xf8E4M3FN>
!o = tensor<1x200x2x96xbf16>
func.func @elements_of_bytes(%q: !q) -> !o {
  // expected-error @+2 {{has kernels for heads of 64, 128, 192 or 256 elements, but operand 'query' has 96}}
  // expected-note @+1 {{append zeros to the heads of query and key, or of value}}
  %o = fp4.attention %q, %q, %q scale 1.0 : !q, !q, !q -> !o
  return %o : !o
}

// -----

!q = tensor<1x200x2x128xf8E4M3FN>
!o = tensor<1x200x2x128xbf16>
func.func @order_of_bytes(%q: !q) -> !o {
  // expected-error @+2 {{has kernels of queries of f8E4M3FN for 'in_blocks' 128 and 'growth' 0, but got #fp4.key_order<in_blocks = 64, growth = 0.000000e+00>}}
  // expected-note @+1 {{write 'order <in_blocks = 128, growth = 0.0>'}}
  %o = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 0.0> : !q, !q, !q -> !o
  return %o : !o
}

// -----

!q = tensor<1x200x2x128xf8E4M3FN>
!o = tensor<1x200x2x128xbf16>
func.func @tile_of_bytes(%q: !q) -> !o {
  // expected-error @+2 {{must have a plan whose 'tile' is [128, 128, H], and H 1, or a power of two from 1 to 64, but got [128, 64, 1]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %q, %q scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 64, 1]>} : !q, !q, !q -> !o
  return %o : !o
}

// -----

!q = tensor<1x1x2x128xf8E4M3FN>
!k = tensor<1x4096x2x128xf8E4M3FN>
!o = tensor<1x1x2x128xbf16>
func.func @cluster_of_bytes(%q: !q, %k: !k) -> !o {
  // expected-error @+2 {{must have a plan whose 'cluster' is left out beside queries of f8E4M3FN, but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<tile_attention, cluster = [2, 1]>} : !q, !k, !k -> !o
  return %o : !o
}

// -----

!q = tensor<2x1x12x128xbf16>
!k = tensor<2x96x6x128xf8E4M3FN>
func.func @strip(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'strip' is a power of two that divides the 6 heads of operand 'key', up to the warps of 'threads', but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<warp_attention, strip = 4>} : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x1x16x128xbf16>
!k = tensor<2x96x8x128xf8E4M3FN>
func.func @warps(%q: !q, %k: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'strip' is a power of two that divides the 8 heads of operand 'key', up to the warps of 'threads', but got 8}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %k scale 1.0 {fp4.plan = #fp4.plan<warp_attention, threads = 128, strip = 8>} : !q, !k, !k -> !q
  return %o : !q
}
