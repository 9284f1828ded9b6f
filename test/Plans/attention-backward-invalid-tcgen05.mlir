// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -verify-diagnostics
// This operation has a plan on sm_90a (attention-backward.mlir).

!t = tensor<1x1024x8x128xbf16>
!l = tensor<1x1024x8xf32>
func.func @whole(%q: !t, %l: !l) -> !t {
  // expected-error @+2 {{has kernels with wgmma, but target sm_100a has none}}
  // expected-note @+1 {{compute the gradients on sm_90a, or from a softmax of torch}}
  %dq, %dk, %dv = fp4.attention_backward %q, %q, %q, %q, %q, %l scale 1.0 : !t, !t, !t, !t, !l
  return %dq : !t
}
