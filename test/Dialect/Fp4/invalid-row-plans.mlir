// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Small-M plans (docs/reference/semantics.md). The first GEMM of each function verifies; the second differs
// in one place.

// #fp4.plan (C461)
func.func @order(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w
      {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>, #fp4.plan<tile_gemm, max_rows = 64>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must have plans with ascending 'max_rows', but got [#fp4.plan<tile_gemm, max_rows = 64>, #fp4.plan<tile_gemm, max_rows = 64>]}}
  // expected-note @+1 {{write [#fp4.plan<tile_gemm, ..., max_rows = 16>, ...], or remove it and let the compiler plan}}
  %1 = fp4.matmul %x, %w
      {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 64>, #fp4.plan<tile_gemm, max_rows = 64>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// #fp4.plan (C461)
func.func @unbounded(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must have plans of family tile_gemm with 'max_rows', but got [#fp4.plan<tile_gemm>]}}
  // expected-note @+1 {{write [#fp4.plan<tile_gemm, ..., max_rows = 16>, ...], or remove it and let the compiler plan}}
  %1 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// #fp4.plan (C461)
func.func @list(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must be a list of plans, but got #fp4.plan<tile_gemm, max_rows = 16>}}
  // expected-note @+1 {{write [#fp4.plan<tile_gemm, ..., max_rows = 16>, ...], or remove it and let the compiler plan}}
  %1 = fp4.matmul %x, %w {fp4.row_plans = #fp4.plan<tile_gemm, max_rows = 16>}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// #fp4.plan (C461)
func.func @one(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, pdl = waits>}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.plan must have no 'max_rows', but got #fp4.plan<tile_gemm, pdl = waits, max_rows = 16>}}
  // expected-note @+1 {{small-M plans are those of fp4.row_plans}}
  %1 = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, pdl = waits, max_rows = 16>}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// #fp4.plan (C461)
func.func @place(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must be on a fp4.matmul}}
  // expected-note @+1 {{remove it: only matmuls have small-M plans}}
  %1 = fp4.amax %x {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]} : tensor<?x256xbf16> -> tensor<f32>
  return
}

// -----

// work (C4)
func.func @rows(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {work = #fp4.work<split_k = 2, split_rows = 1>}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{'split_rows' must be positive, ascend, and have a number for each factor of 'split_k', or for all but the last, but got [0] beside the factors [2]}}
  // expected-note @+1 {{leave it out: one factor of 'split_k' then holds for all rows}}
  %1 = fp4.matmul %x, %w {work = #fp4.work<split_k = 2, split_rows = 0>}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

// work (C4)
func.func @alone(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {work = #fp4.work<split_k = 2, split_rows = 16>}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{but got [16] beside the factors []}}
  // expected-note @+1 {{leave it out: one factor of 'split_k' then holds for all rows}}
  %1 = fp4.matmul %x, %w {work = #fp4.work<split_rows = 16>}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}
