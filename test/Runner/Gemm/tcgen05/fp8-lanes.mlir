// GEMMs of FP8 with f32 scales of 1 x 128 and 128 x 128 on sm_100a and sm_103a: tensor memory has the sums of
// one block of K, and the threads of one warpgroup or two those of all. Ragged M, N and K, M at run time, tiles
// of 16 to 256 columns, pairs, clusters that share loads, rings of one stage and of one accumulator, split-K, alpha, an
// epilogue and e4m3 results. If K is a multiple of 512, tiles in shared memory have the scales of four blocks.
// Groups are rows that the program knows; offsets of the device;
// and ranges with rows between them that are of no group, as the masked layout of a mixture of experts has them.

// RUN: fp4-runner %s --device=sim --target=sm_100a --function=plain --shape=130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_103a --function=plain --shape=1 --check=strict --policy=lazy --plan "tile_gemm, tile = [128, 16, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=plain --shape=60 --check=strict --policy=delay --plan "tile_gemm, tile = [128, 32, 128], stages = 1, accumulators = 1" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=plain --shape=300 --check=strict --policy=random --plan "tile_gemm, tile = [128, 256, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=staged --shape=130 --check=strict --policy=random --seed=5 --plan "tile_gemm, tile = [128, 128, 128], stages = 3" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=staged --shape=200 --check=strict --policy=lazy --plan "tile_gemm, tile = [128, 256, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=staged --shape=140 --check=strict --policy=delay --plan "tile_gemm, tile = [128, 64, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=layer --check=strict --policy=random --seed=3 | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_103a --function=split --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=staged_split --shape=150 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=rows --check=strict --policy=delay | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=clustered --shape=390 --check=strict --policy=random --seed=4 | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=groups --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=offsets --check=strict --policy=delay | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_103a --function=ranges --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=paired --shape=390 --check=strict --policy=random --seed=6 | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=paired_narrow --shape=270 --check=strict --policy=lazy | FileCheck %s
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

!lhs = !fp4.scaled<fp8_block128, tensor<?x400xf8E4M3FN>, tensor<?x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<136x400xf8E4M3FN>, tensor<2x4xf32>>
func.func @plain(%a: tensor<?x400xf8E4M3FN>, %sa: tensor<?x4xf32>, %b: tensor<136x400xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<?x1024xf8E4M3FN>, tensor<?x8xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<264x1024xf8E4M3FN>, tensor<3x8xf32>>
func.func @staged(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x8xf32>, %b: tensor<264x1024xf8E4M3FN>, %sb: tensor<3x8xf32>)
    -> (tensor<?x264xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x264xbf16>
  return %y : tensor<?x264xbf16>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<70x256xf8E4M3FN>, tensor<70x2xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<200x256xf8E4M3FN>, tensor<2x2xf32>>
func.func @layer(%x: tensor<70x256xbf16>, %w: tensor<200x256xbf16>, %alpha: tensor<f32>)
    -> (tensor<70x200xf32> {fp4.name = "y"}) {
  %a, %sa = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<70x256xbf16>) -> (tensor<70x256xf8E4M3FN>, tensor<70x2xf32>)
  %b, %sb = fp4.quantize %w {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>, block = array<i64: 128, 128>}
      : (tensor<200x256xbf16>) -> (tensor<200x256xf8E4M3FN>, tensor<2x2xf32>)
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {epilogue = #fp4.epilogue<relu>}
      : (!lhs3, !rhs3, tensor<f32>) -> tensor<70x200xf32>
  return %y : tensor<70x200xf32>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<140x640xf8E4M3FN>, tensor<140x5xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<72x640xf8E4M3FN>, tensor<1x5xf32>>
func.func @split(%a: tensor<140x640xf8E4M3FN>, %sa: tensor<140x5xf32>, %b: tensor<72x640xf8E4M3FN>, %sb: tensor<1x5xf32>)
    -> (tensor<140x72xf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>}
      : (!lhs4, !rhs4) -> tensor<140x72xf16>
  return %y : tensor<140x72xf16>
}

!lhs5 = !fp4.scaled<fp8_block128, tensor<?x2048xf8E4M3FN>, tensor<?x16xf32>>
!rhs5 = !fp4.scaled<fp8_block128, tensor<136x2048xf8E4M3FN>, tensor<2x16xf32>>
func.func @staged_split(%a: tensor<?x2048xf8E4M3FN>, %sa: tensor<?x16xf32>, %b: tensor<136x2048xf8E4M3FN>, %sb: tensor<2x16xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs5, !rhs5) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}

!lhs6 = !fp4.scaled<fp8_block128, tensor<140x272xf8E4M3FN>, tensor<140x3xf32>>
!rhs6 = !fp4.scaled<fp8_block128, tensor<272x272xf8E4M3FN>, tensor<3x3xf32>>
func.func @rows(%a: tensor<140x272xf8E4M3FN>, %sa: tensor<140x3xf32>, %b: tensor<272x272xf8E4M3FN>, %sb: tensor<3x3xf32>, %alpha: tensor<140x1xf32>)
    -> (tensor<140x272xf8E4M3FN> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs6, !rhs6, tensor<140x1xf32>) -> tensor<140x272xf8E4M3FN>
  return %y : tensor<140x272xf8E4M3FN>
}

