// ptxas accepts GEMMs of bf16 and MXFP6 weights for sm_90a without spills, with the tiles that have the most registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: tall_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: half_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!s = tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @tall(%x: tensor<?x1024xbf16>, %w: tensor<512x1024xf6E2M3FN>, %t: !s) -> tensor<?x512xf32> {
  %w_scaled = fp4.scaled %w, %t : !fp4.scaled<mxfp6_e2m3, tensor<512x1024xf6E2M3FN>, !s>
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x1024xbf16>, !fp4.scaled<mxfp6_e2m3, tensor<512x1024xf6E2M3FN>, !s>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
func.func @half(%x: tensor<?x1024xbf16>, %w: tensor<512x1024xf6E3M2FN>, %t: !s) -> tensor<?x512xbf16> {
  %w_scaled = fp4.scaled %w, %t : !fp4.scaled<mxfp6_e3m2, tensor<512x1024xf6E3M2FN>, !s>
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x1024xbf16>, !fp4.scaled<mxfp6_e3m2, tensor<512x1024xf6E3M2FN>, !s>) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
func.func @few(%x: tensor<8x1024xbf16>, %w: tensor<512x1024xf6E2M3FN>, %t: !s) -> tensor<8x512xbf16> {
  %w_scaled = fp4.scaled %w, %t : !fp4.scaled<mxfp6_e2m3, tensor<512x1024xf6E2M3FN>, !s>
  %y = fp4.matmul %x, %w_scaled
      : (tensor<8x1024xbf16>, !fp4.scaled<mxfp6_e2m3, tensor<512x1024xf6E2M3FN>, !s>) -> tensor<8x512xbf16>
  return %y : tensor<8x512xbf16>
}
