// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Workers that share tiles (docs/Spec.md). The first product of each function verifies; the second
// differs in one place.

// blockscaled_matmul (C420)
func.func @split(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>, split_k = 1 : i64}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{expects static rows, tiled scales of both operands, and no groups, 'rhs2', 'split_k' or 'arithmetic' beside 'stream_k'}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>, split_k = 2 : i64}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}

// -----

// blockscaled_matmul (C420)
func.func @threads(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{expects static rows, tiled scales of both operands, and no groups, 'rhs2', 'split_k' or 'arithmetic' beside 'stream_k'}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>, arithmetic = #fp4.product_arithmetic<fma>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}

// -----

// blockscaled_matmul (C421)
func.func @numbers(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{attribute 'stream_k' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got array<i64: 3, 128>}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}

// -----

// blockscaled_matmul (C421)
func.func @workers(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{attribute 'stream_k' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got array<i64: 0, 128, 64>}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 0, 128, 64>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}

// -----

// blockscaled_matmul (C421)
func.func @unit(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 64>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{attribute 'stream_k' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got array<i64: 3, 128, 72>}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 3, 128, 72>}
      : (tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x1024xf4E2M1FN>, tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}

// -----

// blockscaled_matmul (C421)
func.func @parts(%a: tensor<8x16384xf4E2M1FN>, %sa: tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 32, 128, 64>}
      : (tensor<8x16384xf4E2M1FN>, tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x16384xf4E2M1FN>, tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  // expected-error @+1 {{attribute 'stream_k' must have at most 32 workers for each tile, but got 33}}
  %1 = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>, stream_k = array<i64: 33, 128, 64>}
      : (tensor<8x16384xf4E2M1FN>, tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x16384xf4E2M1FN>, tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x8xbf16>
  return
}