!rhs7 = !fp4.scaled<fp8_block128, tensor<456x1024xf8E4M3FN>, tensor<4x8xf32>>
func.func @clustered(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x8xf32>, %b: tensor<456x1024xf8E4M3FN>, %sb: tensor<4x8xf32>)
    -> (tensor<?x456xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128], cluster = [2, 2], stages = 3>}
      : (!lhs2, !rhs7) -> tensor<?x456xbf16>
  return %y : tensor<?x456xbf16>
}

func.func @paired(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x8xf32>, %b: tensor<264x1024xf8E4M3FN>, %sb: tensor<3x8xf32>)
    -> (tensor<?x264xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 256, 128], pair>}
      : (!lhs2, !rhs2) -> tensor<?x264xbf16>
  return %y : tensor<?x264xbf16>
}

func.func @paired_narrow(%a: tensor<?x400xf8E4M3FN>, %sa: tensor<?x4xf32>, %b: tensor<136x400xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> (tensor<?x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 32, 128], pair>}
      : (!lhs, !rhs) -> tensor<?x136xbf16>
  return %y : tensor<?x136xbf16>
}

!a = tensor<300x272xf8E4M3FN>
!sa = tensor<300x3xf32>
!b = tensor<800x272xf8E4M3FN>
!sb = tensor<8x3xf32>

!lhs7 = !fp4.scaled<fp8_block128, !a, !sa>
!rhs8 = !fp4.scaled<fp8_block128, !b, !sb>
func.func @groups(%a: !a, %sa: !sa, %b: !b, %sb: !sb, %alpha: tensor<4xf32>) -> (tensor<300x200xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs8
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {work = #fp4.work<groups = [170, 0, 1, 129]>}
      : (!lhs7, !rhs8, tensor<4xf32>) -> tensor<300x200xbf16>
  return %y : tensor<300x200xbf16>
}

func.func @offsets(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> (tensor<300x200xf32> {fp4.name = "y"}) {
  %o = arith.constant dense<[0, 170, 170, 171, 300]> : tensor<5xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs8
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs7, !rhs8, tensor<5xi64>) -> tensor<300x200xf32>
  return %y : tensor<300x200xf32>
}

!lhs8 = !fp4.scaled<fp8_block128, tensor<400x1024xf8E4M3FN>, tensor<400x8xf32>>
!rhs9 = !fp4.scaled<fp8_block128, tensor<544x1024xf8E4M3FN>, tensor<8x8xf32>>
func.func @ranges(%a: tensor<400x1024xf8E4M3FN>, %sa: tensor<400x8xf32>, %b: tensor<544x1024xf8E4M3FN>, %sb: tensor<8x8xf32>)
    -> (tensor<400x136xbf16> {fp4.name = "y"}) {
  %o = arith.constant dense<[[0, 20], [100, 226], [226, 226], [300, 390]]> : tensor<4x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs9
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs8, !rhs9, tensor<4x2xi64>) -> tensor<400x136xbf16>
  return %y : tensor<400x136xbf16>
}
