// RUN: %fp4-opt-once %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file -verify-diagnostics
// An operation without a kernel is an error that says what has one; the first operation of each case has a kernel.

func.func @dynamic_unswizzle(%ok: tensor<3x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                             %bad: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.unswizzle_scales %ok : tensor<3x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<3x4xf8E4M3FN>
  // expected-error @+2 {{has a kernel for a static number of rows, but got 'tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{keep the scales from before fp4.swizzle_scales}}
  %1 = fp4.unswizzle_scales %bad : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<?x4xf8E4M3FN>
  return
}

// -----

// The largest that kernels count, and one row more.
func.func @large(%ok: tensor<4194303x4096xbf16>, %bad: tensor<4194304x4096xbf16>) {
  %0 = fp4.amax %ok : tensor<4194303x4096xbf16> -> tensor<f32>
  // expected-error @+2 {{has kernels for tensors of at most 17179869176 elements, but got 'tensor<4194304x4096xbf16>'}}
  // expected-note @+1 {{split the tensor along its rows}}
  %1 = fp4.amax %bad : tensor<4194304x4096xbf16> -> tensor<f32>
  return
}
