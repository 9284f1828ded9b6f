// ptxas accepts epilogues of eight warps without spills in the 168 registers of 384 threads: staged results in bf16 and
// f32 of tiles of 256 columns, of which a thread has 128.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: halves_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: floats_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!operand = !fp4.scaled<nvfp4, tensor<4096x512xf4E2M1FN>,
                       tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @halves(%a: tensor<4096x512xf4E2M1FN>, %la: tensor<4096x32xf8E4M3FN>, %b: tensor<4096x512xf4E2M1FN>, %lb: tensor<4096x32xf8E4M3FN>) -> tensor<4096x4096xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 128, 256], store = tma, epilogue_warps = 8>}
      : (!operand, !operand) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
func.func @wide(%a: tensor<4096x512xf4E2M1FN>, %la: tensor<4096x32xf8E4M3FN>, %b: tensor<4096x512xf4E2M1FN>, %lb: tensor<4096x32xf8E4M3FN>) -> tensor<4096x4096xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256], store = tma, epilogue_warps = 8>}
      : (!operand, !operand) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
func.func @floats(%a: tensor<4096x512xf4E2M1FN>, %la: tensor<4096x32xf8E4M3FN>, %b: tensor<4096x512xf4E2M1FN>, %lb: tensor<4096x32xf8E4M3FN>) -> tensor<4096x4096xf32> {
  %sa = fp4.swizzle_scales %la : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<4096x32xf8E4M3FN> -> tensor<4096x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256], store = tma, epilogue_warps = 8>}
      : (!operand, !operand) -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}
