// GEMMs of FP8 with f32 scales of 1 x 128 and 128 x 128 on sm_90a: tiles of one and two warpgroups and of two
// parts, columns that are no divisor of 128, ragged M, N and K, M at run time; alpha and an epilogue. With two
// parts of 128 columns, and with two blocks, scales of the next four blocks take the place of those before. If K
// is a multiple of 512, tiles in shared memory have the scales of four blocks.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=plain --shape=130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=plain --shape=130 --check=strict --policy=lazy --plan "tile_gemm, tile = [256, 64, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=plain --shape=60 --check=strict --policy=delay --plan "tile_gemm, tile = [64, 56, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=plain --shape=70 --check=strict --plan "tile_gemm, tile = [128, 192, 128], stages = 2" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=deep --shape=300 --check=strict --policy=random --plan "tile_gemm, tile = [256, 128, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=two --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=two_wide --shape=100 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=layer --check=strict --policy=random --seed=3 | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=staged --shape=300 --check=strict --policy=random --plan "tile_gemm, tile = [256, 128, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=staged --shape=130 --check=strict --policy=delay --plan "tile_gemm, tile = [128, 96, 128], stages = 3" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=staged --shape=200 --check=strict --policy=random --plan "tile_gemm, tile = [64, 64, 128], stages = 5" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=staged_two --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=staged_ranges --check=strict --policy=random | FileCheck %s
// CHECK: y {{.*}}equals the wgmma model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels="plans='tile_gemm, tile = [256, 192, 128]'" 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: must have a plan whose 'tile' is [m, n, 128] with m = 64 or 128 and n a multiple of 8 up to 192, or m = 256 and n up to 128; or, for K a multiple of 256, [m, n, 256] with m = 64 or 128 and n up to 128, but got [256, 192, 128]
// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels="plans='tile_gemm, tile = [64, 64, 256]'" 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: but got [64, 64, 256]

!lhs = !fp4.scaled<fp8_block128, tensor<?x400xf8E4M3FN>, tensor<?x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<136x400xf8E4M3FN>, tensor<2x4xf32>>
func.func @plain(%a: tensor<?x400xf8E4M3FN>, %sa: tensor<?x4xf32>, %b: tensor<136x400xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<70x256xf8E4M3FN>, tensor<70x2xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<200x256xf8E4M3FN>, tensor<2x2xf32>>
func.func @layer(%x: tensor<70x256xbf16>, %w: tensor<200x256xbf16>, %alpha: tensor<f32>)
    -> (tensor<70x200xf32> {fp4.name = "y"}) {
  %a, %sa = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<70x256xbf16>) -> (tensor<70x256xf8E4M3FN>, tensor<70x2xf32>)
  %b, %sb = fp4.quantize %w {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>, block = array<i64: 128, 128>}
      : (tensor<200x256xbf16>) -> (tensor<200x256xf8E4M3FN>, tensor<2x2xf32>)
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {epilogue = #fp4.epilogue<relu>}
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<70x200xf32>
  return %y : tensor<70x200xf32>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<?x1296xf8E4M3FN>, tensor<?x11xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<136x1296xf8E4M3FN>, tensor<2x11xf32>>
func.func @deep(%a: tensor<?x1296xf8E4M3FN>, %sa: tensor<?x11xf32>, %b: tensor<136x1296xf8E4M3FN>, %sb: tensor<2x11xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs3) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<?x1024xf8E4M3FN>, tensor<?x8xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<264x1024xf8E4M3FN>, tensor<3x8xf32>>
func.func @staged(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x8xf32>, %b: tensor<264x1024xf8E4M3FN>, %sb: tensor<3x8xf32>)
    -> (tensor<?x264xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs4, !rhs4) -> tensor<?x264xbf16>
  return %y : tensor<?x264xbf16>
}

!lhs5 = !fp4.scaled<fp8_block128, tensor<70x1536xf8E4M3FN>, tensor<70x12xf32>>
!rhs5 = !fp4.scaled<fp8_block128, tensor<136x1536xf8E4M3FN>, tensor<2x12xf32>>
func.func @staged_two(%a: tensor<70x1536xf8E4M3FN>, %sa: tensor<70x12xf32>, %b: tensor<136x1536xf8E4M3FN>, %sb: tensor<2x12xf32>)
    -> (tensor<70x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 64, 256], stages = 3>}
      : (!lhs5, !rhs5) -> tensor<70x136xbf16>
  return %y : tensor<70x136xbf16>
}

!lhs6 = !fp4.scaled<fp8_block128, tensor<70x2048xf8E4M3FN>, tensor<70x16xf32>>
!rhs6 = !fp4.scaled<fp8_block128, tensor<136x2048xf8E4M3FN>, tensor<2x16xf32>>
func.func @staged_ranges(%a: tensor<70x2048xf8E4M3FN>, %sa: tensor<70x16xf32>, %b: tensor<136x2048xf8E4M3FN>, %sb: tensor<2x16xf32>)
    -> (tensor<70x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs6, !rhs6) -> tensor<70x136xbf16>
  return %y : tensor<70x136xbf16>
}

!lhs7 = !fp4.scaled<fp8_block128, tensor<70x1280xf8E4M3FN>, tensor<70x10xf32>>
!rhs7 = !fp4.scaled<fp8_block128, tensor<136x1280xf8E4M3FN>, tensor<2x10xf32>>
func.func @two(%a: tensor<70x1280xf8E4M3FN>, %sa: tensor<70x10xf32>, %b: tensor<136x1280xf8E4M3FN>, %sb: tensor<2x10xf32>)
    -> (tensor<70x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 64, 256]>}
      : (!lhs7, !rhs7) -> tensor<70x136xbf16>
  return %y : tensor<70x136xbf16>
}

!lhs8 = !fp4.scaled<fp8_block128, tensor<?x1280xf8E4M3FN>, tensor<?x10xf32>>
func.func @two_wide(%a: tensor<?x1280xf8E4M3FN>, %sa: tensor<?x10xf32>, %b: tensor<136x1280xf8E4M3FN>, %sb: tensor<2x10xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs8, !rhs7) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}
