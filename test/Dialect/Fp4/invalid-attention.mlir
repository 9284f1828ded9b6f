// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Attention. The first operation of a case is legal, the second differs from it in what the
// constraint is about.

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @dimensions(%q: !q, %k: !k, %three: tensor<2x96x256xbf16>, %some: tensor<2x?x2x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C1)
  // expected-error @+2 {{operand 'value' must have 4 static, positive dimensions, but got 'tensor<2x96x256xbf16>'}}
  // expected-note @+1 {{write batch x tokens x heads x elements of a head}}
  %1 = fp4.attention %q, %k, %three scale 1.0 : !q, !k, tensor<2x96x256xbf16> -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @dynamic(%q: !q, %some: tensor<2x?x2x128xbf16>) {
  // attention (C1)
  // expected-error @+2 {{operand 'key' must have 4 static, positive dimensions, but got 'tensor<2x?x2x128xbf16>'}}
  // expected-note @+1 {{write batch x tokens x heads x elements of a head}}
  %1 = fp4.attention %q, %some, %some scale 1.0 : !q, tensor<2x?x2x128xbf16>, tensor<2x?x2x128xbf16> -> !q
  return
}

// -----

!q = tensor<2x64x8x128xf32>
func.func @query_elements(%q: !q) {
  // attention (C2)
  // expected-error @+2 {{operand 'query' must have elements of type bf16, f16 or f8E4M3FN, but got 'tensor<2x64x8x128xf32>'}}
  // expected-note @+1 {{convert it with arith.truncf}}
  %1 = fp4.attention %q, %q, %q scale 1.0 : !q, !q, !q -> !q
  return
}

// -----

