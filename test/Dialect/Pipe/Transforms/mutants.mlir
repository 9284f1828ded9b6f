// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={tile_gemm, tile = [128, 128, 256], store = direct}" -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline -canonicalize -cse \
// RUN:   | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s

!lhs = !fp4.scaled<nvfp4, tensor<?x272xf4E2M1FN>,
                   tensor<?x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<200x272xf4E2M1FN>,
                   tensor<200x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// No channel op of the GEMM is redundant, and each that is missing or one too many is noticed: 5 loads
// and announcements, and the acquire, commit, wait and release of two channels; and the sets of scale
// columns, which a tile of 192 columns has fewer of than stages.
// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={tile_gemm, tile = [128, 192, 256], store = direct}" -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline -canonicalize -cse \
// RUN:   | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s --check-prefix=WIDE
// CHECK: 28 of 28 mutants rejected
// Staged tiles of the result, each a stage of one channel; two accumulators that have columns in common.
// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={tile_gemm, tile = [128, 256, 256], store = tma}" -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline -canonicalize -cse \
// RUN:   | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s --check-prefix=STAGED
// STAGED: 159 of 159 mutants rejected
// WIDE: 30 of 30 mutants rejected
func.func @gemm(%a: tensor<?x272xf4E2M1FN>, %sa: tensor<?x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<200x272xf4E2M1FN>, %sb: tensor<200x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x200xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x200xf32>
  return %y : tensor<?x200xf32>
}
