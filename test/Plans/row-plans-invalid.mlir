// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics

// The first GEMM of each function verifies; the second differs in one place.

func.func @dynamic(%x: tensor<?x512xbf16>, %few: tensor<20x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{must have dynamic rows with fp4.row_plans, but got 'tensor<20x512xbf16>'}}
  // expected-note @+1 {{leave fp4.row_plans out, and give its plan as fp4.plan}}
  %1 = fp4.matmul %few, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<20x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return
}

// -----

// A small-M plan that does not fit gives the error that any other plan gives.
func.func @tile(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w
      {fp4.row_plans = [#fp4.plan<tile_gemm, tile = [16, 128, 256], max_rows = 16>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [m, n, k] with m a multiple of 8 up to 256}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %x, %w
      {fp4.row_plans = [#fp4.plan<tile_gemm, tile = [20, 128, 256], max_rows = 16>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// Split-K for up to 16 rows does not fit tiles whose split-K is that of all rows.
func.func @cluster(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w
      {work = #fp4.work<split_k = 2, split_rows = 16>,
       fp4.row_plans = [#fp4.plan<tile_gemm, tile = [16, 128, 256], cluster = [2, 1], max_rows = 16>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' is [1, 1], or [split_k / ranges, 1]}}
  // expected-note @+1 {{leave 'cluster' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %x, %w
      {work = #fp4.work<split_k = 2, split_rows = 16>,
       fp4.row_plans = [#fp4.plan<tile_gemm, tile = [16, 128, 256], cluster = [2, 1], max_rows = 17>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}
