// GEMMs of FP8 with f32 scales spill nothing where TMA loads rows of scales in sets (K / 128 is no multiple of 4). The maps
// of the sets take the loading warp more than the 24 registers that it has beside other known sizes.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: tall_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: four_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK: groups_matmul_0 kernel: registers 168, spill 0, stack 0

func.func @few(%a: tensor<64x5376xf8E4M3FN>, %sa: tensor<64x42xf32>, %b: tensor<7168x5376xf8E4M3FN>, %sb: tensor<56x42xf32>) -> tensor<64x7168xbf16> {
  %x = fp4.scaled %a, %sa : !fp4.scaled<fp8_block128, tensor<64x5376xf8E4M3FN>, tensor<64x42xf32>>
  %w = fp4.scaled %b, %sb : !fp4.scaled<fp8_block128, tensor<7168x5376xf8E4M3FN>, tensor<56x42xf32>>
  %y = fp4.matmul %x, %w
      : (!fp4.scaled<fp8_block128, tensor<64x5376xf8E4M3FN>, tensor<64x42xf32>>, !fp4.scaled<fp8_block128, tensor<7168x5376xf8E4M3FN>, tensor<56x42xf32>>) -> tensor<64x7168xbf16>
  return %y : tensor<64x7168xbf16>
}
func.func @tall(%a: tensor<512x5376xf8E4M3FN>, %sa: tensor<512x42xf32>, %b: tensor<7168x5376xf8E4M3FN>, %sb: tensor<56x42xf32>) -> tensor<512x7168xbf16> {
  %x = fp4.scaled %a, %sa : !fp4.scaled<fp8_block128, tensor<512x5376xf8E4M3FN>, tensor<512x42xf32>>
  %w = fp4.scaled %b, %sb : !fp4.scaled<fp8_block128, tensor<7168x5376xf8E4M3FN>, tensor<56x42xf32>>
  %y = fp4.matmul %x, %w
      : (!fp4.scaled<fp8_block128, tensor<512x5376xf8E4M3FN>, tensor<512x42xf32>>, !fp4.scaled<fp8_block128, tensor<7168x5376xf8E4M3FN>, tensor<56x42xf32>>) -> tensor<512x7168xbf16>
  return %y : tensor<512x7168xbf16>
}
func.func @four(%a: tensor<4096x5504xf8E4M3FN>, %sa: tensor<4096x43xf32>, %b: tensor<4096x5504xf8E4M3FN>, %sb: tensor<32x43xf32>) -> tensor<4096x4096xbf16> {
  %x = fp4.scaled %a, %sa : !fp4.scaled<fp8_block128, tensor<4096x5504xf8E4M3FN>, tensor<4096x43xf32>>
  %w = fp4.scaled %b, %sb : !fp4.scaled<fp8_block128, tensor<4096x5504xf8E4M3FN>, tensor<32x43xf32>>
  %y = fp4.matmul %x, %w
      : (!fp4.scaled<fp8_block128, tensor<4096x5504xf8E4M3FN>, tensor<4096x43xf32>>, !fp4.scaled<fp8_block128, tensor<4096x5504xf8E4M3FN>, tensor<32x43xf32>>) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
func.func @groups(%a: tensor<4096x5376xf8E4M3FN>, %sa: tensor<4096x42xf32>, %b: tensor<32768x5376xf8E4M3FN>, %sb: tensor<256x42xf32>) -> tensor<4096x4096xbf16> {
  %x = fp4.scaled %a, %sa : !fp4.scaled<fp8_block128, tensor<4096x5376xf8E4M3FN>, tensor<4096x42xf32>>
  %w = fp4.scaled %b, %sb : !fp4.scaled<fp8_block128, tensor<32768x5376xf8E4M3FN>, tensor<256x42xf32>>
  %y = fp4.matmul %x, %w {work = #fp4.work<groups = [509, 515, 509, 515, 509, 515, 509, 515]>}
      : (!fp4.scaled<fp8_block128, tensor<4096x5376xf8E4M3FN>, tensor<4096x42xf32>>, !fp4.scaled<fp8_block128, tensor<32768x5376xf8E4M3FN>, tensor<256x42xf32>>) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
