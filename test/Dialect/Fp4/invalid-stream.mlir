// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Workers that share tiles (docs/reference/semantics.md). The first GEMM of each function verifies; the second
// differs in one place.

!rows = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                    tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!operand = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                       tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C420)
func.func @dynamic(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %x: tensor<?x1024xf4E2M1FN>, %sx: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<split_k = 1, stream_k = [3, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  %x_scaled = fp4.scaled %x, %sx : !rows
  // expected-error @+2 {{expects static rows, and no 'offsets' or 'rhs2' beside 'stream_k'}}
  // expected-note @+1 {{leave 'stream_k' out; tiles are shared where these are not given}}
  %1 = fp4.matmul %x_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 64]>}
      : (!rows, !operand) -> tensor<?x8xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                       tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C190)
func.func @threads(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{expects a GEMM that a route has, but no route has 'stream_k' for few rows with arithmetic fma}}
  // expected-note @+1 {{routes have that for: elements of 4 bits with scales (nvfp4, mxfp4); elements of 4 bits in instructions of K = 128}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<stream_k = [3, 128, 64]>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}

// -----

// matmul (C190)
!p = tensor<1x16x4352xi8, #fp4.weight_layout<wgmma>>
!p8 = tensor<1x8x8704xi8, #fp4.weight_layout<wgmma>>
!lhs = !fp4.scaled<mxfp4, tensor<8x1024xf4E2M1FN>, tensor<8x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @prepacked(%a: tensor<8x1024xbf16>, %p: !p, %e: tensor<8x1024xf8E4M3FN>, %p8: !p8,
                     %c: tensor<8x1024xf4E2M1FN>, %sc: tensor<8x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.matmul %a, %p {work = #fp4.work<stream_k = [3, 16, 128]>}
      : (tensor<8x1024xbf16>, !p) -> tensor<8x128xbf16>
  %1 = fp4.matmul %e, %p8 {work = #fp4.work<stream_k = [3, 16, 128]>}
      : (tensor<8x1024xf8E4M3FN>, !p8) -> tensor<8x128xbf16>
  %c_scaled = fp4.scaled %c, %sc : !lhs
  %2 = fp4.matmul %c_scaled, %p {work = #fp4.work<stream_k = [3, 16, 128]>}
      : (!lhs, !p) -> tensor<8x128xbf16>
  return
}
!rows = tensor<1x8x8704xi8, #fp4.weight_layout<wgmma_rows>>
func.func @fast(%e: tensor<8x1024xf8E4M3FN>, %p: !rows) {
  %0 = fp4.matmul %e, %p
      {work = #fp4.work<stream_k = [3, 16, 128]>,
       arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<8x1024xf8E4M3FN>, !rows) -> tensor<8x128xbf16>
  return
}

// -----

!tiled = tensor<128x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, tensor<128x1024xf4E2M1FN>, !tiled>
func.func @unpacked(%a: tensor<8x1024xbf16>, %b: tensor<128x1024xf4E2M1FN>, %sb: !tiled) {
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %1 = fp4.matmul %a, %b_scaled {work = #fp4.work<stream_k = [3, 16, 128]>}
      : (tensor<8x1024xbf16>, !rhs) -> tensor<8x128xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                       tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C421)
func.func @numbers(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{'stream_k' of 'work' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got [3, 128]}}
  // expected-note @+1 {{such as stream_k = [132, 128, 128]}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                       tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C421)
func.func @workers(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{'stream_k' of 'work' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got [0, 128, 64]}}
  // expected-note @+1 {{such as stream_k = [132, 128, 128]}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [0, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                       tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C421)
func.func @unit(%a: tensor<8x1024xf4E2M1FN>, %sa: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{'stream_k' of 'work' must be workers, and rows and columns of a tile in multiples of 16, the columns up to 256, but got [3, 128, 72]}}
  // expected-note @+1 {{such as stream_k = [132, 128, 128]}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [3, 128, 72]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<8x16384xf4E2M1FN>,
                       tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C421)
func.func @parts(%a: tensor<8x16384xf4E2M1FN>, %sa: tensor<8x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [32, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{'stream_k' of 'work' must have at most 32 workers for each tile, but got 33}}
  // expected-note @+1 {{take fewer workers or a smaller tile}}
  %1 = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [33, 128, 64]>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}

// -----

// matmul (C456)
!huge = tensor<33553920x1024xf4E2M1FN>
!hugeS = tensor<33553920x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !huge, !hugeS>
!rhs = !fp4.scaled<nvfp4, tensor<256x1024xf4E2M1FN>,
                   tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @workspace(%a: !huge, %sa: !hugeS, %b: tensor<256x1024xf4E2M1FN>, %sb: tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [65536, 256, 256]>}
      : (!lhs, !rhs) -> tensor<33553920x256xbf16>
  // expected-error @+2 {{'stream_k' of 'work' must leave at most 2147483647 rows of sums in a workspace, but leaves }}
  // expected-note @+1 {{take fewer workers or a smaller tile}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [65536, 512, 256]>}
      : (!lhs, !rhs) -> tensor<33553920x256xbf16>
  return
}

// -----

// matmul (C456)
!many = tensor<1073741312x1024xf4E2M1FN>
!manyS = tensor<1073741312x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !many, !manyS>
!rhs = !fp4.scaled<nvfp4, tensor<256x1024xf4E2M1FN>,
                   tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @ranges(%a: !many, %sa: !manyS, %b: tensor<256x1024xf4E2M1FN>, %sb: tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs, !rhs) -> tensor<1073741312x256xbf16>
  // expected-error @+2 {{'split_k' of 'work' must leave at most 2147483647 rows of sums in a workspace, but leaves 3221223936}}
  // expected-note @+1 {{take fewer split-K parts, or cut the rows into several matmuls}}
  %1 = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 3>}
      : (!lhs, !rhs) -> tensor<1073741312x256xbf16>
  return
}
