// Host code launches the kernel whose waves cost the least by the numbers of its plan. Two tiles run at a time. Kernel 2
// is that of the last case, which two others must beat; of equals, it comes first, and then the first of the list.

// RUN: fp4-runner %s --sms=2 --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --dim M=100 --dim N=128 --dim K=512 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: fp4-run %t.so --device=sim --dim M=100 --dim N=128 --dim K=1024 --check=strict | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: fp4-run %t.so --device=sim --dim M=100 --dim N=256 --dim K=512 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: fp4-run %t.so --device=sim --dim M=200 --dim N=128 --dim K=512 --check=strict | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: fp4-run %t.so --device=sim --dim M=100 --dim N=192 --dim K=512 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,MIDDLE
// CHECK: passed
// NARROW: matmul_0
// MIDDLE: matmul_1
// WIDE: matmul_2
// CHECK: equals the {{.*}}, bit for bit
// CHECK: hazards {{.*}}none (strict check)

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !s>
func.func @product(%a: !c {fp4.dims = ["M", "K"]}, %sa: !s {fp4.dims = ["M", "K/16"]},
                   %b: !c {fp4.dims = ["N", "K"]}, %sb: !s {fp4.dims = ["N", "K/16"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {dispatch = [#fp4.case<any : tile_gemm, tile = [128, 64, 256], wave_cost = [1, 1000, 120]>, #fp4.case<any : tile_gemm, tile = [128, 96, 256], wave_cost = [1, 1000, 120]>, #fp4.case<any : tile_gemm, tile = [128, 128, 256], wave_cost = [81, 1000, 100]>]}
      : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