!q = tensor<2x64x8x128xf16>
!k = tensor<2x96x2x128xf16>
func.func @elements(%q: !q, %k: !k, %other: tensor<2x96x2x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C2)
  // expected-error @+2 {{operand 'key' must have elements of the query, bf16 or f16, or f8E4M3FN or f4E2M1FN, but got 'tensor<2x96x2x128xbf16>'}}
  // expected-note @+1 {{convert it with arith.truncf or arith.extf, or quantize it}}
  %1 = fp4.attention %q, %other, %k scale 1.0 : !q, tensor<2x96x2x128xbf16>, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @agreement(%q: !q, %k: !k, %other: tensor<2x90x2x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C3)
  // expected-error @+2 {{operand 'value' must have the 96 tokens of operand 'key', but got 'tensor<2x90x2x128xbf16>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1 = fp4.attention %q, %k, %other scale 1.0 : !q, !k, tensor<2x90x2x128xbf16> -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @heads(%q: !q, %k: !k, %other: tensor<2x96x3x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C4)
  // expected-error @+2 {{operand 'query' must have a multiple of the 3 heads of operand 'key', but got 'tensor<2x64x8x128xbf16>'}}
  // expected-note @+1 {{the same number of query heads shares each head of keys}}
  %1 = fp4.attention %q, %other, %other scale 1.0 : !q, tensor<2x96x3x128xbf16>, tensor<2x96x3x128xbf16> -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @scale(%q: !q, %k: !k) {
  %0 = fp4.attention %q, %k, %k scale 0.5 : !q, !k, !k -> !q
  // attention (C5)
  // expected-error @+2 {{scale must be a finite, positive number, but got 0}}
  // expected-note @+1 {{1 over the square root of the elements of a head is usual; with 0 all keys have one weight}}
  %1 = fp4.attention %q, %k, %k scale 0.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
!v = tensor<2x96x2x64xbf16>
func.func @result(%q: !q, %k: !k, %v: !v) {
  %0 = fp4.attention %q, %k, %v scale 1.0 : !q, !k, !v -> tensor<2x64x8x64xbf16>
  // attention (C6)
  // expected-error @+1 {{result 'result' must be 'tensor<2x64x8x64xbf16>', but got 'tensor<2x64x8x128xbf16>'}}
  %1 = fp4.attention %q, %k, %v scale 1.0 : !q, !k, !v -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @lengths(%q: !q, %k: !k, %n: tensor<2xi32>, %other: tensor<3xi32>) {
  %0 = fp4.attention %q, %k, %k lengths(%n : tensor<2xi32>) scale 1.0 : !q, !k, !k -> !q
  // attention (C7)
  // expected-error @+2 {{operand 'lengths' must have the 2 batches of operand 'query', i32, but got 'tensor<3xi32>'}}
  // expected-note @+1 {{write the number of keys of each sequence}}
  %1 = fp4.attention %q, %k, %k lengths(%other : tensor<3xi32>) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!c = tensor<9x16x2x128xbf16>
func.func @pages(%q: !q, %k: !c, %n: tensor<2xi32>, %p: tensor<2x4xi32>, %other: tensor<8xi32>) {
  %0 = fp4.attention %q, %k, %k lengths(%n : tensor<2xi32>) pages(%p : tensor<2x4xi32>) scale 1.0 : !q, !c, !c -> !q
  // attention (C7)
  // expected-error @+2 {{operand 'pages' must have a row for each of the 2 batches of operand 'query', i32, but got 'tensor<8xi32>'}}
  // expected-note @+1 {{write the pages of each sequence, in the order of its keys}}
  %1 = fp4.attention %q, %k, %k lengths(%n : tensor<2xi32>) pages(%other : tensor<8xi32>) scale 1.0 : !q, !c, !c -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!c = tensor<9x16x2x128xbf16>
func.func @pages_alone(%q: !q, %k: !c, %p: tensor<2x4xi32>) {
  // attention (C8)
  // expected-error @+2 {{operand 'pages' must come with 'lengths', but got none}}
  // expected-note @+1 {{a sequence ends in the middle of a page}}
  %1 = fp4.attention %q, %k, %k pages(%p : tensor<2x4xi32>) scale 1.0 : !q, !c, !c -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!c = tensor<9x16x2x128xbf16>
!d = tensor<8x16x2x128xbf16>
func.func @pages_of_values(%q: !q, %k: !c, %v: !d, %n: tensor<2xi32>, %p: tensor<2x4xi32>) {
  // attention (C3)
  // expected-error @+2 {{operand 'value' must have the 9 pages of operand 'key', but got 'tensor<8x16x2x128xbf16>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1 = fp4.attention %q, %k, %v lengths(%n : tensor<2xi32>) pages(%p : tensor<2x4xi32>) scale 1.0 : !q, !c, !d -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @softcap(%q: !q, %k: !k) {
  %0 = fp4.attention %q, %k, %k scale 0.5 softcap 50.0 : !q, !k, !k -> !q
  // attention (C11)
  // expected-error @+2 {{softcap must be a finite, positive number, but got -5.000000e+01}}
  // expected-note @+1 {{leave 'softcap' out, and scores have no limit}}
  %1 = fp4.attention %q, %k, %k scale 0.5 softcap -50.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @window(%q: !q, %k: !k) {
  %0 = fp4.attention %q, %k, %k scale 0.5 causal window 1 : !q, !k, !k -> !q
  // attention (C12)
  // expected-error @+2 {{window must have a key or more, but got 0}}
  // expected-note @+1 {{leave 'window' out, and a query sees all keys up to its own}}
  %1 = fp4.attention %q, %k, %k scale 0.5 causal window 0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @window_alone(%q: !q, %k: !k) {
  %0 = fp4.attention %q, %k, %k scale 0.5 causal window 32 : !q, !k, !k -> !q
  // attention (C12)
  // expected-error @+2 {{window must come with 'causal', but got none}}
  // expected-note @+1 {{a window ends with the key of its query: write 'causal', or leave 'window' out}}
  %1 = fp4.attention %q, %k, %k scale 0.5 window 32 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @sinks(%q: !q, %k: !k, %s: tensor<8xf32>, %other: tensor<2xf32>) {
  %0 = fp4.attention %q, %k, %k sinks(%s : tensor<8xf32>) scale 0.5 : !q, !k, !k -> !q
  // attention (C13)
  // expected-error @+2 {{operand 'sinks' must be 'tensor<8xf32>', but got 'tensor<2xf32>'}}
  // expected-note @+1 {{write the logit of each head of operand 'query'}}
  %1 = fp4.attention %q, %k, %k sinks(%other : tensor<2xf32>) scale 0.5 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @lse(%q: !q, %k: !k) {
  %0, %l = fp4.attention %q, %k, %k scale 0.5 : !q, !k, !k -> !q, tensor<2x64x8xf32>
  // attention (C14)
  // expected-error @+1 {{result 'lse' must be 'tensor<2x64x8xf32>', but got 'tensor<2x8x64xf32>'}}
  %1, %m = fp4.attention %q, %k, %k scale 0.5 : !q, !k, !k -> !q, tensor<2x8x64xf32>
  return
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!o = tensor<4xi32>
func.func @packed_dimensions(%q: !q, %k: !k, %four: tensor<1x96x2x128xbf16>, %o: !o) -> !q {
  %0 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  // attention (C1)
  // expected-error @+2 {{operand 'key' must have 3 positive dimensions, of which the first may be dynamic, but got 'tensor<1x96x2x128xbf16>'}}
  // expected-note @+1 {{write tokens of all sequences x heads x elements of a head}}
  %1 = fp4.attention %q, %four, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, tensor<1x96x2x128xbf16>, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!o = tensor<4xi32>
func.func @packed_queries(%q: !q, %k: !k, %four: tensor<1x96x2x128xbf16>, %o: !o) -> !q {
  %0 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  // attention (C15)
  // expected-error @+2 {{operand 'query_offsets' must come with 'key_offsets' or 'pages', but got none}}
  // expected-note @+1 {{offsets say which keys the queries of each sequence see}}
  %1 = fp4.attention %q, %four, %four query_offsets(%o : !o) scale 1.0 : !q, tensor<1x96x2x128xbf16>, tensor<1x96x2x128xbf16> -> !q
  return %0 : !q
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!o = tensor<4xi32>
func.func @offsets(%q: !q, %k: !k, %o: !o, %few: tensor<3xi32>) -> !q {
  %0 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  // attention (C15)
  // expected-error @+2 {{operand 'key_offsets' must have an i32 for each sequence and one more, as 'query_offsets', but got 'tensor<3xi32>'}}
  // expected-note @+1 {{sequence b has the tokens from offset b up to offset b + 1}}
  %1 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%few : tensor<3xi32>) scale 1.0 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!o = tensor<4xi32>
func.func @offsets_or_lengths(%q: !q, %k: !k, %o: !o, %n: tensor<3xi32>) -> !q {
  %0 = fp4.attention %q, %k, %k query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  // attention (C15)
  // expected-error @+2 {{operand 'lengths' must be left out beside 'key_offsets', but got 'tensor<3xi32>'}}
  // expected-note @+1 {{offsets say how many keys each sequence has}}
  %1 = fp4.attention %q, %k, %k lengths(%n : tensor<3xi32>) query_offsets(%o : !o) key_offsets(%o : !o) scale 1.0 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @slopes(%q: !q, %k: !k, %a: tensor<8xf32>, %few: tensor<2xf32>) {
  %0 = fp4.attention %q, %k, %k slopes(%a : tensor<8xf32>) scale 1.0 : !q, !k, !k -> !q
  // attention (C16)
  // expected-error @+2 {{operand 'slopes' must be 'tensor<8xf32>', but got 'tensor<2xf32>'}}
  // expected-note @+1 {{write the slope of each head of operand 'query'}}
  %1 = fp4.attention %q, %k, %k slopes(%few : tensor<2xf32>) scale 1.0 : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x1x8x128xbf16>
!k = tensor<16x2x64x128xbf16>
!n = tensor<2xi32>
!p = tensor<2x8xi32>
func.func @heads_first(%q: !q, %k: !k, %n: !n, %p: !p, %all: tensor<2x2x64x128xbf16>) {
  %0 = fp4.attention %q, %k, %k lengths(%n : !n) pages(%p : !p) heads_first scale 1.0 : !q, !k, !k -> !q
  // attention (C17)
  // expected-error @+2 {{heads_first must come with 'pages', but got none}}
  // expected-note @+1 {{heads are in front of tokens in pages alone}}
  %1 = "fp4.attention"(%q, %all, %all) <{heads_first, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>, scale = 1.0 : f32}> ({}) : (!q, tensor<2x2x64x128xbf16>, tensor<2x2x64x128xbf16>) -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
func.func @blocks(%q: !q) {
  %0 = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 8.0> : !q, !q, !q -> !q
  // key_order (C1)
  // expected-error @+2 {{in_blocks must be a positive multiple of 16, and growth from 0 to 64, but got 64 and 6.500000e+01}}
  // expected-note @+1 {{write 'order <in_blocks = 128, growth = 8.0>', or leave the order out}}
  %1 = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 64, growth = 65.0> : !q, !q, !q -> !q
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
func.func @unit(%q: !q) {
  // key_order (C1)
  // expected-error @+2 {{in_blocks must be a positive multiple of 16, and growth from 0 to 64, but got 40 and 0.000000e+00}}
  // expected-note @+1 {{write 'order <in_blocks = 128, growth = 8.0>', or leave the order out}}
  %1 = fp4.attention %q, %q, %q scale 1.0 order <in_blocks = 40, growth = 0.0> : !q, !q, !q -> !q
  return
}

// -----

!q = tensor<2x1x16x192xbf16>
!c = tensor<2x96x1x192xbf16>
!o = tensor<2x1x16x128xbf16>
func.func @latent(%q: !q, %c: !c, %d: !c) {
  %0 = fp4.attention %q, %c, %c scale 1.0 latent 128 : !q, !c, !c -> !o
  // attention (C18)
  // expected-error @+2 {{latent must come with one operand 'key' and 'value', of the elements of operand 'query', but got two}}
  // expected-note @+1 {{write the latent cache twice: its rows are keys, and their first elements values}}
  %1 = fp4.attention %q, %c, %d scale 1.0 latent 128 : !q, !c, !c -> !o
  return
}

// -----

!q = tensor<2x1x16x192xbf16>
!c = tensor<2x96x1x192xbf16>
!o = tensor<2x1x16x256xbf16>
func.func @latent_elements(%q: !q, %c: !c) {
  // attention (C18)
  // expected-error @+2 {{latent must be from 1 to the 192 elements of a head of operand 'key', but got 256}}
  // expected-note @+1 {{write the elements of a head of values, such as 512}}
  %1 = fp4.attention %q, %c, %c scale 1.0 latent 256 : !q, !c, !c -> !o
  return
}

// -----

!q = tensor<4x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
func.func @shared_batches(%q: !q, %k: !k, %three: tensor<3x96x2x128xbf16>) {
  %0 = fp4.attention %q, %k, %k scale 1.0 : !q, !k, !k -> !q
  // attention (C3)
  // expected-error @+2 {{operand 'key' must have the 4 batches of operand 'query', but got 'tensor<3x96x2x128xbf16>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1 = fp4.attention %q, %three, %three scale 1.0 : !q, tensor<3x96x2x128xbf16>, tensor<3x96x2x128xbf16> -> !q
  return
}
