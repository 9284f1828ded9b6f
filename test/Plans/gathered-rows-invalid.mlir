// Warps that quantize rows of a tile of mma.sync: a thread gets all its sums at a time, up to 64. Blocks of 128 elements
// have tiles of 128 columns, of which four warps have too many sums, and eight do not.
// RUN: sed 's/COLUMNS/128/; s/MATH/0 to 8/' %s | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/COLUMNS/128/; s/MATH/0 to 4/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/COLUMNS/128/; s/MATH/1 to 9/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ODD
//
// Blocks of 32 have tiles of 64 columns, too, of which four warps have as many sums as eight of 128.
// RUN: sed 's/!scale = f32/!scale = f8E8M0FNU/; s/!scales = .*/!scales = !s/; s/fp8_deepgemm/mxfp8_e4m3_rceil/' %s > %t.mlir
// RUN: sed 's/COLUMNS/64/; s/MATH/0 to 4/' %t.mlir | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/COLUMNS/128/; s/MATH/0 to 8/' %t.mlir | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=EIGHT
// RUN: sed 's/COLUMNS/128/; s/MATH/0 to 4/' %t.mlir | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/COLUMNS/64/; s/MATH/0 to 2/' %t.mlir | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TWO

// EIGHT: tile = [128, 128, 128], {{.*}}math warps 0 to 8
// NARROW: tile = [128, 64, 128], {{.*}}math warps 0 to 4
// FOUR: error: 'fp4.matmul' op must have a plan whose 'roles' quantize rows of 128 columns with 8 warps for tensor, from a multiple of 4 on, but got 4 from 0
// FOUR: note: leave 'roles' out, and fp4-plan-kernels decides it
// ODD: error: {{.*}}must have a plan whose 'roles' quantize rows of 128 columns with 8 warps for tensor, from a multiple of 4 on, but got 8 from 1
// TWO: error: {{.*}}must have a plan whose 'roles' quantize rows of 64 columns with 4 or 8 warps for tensor, from a multiple of 4 on, but got 2 from 0
!e = tensor<128x128xf4E2M1FN>
!s = tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !e, !s>
!codes = tensor<128x128xf8E4M3FN>
!scale = f32
!scales = tensor<128x1xf32>
func.func @f(%a: !e, %s: !s) -> (!codes, !scales) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %q, %t = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %code, %of_block = fp4.epilogue_quantize %y {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, !scale)
    fp4.yield %code, %of_block : f8E4M3FN, !scale
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, COLUMNS, 128], roles = #pipe.role_plan<load warps 12 to 13 drives [tma], math warps MATH drives [tensor, threads]>>}
      : (!operand, !operand) -> (!codes, !scales)
  return %q, %t : !codes, !scales
}
