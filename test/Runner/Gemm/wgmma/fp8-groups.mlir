// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --function=groups | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=delay --function=offsets | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=lazy --function=ranges | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --function=gaps | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=delay --function=whole | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --function=many | FileCheck %s --check-prefixes=TABLE,CHECK
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --function=split | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=delay --function=three | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --function=deep | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=lazy --function=joined --shape=150 | FileCheck %s

// GEMMs of FP8 with f32 scales, of groups: rows that the program knows; offsets of the device;
// and ranges with rows between them that are of no group,
// as the masked layout of a mixture of experts has them. An empty group and one of a single row are among
// them. Then split-K, with a reduction in a workspace or in clusters, and with M at run
// time.

// With more than eight groups a kernel makes a table.
// TABLE: groups_0 {{.*}}1 CTA of 128 threads
// CHECK: equals the wgmma model, bit for bit
// CHECK: none (strict check)

!a = tensor<100x272xf8E4M3FN>
!sa = tensor<100x3xf32>
!b = tensor<160x272xf8E4M3FN>
!sb = tensor<4x3xf32>

!lhs = !fp4.scaled<fp8_block128, !a, !sa>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
func.func @groups(%a: !a, %sa: !sa, %b: !b, %sb: !sb, %alpha: tensor<4xf32>) -> tensor<100x40xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {work = #fp4.work<groups = [70, 0, 1, 29]>}
      : (!lhs, !rhs, tensor<4xf32>) -> tensor<100x40xbf16>
  return %y : tensor<100x40xbf16>
}

func.func @offsets(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<100x40xf32> {
  %o = arith.constant dense<[0, 70, 70, 71, 100]> : tensor<5xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs, tensor<5xi64>) -> tensor<100x40xf32>
  return %y : tensor<100x40xf32>
}

func.func @ranges(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<100x40xf32> {
  %o = arith.constant dense<[[0, 20], [25, 26], [50, 50], [75, 90]]> : tensor<4x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs, tensor<4x2xi64>) -> tensor<100x40xf32>
  return %y : tensor<100x40xf32>
}

!rhs2 = !fp4.scaled<fp8_block128, tensor<20x272xf8E4M3FN>, !sb>
// No group has the first rows or the last ones, rows of 10 bytes.
func.func @gaps(%a: !a, %sa: !sa, %b: tensor<20x272xf8E4M3FN>, %sb: !sb) -> tensor<100x5xbf16> {
  %o = arith.constant dense<[[3, 3], [4, 30], [30, 31], [33, 60]]> : tensor<4x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<expected_rows = 14>}
      : (!lhs, !rhs2, tensor<4x2xi64>) -> tensor<100x5xbf16>
  return %y : tensor<100x5xbf16>
}

!rhs3 = !fp4.scaled<fp8_block128, tensor<72x272xf8E4M3FN>, tensor<9x3xf32>>
func.func @many(%a: !a, %sa: !sa, %b: tensor<72x272xf8E4M3FN>, %sb: tensor<9x3xf32>) -> tensor<100x8xf32> {
  %o = arith.constant dense<[[0, 20], [25, 26], [50, 50], [75, 90], [90, 90], [90, 91], [91, 92], [93, 94], [95, 100]]> : tensor<9x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs3, tensor<9x2xi64>) -> tensor<100x8xf32>
  return %y : tensor<100x8xf32>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<40x640xf8E4M3FN>, tensor<40x5xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<72x640xf8E4M3FN>, tensor<1x5xf32>>
func.func @split(%a: tensor<40x640xf8E4M3FN>, %sa: tensor<40x5xf32>, %b: tensor<72x640xf8E4M3FN>, %sb: tensor<1x5xf32>)
    -> tensor<40x72xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 3>}
      : (!lhs2, !rhs4) -> tensor<40x72xbf16>
  return %y : tensor<40x72xbf16>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<?x640xf8E4M3FN>, tensor<?x5xf32>>
!rhs5 = !fp4.scaled<fp8_block128, tensor<200x640xf8E4M3FN>, tensor<2x5xf32>>
func.func @joined(%a: tensor<?x640xf8E4M3FN>, %sa: tensor<?x5xf32>, %b: tensor<200x640xf8E4M3FN>, %sb: tensor<2x5xf32>)
    -> tensor<?x200xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 112, 128]>}
      : (!lhs3, !rhs5) -> tensor<?x200xf32>
  return %y : tensor<?x200xf32>
}

func.func @three(%a: tensor<40x640xf8E4M3FN>, %sa: tensor<40x5xf32>, %b: tensor<72x640xf8E4M3FN>, %sb: tensor<1x5xf32>)
    -> tensor<40x72xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [64, 72, 128], cluster = [3, 1]>}
      : (!lhs2, !rhs4) -> tensor<40x72xbf16>
  return %y : tensor<40x72xbf16>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<40x1280xf8E4M3FN>, tensor<40x10xf32>>
!rhs6 = !fp4.scaled<fp8_block128, tensor<72x1280xf8E4M3FN>, tensor<1x10xf32>>
// Split-K of one, two and two slices of 256 elements, in tiles of two blocks of scales.
func.func @deep(%a: tensor<40x1280xf8E4M3FN>, %sa: tensor<40x10xf32>, %b: tensor<72x1280xf8E4M3FN>, %sb: tensor<1x10xf32>)
    -> tensor<40x72xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [64, 72, 256], cluster = [3, 1]>}
      : (!lhs4, !rhs6) -> tensor<40x72xbf16>
  return %y : tensor<40x72xbf16>
}

!lhs5 = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>>
!rhs7 = !fp4.scaled<fp8_block128, tensor<112x256xf8E4M3FN>, tensor<2x2xf32>>
// 256 rows are whole tiles where there are no groups. The second group begins within one, and its tile reaches behind
// the last row.
func.func @whole(%a: tensor<256x256xf8E4M3FN>, %sa: tensor<256x2xf32>, %b: tensor<112x256xf8E4M3FN>, %sb: tensor<2x2xf32>)
    -> tensor<256x56xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [136, 120]>}
      : (!lhs5, !rhs7) -> tensor<256x56xbf16>
  return %y : tensor<256x56xbf16>
}
