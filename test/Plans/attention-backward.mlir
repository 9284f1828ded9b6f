// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics | FileCheck %s

// A tile has 128 rows, which pass over blocks of 64 queries or of 128 keys.
// CHECK-LABEL: func.func @whole
// CHECK: fp4.attention_backward {{.*}}#fp4.plan<tile_attention, tile = [128, 64, 128], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 8 drives [tensor, threads] registers 240
!t = tensor<1x1024x8x128xbf16>
!l = tensor<1x1024x8xf32>
func.func @whole(%q: !t, %l: !l) -> !t {
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !t, !t, !t, !t, !l
  return %dq : !t
}

// -----

// With a causal mask the longest tiles come first. Blocks have 80 queries of heads of 64,
// and 112 without a mask.
// CHECK-LABEL: func.func @causal
// CHECK: fp4.attention_backward {{.*}}tile = [128, 80, 128], schedule = #pipe.static_persistent<along_n serpentine = true>
!t = tensor<1x1024x8x64xbf16>
!l = tensor<1x1024x8xf32>
func.func @causal(%q: !t, %l: !l) -> !t {
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 causal : !t, !t, !t, !t, !l
  // CHECK: fp4.attention_backward {{.*}}tile = [128, 112, 128], schedule
  %eq, %ek, %ev = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !t, !t, !t, !t, !l
  return %eq : !t
}

// -----

// Tangents behind a causal mask take registers of heads of 128.
// CHECK-LABEL: func.func @capped
// CHECK: fp4.attention_backward {{.*}}tile = [128, 48, 96], schedule
!t = tensor<1x1024x8x128xbf16>
!l = tensor<1x1024x8xf32>
func.func @capped(%q: !t, %l: !l) -> !t {
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 softcap 2.0 causal : !t, !t, !t, !t, !l
  // CHECK: fp4.attention_backward {{.*}}tile = [128, 64, 128], schedule
  %eq, %ek, %ev = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 softcap 2.0 : !t, !t, !t, !t, !l
  return %eq : !t
}

// -----

// Packed sequences have their longest tiles first too.
// CHECK-LABEL: func.func @packed
// CHECK: fp4.attention_backward {{.*}}tile = [128, 64, 128], schedule = #pipe.static_persistent<panels<4>>
!t = tensor<?x8x128xbf16>
!l = tensor<?x8xf32>
!n = tensor<9xi32>
func.func @packed(%q: !t, %l: !l, %n: !n) -> !t {
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l query_offsets(%n : !n) key_offsets(%n : !n) scale 1.0 : !t, !t, !t, !t, !l
  return %dq : !t
}

// -----

!t = tensor<1x64x8x288xbf16>
!l = tensor<1x64x8xf32>
func.func @elements(%q: !t, %l: !l) -> !t {
  // expected-error @+2 {{has kernels for heads of multiples of 32 up to 256 elements, but operand 'query' has 288}}
  // expected-note @+1 {{append zeros to the heads, or compute these gradients otherwise}}
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !t, !t, !t, !t, !l
  return %dq : !t
}

// -----

!t = tensor<1x64x8x64xbf16>
!l = tensor<1x64x8xf32>
func.func @tile(%q: !t, %l: !l) -> !t {
  // expected-error @+2 {{must have a plan whose 'tile' is [128, Q, K], Q and K multiples of 16 up to 128, but got [128, 24, 128]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 24, 128]>} : !t, !t, !t, !t, !l
  return %dq : !t
}

// -----

!t = tensor<1x64x8x64xbf16>
!l = tensor<1x64x8xf32>
func.func @cluster(%q: !t, %l: !l) -> !t {
  // expected-error @+2 {{must have a plan whose 'cluster' is left out beside gradients, but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 {fp4.plan = #fp4.plan<tile_attention, cluster = [2, 1]>} : !t, !t, !t, !t, !l
  return %dq : !t
}
