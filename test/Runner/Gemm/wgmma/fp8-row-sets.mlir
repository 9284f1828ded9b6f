// FP8 GEMMs with f32 scales whose rows TMA cannot stride by: K has 6, 7 or 9 scale blocks, and rows of scales are 2, 3
// or 1 elements longer than a multiple of 16 bytes. Two or four maps load tiles of scales, of rows and of columns that
// begin in any set. M is no multiple of the sets, at run time or not; one row leaves sets without any; groups begin at
// any row.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=pairs --shape=131 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=pairs --shape=1 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=pairs --shape=300 --check=strict --policy=delay --plan "tile_gemm, tile = [256, 128, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=pairs --shape=130 --check=strict --policy=random --plan "tile_gemm, tile = [128, 184, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=pairs --shape=70 --check=strict --policy=lazy --plan "tile_gemm, tile = [64, 72, 256]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=three --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=three --check=strict --policy=delay --plan "tile_gemm, tile = [128, 152, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=one --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=groups --check=strict --policy=random | FileCheck %s
// CHECK: y {{.*}}equals the wgmma model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// Threads load scales where K has parts, or is known at run time alone.
// RUN: fp4-runner %s --target=sm_90a --emit=mlir --compile-to=tiles | FileCheck %s --check-prefix=TILES
// TILES-LABEL: gpu.module @pairs_
// TILES: gpu.func @kernel({{.*}}!pipe.tensor_map<{{[0-9]*}}x8xf32, rows_2_mod_4>, {{.*}}!pipe.tensor_map<16x8xf32, rows_2_mod_4>
// TILES-LABEL: gpu.module @three_
// TILES: !pipe.tensor_map<32x12xf32, rows_3_mod_4>
// TILES-LABEL: gpu.module @one_
// TILES: !pipe.tensor_map<32x8xf32, rows_1_mod_4>
// TILES-LABEL: gpu.module @parts_
// TILES: gpu.func @kernel({{.*}}!pipe.global<40x6xf32>

!lhs = !fp4.scaled<fp8_block128, tensor<?x768xf8E4M3FN>, tensor<?x6xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<400x768xf8E4M3FN>, tensor<4x6xf32>>
func.func @pairs(%a: tensor<?x768xf8E4M3FN>, %sa: tensor<?x6xf32>, %b: tensor<400x768xf8E4M3FN>, %sb: tensor<4x6xf32>)
    -> (tensor<?x400xbf16> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs
  %w = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %x, %w : (!lhs, !rhs) -> tensor<?x400xbf16>
  return %y : tensor<?x400xbf16>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<67x880xf8E4M3FN>, tensor<67x7xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<264x880xf8E4M3FN>, tensor<3x7xf32>>
func.func @three(%a: tensor<67x880xf8E4M3FN>, %sa: tensor<67x7xf32>, %b: tensor<264x880xf8E4M3FN>, %sb: tensor<3x7xf32>)
    -> (tensor<67x264xbf16> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs3
  %w = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %x, %w : (!lhs3, !rhs3) -> tensor<67x264xbf16>
  return %y : tensor<67x264xbf16>
}

!lhs1 = !fp4.scaled<fp8_block128, tensor<3x1152xf8E4M3FN>, tensor<3x9xf32>>
!rhs1 = !fp4.scaled<fp8_block128, tensor<72x1152xf8E4M3FN>, tensor<1x9xf32>>
func.func @one(%a: tensor<3x1152xf8E4M3FN>, %sa: tensor<3x9xf32>, %b: tensor<72x1152xf8E4M3FN>, %sb: tensor<1x9xf32>)
    -> (tensor<3x72xf32> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs1
  %w = fp4.scaled %b, %sb : !rhs1
  %y = fp4.matmul %x, %w : (!lhs1, !rhs1) -> tensor<3x72xf32>
  return %y : tensor<3x72xf32>
}

!lhsg = !fp4.scaled<fp8_block128, tensor<100x768xf8E4M3FN>, tensor<100x6xf32>>
!rhsg = !fp4.scaled<fp8_block128, tensor<552x768xf8E4M3FN>, tensor<6x6xf32>>
func.func @groups(%a: tensor<100x768xf8E4M3FN>, %sa: tensor<100x6xf32>, %b: tensor<552x768xf8E4M3FN>, %sb: tensor<6x6xf32>)
    -> (tensor<100x184xf32> {fp4.name = "y"}) {
  %o = arith.constant dense<[[3, 20], [25, 26], [51, 90]]> : tensor<3x2xi64>
  %x = fp4.scaled %a, %sa : !lhsg
  %w = fp4.scaled %b, %sb : !rhsg
  %y = fp4.matmul %x, %w offsets %o : (!lhsg, !rhsg, tensor<3x2xi64>) -> tensor<100x184xf32>
  return %y : tensor<100x184xf32>
}

!lhsp = !fp4.scaled<fp8_block128, tensor<40x768xf8E4M3FN>, tensor<40x6xf32>>
!rhsp = !fp4.scaled<fp8_block128, tensor<72x768xf8E4M3FN>, tensor<1x6xf32>>
func.func @parts(%a: tensor<40x768xf8E4M3FN>, %sa: tensor<40x6xf32>, %b: tensor<72x768xf8E4M3FN>, %sb: tensor<1x6xf32>)
    -> (tensor<40x72xbf16> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhsp
  %w = fp4.scaled %b, %sb : !rhsp
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = 3>} : (!lhsp, !rhsp) -> tensor<40x72xbf16>
  return %y : tensor<40x72xbf16>
}
