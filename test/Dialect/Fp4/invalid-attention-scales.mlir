// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Attention over codes with scales, of a head, of a sequence, or of blocks. The first operation of a
// case is legal, the second differs from it in what the constraint is about.

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
func.func @one_format(%q: !q, %k: !k, %v: tensor<2x96x2x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C2)
  // expected-error @+2 {{operand 'value' must have the elements of operand 'key', but got 'tensor<2x96x2x128xbf16>'}}
  // expected-note @+1 {{keys and values are of one format}}
  %1 = fp4.attention %q, %k, %v scale 1.0 : !q, !k, tensor<2x96x2x128xbf16> -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xf4E2M1FN>
!s = tensor<2x96x2x8xf8E4M3FN>
func.func @scales(%q: !q, %k: !k, %s: !s) {
  %0 = fp4.attention %q, %k, %k scales(%s, %s : !s, !s) scale 1.0 : !q, !k, !k -> !q
  // attention (C9)
  // expected-error @+2 {{operand 'key' of f4E2M1FN must come with 'scales', but got none}}
  // expected-note @+1 {{pass the scales of the blocks of keys and values}}
  %1 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xf16>
!k = tensor<2x96x2x128xf4E2M1FN>
!s = tensor<2x96x2x4xf8E8M0FNU>
func.func @scales_of_f16(%q: !q, %k: !k, %s: !s) {
  // attention (C9)
  // expected-error @+2 {{operand 'key_scales' must have elements f8E4M3FN beside f4E2M1FN, or f8E8M0FNU beside a query of bf16, but got}}
  // expected-note @+1 {{NVFP4 has a scale of f8E4M3FN for 16 elements, MXFP4 and MXFP8 one of f8E8M0FNU for 32}}
  %1 = fp4.attention %q, %k, %k scales(%s, %s : !s, !s) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xf4E2M1FN>
!s = tensor<2x96x2x8xf8E4M3FN>
!t = tensor<2x96x2x4xf8E4M3FN>
func.func @size_of_scales(%q: !q, %k: !k, %s: !s, %t: !t) {
  // attention (C9)
  // expected-error @+2 {{operand 'value_scales' must be 'tensor<2x96x2x8xf8E4M3FN>', but got 'tensor<2x96x2x4xf8E4M3FN>'}}
  // expected-note @+1 {{write a scale for each 16 elements of a head}}
  %1 = fp4.attention %q, %k, %k scales(%s, %t : !s, !t) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
!s = tensor<2x96x2x8xf8E4M3FN>
func.func @scales_of_numbers(%q: !q, %k: !k, %s: !s) {
  // attention (C9)
  // expected-error @+2 {{operand 'key_scales' must come with keys of f8E4M3FN or f4E2M1FN, but got 'tensor<2x96x2x128xbf16>'}}
  // expected-note @+1 {{elements of the query's type are as they are}}
  %1 = fp4.attention %q, %k, %k scales(%s, %s : !s, !s) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
!f = tensor<2xf32>
!g = tensor<3xf32>
func.func @factors(%q: !q, %k: !k, %f: !f, %g: !g) {
  %0 = fp4.attention %q, %k, %k factors(%f, %f : !f, !f) scale 1.0 : !q, !k, !k -> !q
  // attention (C10)
  // expected-error @+2 {{operand 'value_factors' must have 1 f32, or the 2 of the heads of operand 'key', but got 'tensor<3xf32>'}}
  // expected-note @+1 {{a factor multiplies all keys, or all values, of a head}}
  %1 = fp4.attention %q, %k, %k factors(%f, %g : !f, !g) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xf8E4M3FN>
!k = tensor<2x96x2x128xf8E4M3FN>
!o = tensor<2x64x8x128xbf16>
!f = tensor<2x2xf32>
!g = tensor<1x2xf32>
func.func @factors_of_sequences(%q: !q, %k: !k, %f: !f, %g: !g) {
  %0 = fp4.attention %q, %k, %k factors(%f, %f : !f, !f) scale 1.0 : !q, !k, !k -> !o
  // attention (C10)
  // expected-error @+2 {{operand 'value_factors' must have 1 f32, or the 2 of the heads of operand 'key', or as many for each of the 2 sequences, but got 'tensor<1x2xf32>'}}
  // expected-note @+1 {{a factor multiplies all keys, or all values, of a head}}
  %1 = fp4.attention %q, %k, %k factors(%f, %g : !f, !g) scale 1.0 : !q, !k, !k -> !o
  return
}

// -----

!q = tensor<2x64x8x128xf8E4M3FN>
!k = tensor<2x96x2x128xf8E4M3FN>
!o = tensor<2x64x8x128xbf16>
func.func @result_of_bytes(%q: !q, %k: !k) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !o
  // attention (C6)
  // expected-error @+1 {{result 'result' must be 'tensor<2x64x8x128xbf16>', but got 'tensor<2x64x8x128xf8E4M3FN>'}}
  %1 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xf8E4M3FN>
!k = tensor<2x96x2x128xf8E4M3FN>
!b = tensor<2x96x2x128xbf16>
!o = tensor<2x64x8x128xbf16>
func.func @keys_of_bytes(%q: !q, %k: !k, %b: !b) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !o
  // attention (C2)
  // expected-error @+2 {{operand 'key' must have elements of the query, bf16 or f16, or f8E4M3FN or f4E2M1FN, but got 'tensor<2x96x2x128xbf16>'}}
  // expected-note @+1 {{convert it with arith.truncf or arith.extf, or quantize it}}
  %1 = fp4.attention %q, %b, %b scale 1.0 : !q, !b, !b -> !o
  return
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!o = tensor<4xi32>
func.func @packed_codes(%q: !q, %k: !k, %codes: tensor<?x2x128xf8E4M3FN>, %o: !o) -> !q {
  %0 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  // attention (C15)
  // expected-error @+2 {{operand 'key' must have the elements of operand 'query' beside 'key_offsets', but got 'tensor<?x2x128xf8E4M3FN>'}}
  // expected-note @+1 {{codes are of caches, which have 'lengths' and 'pages'}}
  %1 = fp4.attention %q, %codes, %codes query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, tensor<?x2x128xf8E4M3FN>, tensor<?x2x128xf8E4M3FN> -> !q
  return %0 : !q
}

// -----

!q = tensor<2x1x16x192xbf16>
!c = tensor<2x96x1x192xf8E4M3FN>
!o = tensor<2x1x16x128xbf16>
func.func @latent_codes(%q: !q, %c: !c) {
  // attention (C18)
  // expected-error @+2 {{latent must come with one operand 'key' and 'value', of the elements of operand 'query', but got codes}}
  // expected-note @+1 {{write the latent cache twice: its rows are keys, and their first elements values}}
  %1 = fp4.attention %q, %c, %c scale 1.0 latent 128 : !q, !c, !c -> !o
  return
}

// -----

!q = tensor<2x200x4x128xf4E2M1FN>
!k = tensor<2x192x2x128xf4E2M1FN>
!v = tensor<2x2x64x192xf4E2M1FN>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x200x4x64xbf16>
func.func @block_scales(%q: !q, %k: !k, %v: !v, %qs: !qs, %ks: !ks, %vs: !vs, %n: tensor<2xi32>) {
  %0 = fp4.attention %q, %k, %v block_scales(%qs, %ks, %vs : !qs, !ks, !vs) lengths(%n : tensor<2xi32>) scale 1.0 : !q, !k, !v -> !o
  // attention (C19)
  // expected-error @+2 {{operand 'key_scales' must be 'tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{each head of a sequence has a multiple of 128 rows, of its tokens, or of values its elements}}
  %1 = fp4.attention %q, %k, %v block_scales(%qs, %qs, %vs : !qs, !qs, !vs) scale 1.0 : !q, !k, !v -> !o
  return
}

// -----

!q = tensor<2x200x4x128xf4E2M1FN>
!k = tensor<2x192x2x128xf4E2M1FN>
!v = tensor<2x2x64x192xf4E2M1FN>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x200x4x64xbf16>
!w = tensor<2x192x2x64xbf16>
!w8 = tensor<2x192x2x64xf8E4M3FN>
func.func @block_scaled_values(%q: !q, %k: !k, %v: !w, %u: !w8, %qs: !qs, %ks: !ks) {
  %0 = fp4.attention %q, %k, %u block_scales(%qs, %ks : !qs, !ks) scale 1.0 : !q, !k, !w8 -> !o
  // attention (C19)
  // expected-error @+2 {{operand 'value' must have elements f8E4M3FN without scales, or those of operand 'query' with scales, but got 'tensor<2x192x2x64xbf16>'}}
  // expected-note @+1 {{powers are e4m3 beside values without scales, and else of the format of all}}
  %1 = fp4.attention %q, %k, %v block_scales(%qs, %ks : !qs, !ks) scale 1.0 : !q, !k, !w -> !o
  return
}

// -----

!q = tensor<2x100x4x128xbf16>
!k = tensor<2x192x2x128xbf16>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @block_scaled_floats(%q: !q, %k: !k, %qs: !qs, %ks: !ks) {
  // attention (C19)
  // expected-error @+2 {{operand 'query' must have elements f8E4M3FN or f4E2M1FN beside 'block_scales', but got 'tensor<2x100x4x128xbf16>'}}
  // expected-note @+1 {{fp4.quantize makes codes and scales of MXFP8 or NVFP4}}
  %1 = fp4.attention %q, %k, %k block_scales(%qs, %ks : !qs, !ks) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x200x4x128xf4E2M1FN>
!k = tensor<2x192x2x128xf4E2M1FN>
!v = tensor<2x2x64x192xf4E2M1FN>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x200x4x64xbf16>
!k8 = tensor<2x192x2x128xf8E4M3FN>
!w8 = tensor<2x192x2x64xf8E4M3FN>
func.func @block_scaled_keys(%q: !q, %k: !k8, %v: !w8, %qs: !qs, %ks: !ks) {
  // attention (C19)
  // expected-error @+2 {{operand 'key' must have the elements of operand 'query' beside 'block_scales', but got 'tensor<2x192x2x128xf8E4M3FN>'}}
  // expected-note @+1 {{one instruction multiplies both}}
  %1 = fp4.attention %q, %k, %v block_scales(%qs, %ks : !qs, !ks) scale 1.0 : !q, !k8, !w8 -> !o
  return
}

// -----

!q = tensor<2x200x4x128xf4E2M1FN>
!k = tensor<2x192x2x128xf4E2M1FN>
!v = tensor<2x2x64x192xf4E2M1FN>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x200x4x64xbf16>
!p = tensor<2x6xi32>
!c = tensor<12x32x2x128xf4E2M1FN>
!w8 = tensor<12x32x2x64xf8E4M3FN>
func.func @block_scaled_pages(%q: !q, %c: !c, %v: !w8, %qs: !qs, %ks: !ks, %n: tensor<2xi32>, %p: !p) {
  // attention (C19)
  // expected-error @+2 {{block_scales must come without 'pages', offsets and 'latent', but got 'pages'}}
  // expected-note @+1 {{tiles of 128 rows have their scales together: pad each sequence}}
  %1 = fp4.attention %q, %c, %v block_scales(%qs, %ks : !qs, !ks) lengths(%n : tensor<2xi32>) pages(%p : !p) scale 1.0 : !q, !c, !w8 -> !o
  return
}

// -----

!q = tensor<2x200x4x128xf4E2M1FN>
!k = tensor<2x192x2x128xf4E2M1FN>
!v = tensor<2x2x64x192xf4E2M1FN>
!qs = tensor<2048x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<1024x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<512x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x200x4x64xbf16>
func.func @packed_without_scales(%q: !q, %k: !k, %v: !v) {
  // attention (C2)
  // expected-error @+2 {{operand 'query' must have elements of type bf16, f16 or f8E4M3FN, but got 'tensor<2x200x4x128xf4E2M1FN>'}}
  // expected-note @+1 {{convert it with arith.truncf}}
  %1 = fp4.attention %q, %k, %v scale 1.0 : !q, !k, !v -> !o
  return
}

// -----

!q = tensor<2x100x4x128xf8E4M3FN>
!qs = tensor<1024x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!o = tensor<2x100x4x128xbf16>
func.func @few_scales(%q: !q, %qs: !qs) {
  // expected-error @+2 {{expects two or three scales and their types, but got 1 and 1}}
  // expected-note @+1 {{write scales of queries, keys and, if they have any, values}}
  %1 = fp4.attention %q, %q, %q block_scales(%qs : !qs) scale 1.0 : !q, !q, !q -> !o
  return
}

// -----

!q = tensor<4x64x8x128xbf16>
!k = tensor<2x96x2x128xf8E4M3FN>
func.func @shared_codes(%q: !q, %k: !k, %all: tensor<4x96x2x128xf8E4M3FN>) {
  %0 = fp4.attention %q, %all, %all scale 1.0 : !q, tensor<4x96x2x128xf8E4M3FN>, tensor<4x96x2x128xf8E4M3FN> -> !q
  // attention (C3)
  // expected-error @+2 {{operand 'key' must have the 4 batches of operand 'query', but got 'tensor<2x96x2x128xf8E4M3FN>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  return
}
