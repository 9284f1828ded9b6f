// Scales in two sets: with an even number of k tiles the set of each is known, and the loop does two of them; with an
// odd number the sets change places from tile to tile. A pair of CTAs has several tiles.
// RUN: split-file %s %t
// RUN: fp4-runner %t/even.mlir --device=sim --sms=2 --check=strict --policy=lazy
// RUN: fp4-runner %t/odd.mlir --device=sim --sms=2 --check=strict --policy=lazy
// RUN: fp4-runner %t/odd.mlir --device=sim --sms=2 --check=strict --policy=random --seed=5
// RUN: fp4-runner %t/even.mlir --target=sm_100a --emit=ptx | FileCheck %s --check-prefix=EVEN
// RUN: fp4-runner %t/odd.mlir --target=sm_100a --emit=ptx | FileCheck %s --check-prefix=ODD
// RUN: fp4-runner %t/even.mlir --target=sm_100a --emit=ptx --plan "tile_gemm, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>" \
// RUN:   | FileCheck %s --check-prefix=EVEN
// Each k tile has four MMAs, and the first iteration comes before the loop, whether the warp that multiplies copies
// scales or another one does.
// EVEN-COUNT-16: tcgen05.mma
// EVEN-NOT: tcgen05.mma
// ODD-COUNT-8: tcgen05.mma
// ODD-NOT: tcgen05.mma

//--- even.mlir
!s = tensor<400x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<400x1024xf4E2M1FN>, !s>
func.func @even(%a: tensor<400x1024xf4E2M1FN>, %sa: !s, %b: tensor<400x1024xf4E2M1FN>, %sb: !s) -> tensor<400x400xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 192, 256]>}
      : (!operand, !operand) -> tensor<400x400xbf16>
  return %y : tensor<400x400xbf16>
}

//--- odd.mlir
!s = tensor<400x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<400x768xf4E2M1FN>, !s>
func.func @odd(%a: tensor<400x768xf4E2M1FN>, %sa: !s, %b: tensor<400x768xf4E2M1FN>, %sb: !s) -> tensor<400x400xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 192, 256]>}
      : (!operand, !operand) -> tensor<400x400xbf16>
  return %y : tensor<400x400xbf16>
}
