// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Gradients of attention. The first operation of a case is legal, the second differs from it in
// what the constraint is about.

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
!l = tensor<2x64x8xf32>
func.func @dimensions(%q: !q, %k: !k, %l: !l, %some: tensor<2x?x2x128xbf16>) {
  %0:3 = fp4.attention_backward %q, %k, %k, %q, %q, %l scale 1.0 : !q, !k, !k, !q, !l
  // attention_backward (C1)
  // expected-error @+2 {{operand 'value' must have 4 static, positive dimensions, but got 'tensor<2x?x2x128xbf16>'}}
  // expected-note @+1 {{write batch x tokens x heads x elements of a head}}
  %1:3 = fp4.attention_backward %q, %k, %some, %q, %q, %l scale 1.0 : !q, !k, tensor<2x?x2x128xbf16>, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xf8E4M3FN>
!l = tensor<2x64x8xf32>
func.func @query_elements(%q: !q, %l: !l) {
  // attention_backward (C2)
  // expected-error @+2 {{operand 'query' must have elements of type bf16 or f16, but got 'tensor<2x64x8x128xf8E4M3FN>'}}
  // expected-note @+1 {{convert it with arith.truncf}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xf16>
!k = tensor<2x96x2x128xf16>
!l = tensor<2x64x8xf32>
func.func @elements(%q: !q, %k: !k, %l: !l, %other: tensor<2x96x2x128xbf16>) {
  %0:3 = fp4.attention_backward %q, %k, %k, %q, %q, %l scale 1.0 : !q, !k, !k, !q, !l
  // attention_backward (C2)
  // expected-error @+2 {{operand 'key' must have the elements of operand 'query', bf16 or f16, but got 'tensor<2x96x2x128xbf16>'}}
  // expected-note @+1 {{convert it with arith.truncf or arith.extf}}
  %1:3 = fp4.attention_backward %q, %other, %k, %q, %q, %l scale 1.0 : !q, tensor<2x96x2x128xbf16>, !k, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
!l = tensor<2x64x8xf32>
func.func @agreement(%q: !q, %k: !k, %l: !l, %other: tensor<2x90x2x128xbf16>) {
  %0:3 = fp4.attention_backward %q, %k, %k, %q, %q, %l scale 1.0 : !q, !k, !k, !q, !l
  // attention_backward (C3)
  // expected-error @+2 {{operand 'value' must have the 96 tokens of operand 'key', but got 'tensor<2x90x2x128xbf16>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1:3 = fp4.attention_backward %q, %k, %other, %q, %q, %l scale 1.0 : !q, !k, tensor<2x90x2x128xbf16>, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!k = tensor<2x96x2x128xbf16>
!l = tensor<2x64x8xf32>
func.func @heads(%q: !q, %k: !k, %l: !l, %three: tensor<2x96x3x128xbf16>) {
  %0:3 = fp4.attention_backward %q, %k, %k, %q, %q, %l scale 1.0 : !q, !k, !k, !q, !l
  // attention_backward (C4)
  // expected-error @+2 {{operand 'query' must have a multiple of the 3 heads of operand 'key', but got 'tensor<2x64x8x128xbf16>'}}
  // expected-note @+1 {{the same number of query heads shares each head of keys}}
  %1:3 = fp4.attention_backward %q, %three, %three, %q, %q, %l scale 1.0 : !q, tensor<2x96x3x128xbf16>, tensor<2x96x3x128xbf16>, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!l = tensor<2x64x8xf32>
func.func @scale(%q: !q, %l: !l) {
  %0:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 0.5 : !q, !q, !q, !q, !l
  // attention_backward (C5)
  // expected-error @+2 {{scale must be a finite, positive number, but got -5.000000e-01}}
  // expected-note @+1 {{write the scale of fp4.attention}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale -0.5 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!v = tensor<2x96x2x64xbf16>
!k = tensor<2x96x2x128xbf16>
!o = tensor<2x64x8x64xbf16>
!l = tensor<2x64x8xf32>
func.func @output(%q: !q, %k: !k, %v: !v, %o: !o, %l: !l) {
  %0:3 = fp4.attention_backward %q, %k, %v, %o, %o, %l scale 1.0 : !q, !k, !v, !o, !l
  // attention_backward (C6)
  // expected-error @+1 {{operand 'output' must be 'tensor<2x64x8x64xbf16>', but got 'tensor<2x64x8x128xbf16>'}}
  %1:3 = fp4.attention_backward %q, %k, %v, %q, %q, %l scale 1.0 : !q, !k, !v, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!l = tensor<2x64x8xf32>
func.func @lse(%q: !q, %l: !l, %few: tensor<2x64xf32>) {
  %0:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !q, !q, !q, !q, !l
  // attention_backward (C7)
  // expected-error @+2 {{operand 'lse' must be 'tensor<2x64x8xf32>', but got 'tensor<2x64xf32>'}}
  // expected-note @+1 {{pass the second result of fp4.attention}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %few scale 1.0 : !q, !q, !q, !q, tensor<2x64xf32>
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!l = tensor<2x64x8xf32>
func.func @window(%q: !q, %l: !l) {
  %0:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 causal window 1 : !q, !q, !q, !q, !l
  // attention_backward (C8)
  // expected-error @+2 {{window must have a key or more, but got 0}}
  // expected-note @+1 {{leave 'window' out, and a query sees all keys up to its own}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 causal window 0 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!l = tensor<2x64x8xf32>
func.func @causal_window(%q: !q, %l: !l) {
  // attention_backward (C8)
  // expected-error @+2 {{window must come with 'causal', but got none}}
  // expected-note @+1 {{a window ends with the key of its query: write 'causal', or leave 'window' out}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 window 4 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<2x64x8x128xbf16>
!l = tensor<2x64x8xf32>
func.func @softcap(%q: !q, %l: !l) {
  %0:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 0.5 softcap 30.0 : !q, !q, !q, !q, !l
  // attention_backward (C9)
  // expected-error @+2 {{softcap must be a finite, positive number, but got 0.000000e+00}}
  // expected-note @+1 {{leave 'softcap' out, and scores have no limit}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 0.5 softcap 0.0 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<4xi32>
func.func @packed(%q: !q, %k: !k, %l: !l, %n: !n, %some: tensor<96x?x128xbf16>) {
  %0:3 = fp4.attention_backward %q, %k, %k, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !k, !k, !q, !l
  // attention_backward (C1)
  // expected-error @+2 {{operand 'value' must have 3 positive dimensions, of which the first may be dynamic, but got 'tensor<96x?x128xbf16>'}}
  // expected-note @+1 {{write tokens of all sequences x heads x elements of a head}}
  %1:3 = fp4.attention_backward %q, %k, %some, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !k, tensor<96x?x128xbf16>, !q, !l
  return
}

// -----

!q = tensor<?x8x128xbf16>
!k = tensor<?x2x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<4xi32>
func.func @packed_tokens(%q: !q, %k: !k, %l: !l, %n: !n, %some: tensor<96x2x128xbf16>) {
  // attention_backward (C3)
  // expected-error @+2 {{operand 'value' must have the dynamic tokens of operand 'key', but got 'tensor<96x2x128xbf16>'}}
  // expected-note @+1 {{dimensions are batch, tokens, heads, and elements of a head}}
  %1:3 = fp4.attention_backward %q, %k, %some, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !k, tensor<96x2x128xbf16>, !q, !l
  return
}

// -----

!q = tensor<?x8x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<4xi32>
func.func @offsets(%q: !q, %l: !l, %n: !n, %few: tensor<3xi32>) {
  %0:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !q, !q, !q, !l
  // attention_backward (C10)
  // expected-error @+2 {{operand 'key_offsets' must have an i32 for each sequence and one more, as 'query_offsets', but got 'tensor<3xi32>'}}
  // expected-note @+1 {{sequence b has the tokens from offset b up to offset b + 1}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l query_offsets(%n : !n) key_offsets(%few : tensor<3xi32>) scale 1.0 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<?x8x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<1xi32>
func.func @sequences(%q: !q, %l: !l, %n: !n) {
  // attention_backward (C10)
  // expected-error @+2 {{operand 'query_offsets' must have an i32 for each sequence and one more, as 'query_offsets', but got 'tensor<1xi32>'}}
  // expected-note @+1 {{sequence b has the tokens from offset b up to offset b + 1}}
  %1:3 = fp4.attention_backward %q, %q, %q, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !q, !q, !q, !q, !l
  return
}

// -----

!q = tensor<?x8x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<4xi32>
func.func @one_offsets(%q: !q, %l: !l, %n: !n) {
  // attention_backward (C10)
  // expected-error @+2 {{must have offsets of queries and of keys, but got 1}}
  // expected-note @+1 {{the keys of a sequence are those of its queries}}
  %1:3 = "fp4.attention_backward"(%q, %q, %q, %q, %q, %l, %n) <{scale = 1.0 : f32}> : (!q, !q, !q, !q, !q, !l, !n) -> (!q, !q, !q)
  return
}
