// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics

// The first GEMM of each function verifies; the second differs in one place.

// A small-M plan that does not fit gives the error that any other plan gives.
func.func @tile(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 16] : tile_gemm, tile = [16, 128, 256]>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [m, n, k] with m a multiple of 8 up to 256}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 16] : tile_gemm, tile = [20, 128, 256]>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// A cluster that reduces two parts needs a split-K factor of two.
func.func @cluster(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 16], split_k = 2 : tile_gemm, tile = [16, 128, 256], cluster = [2, 1]>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, 1], or [split_k / ranges, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 17] : tile_gemm, tile = [16, 128, 256], cluster = [2, 1]>, #fp4.case<m = [18, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}
