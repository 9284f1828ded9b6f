// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics

!t = tensor<1x64x8x128xbf16>
!q = tensor<1x64x8x96xbf16>
func.func @elements(%q: !q, %k: !q, %v: !t) -> !t {
  // expected-error @+2 {{has kernels for heads of 64, 128, 192 or 256 elements, but operand 'query' has 96}}
  // expected-note @+1 {{append zeros to the heads of query and key, or of value}}
  %o = fp4.attention %q, %k, %v scale 1.0 : !q, !q, !t -> !t
  return %o : !t
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x100x8x128xbf16>
func.func @batches(%q: !q, %k: !k, %v: !k) -> !q {
  // expected-error @+2 {{of several batches has kernels for a multiple of 16 keys, but operand 'key' has 100}}
  // expected-note @+1 {{run the batches one by one}}
  %o = fp4.attention %q, %k, %v scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x8x128xbf16>
func.func @tile(%q: !q, %k: !k, %v: !k) -> !q {
  // expected-error @+2 {{must have a plan whose 'tile' is [128, N], N a multiple of 16 up to 256, and of several batches a divisor of the keys, but got [128, 64]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %o = fp4.attention %q, %k, %v scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 64]>} : !q, !k, !k -> !q
  return %o : !q
}
