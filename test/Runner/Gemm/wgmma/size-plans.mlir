// Cases for some sizes only: small M, and multiples of K (k_unit). Host code does not launch a kernel for sizes that
// its guard excludes, however little it would cost. Kernel numbers are those of the cases.

// RUN: fp4-runner %s --target=sm_90a --sms=2 --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=512 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=130 --dim N=136 --dim K=1024 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,SECOND
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=640 --check=strict | FileCheck %s --check-prefixes=CHECK,LAST
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=9 --dim N=72 --dim K=160 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=130 --dim N=264 --dim K=384 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,AHEAD
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=17 --dim N=136 --dim K=160 --check=strict | FileCheck %s --check-prefixes=CHECK,LAST
// RUN: fp4-run %t.so --device=sim --function=mxfp8 --dim M=70 --dim N=136 --dim K=256 --check=strict --policy=delay | FileCheck %s --check-prefixes=CHECK,AHEAD
// CHECK: passed
// FIRST: matmul_0
// AHEAD: convert_0
// AHEAD: matmul_1
// SECOND: matmul_1
// LAST: matmul_2
// CHECK: kernels
// CHECK: equals the {{.*}}, bit for bit
// CHECK: hazards {{.*}}none (strict check)

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
!operand = !fp4.scaled<fp8_block128, !a, !s>
func.func @fp8(%a: !a {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/128"]},
               %b: !a {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N/128", "K/128"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {dispatch = [#fp4.case<m = [1, 128], k_unit = 512 : tile_gemm, tile = [64, 32, 256], wave_cost = [1, 1, 1]>, #fp4.case<k_unit = 512 : tile_gemm, tile = [256, 128, 128], wave_cost = [20, 1, 1]>, #fp4.case<any : tile_gemm, tile = [128, 64, 128], wave_cost = [99, 9, 9]>]}
      : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!c = tensor<?x?xf4E2M1FN>
!e = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand2 = !fp4.scaled<nvfp4, !c, !e>
func.func @nvfp4(%a: !c {fp4.dims = ["M", "K"]}, %s: !e {fp4.dims = ["M", "K/16"]},
                 %b: !c {fp4.dims = ["N", "K"]}, %t: !e {fp4.dims = ["N", "K/16"]},
                 %alpha: tensor<1x?xf32> {fp4.dims = ["", "N"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {dispatch = [#fp4.case<m = [1, 16] : tile_gemm, tile = [128, 16, 128], route = <orientation = swapped>, wave_cost = [1, 1, 1]>, #fp4.case<k_unit = 128 : tile_gemm, tile = [256, 128, 128], route = <orientation = swapped>, wave_cost = [2, 1, 1]>, #fp4.case<any : tile_gemm, tile = [128, 128, 128], wave_cost = [9, 9, 9]>]}
      : (!operand2, !operand2, tensor<1x?xf32>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!b = tensor<?x?xf8E5M2>
!x = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp8_e4m3, !a, !x>
!rhs = !fp4.scaled<mxfp8_e5m2, !b, !x>
func.func @mxfp8(%a: !a {fp4.dims = ["M", "K"]}, %s: !x {fp4.dims = ["M", "K/32"]},
                 %b: !b {fp4.dims = ["N", "K"]}, %t: !x {fp4.dims = ["N", "K/32"]}) -> tensor<?x?xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {dispatch = [#fp4.case<m = [1, 64] : tile_gemm, tile = [128, 64, 128], route = <orientation = swapped>, wave_cost = [1, 1, 1]>, #fp4.case<k_unit = 128 : tile_gemm, tile = [128, 128, 128], route = <orientation = swapped>, wave_cost = [2, 1, 1]>, #fp4.case<any : tile_gemm, tile = [128, 128, 128], wave_cost = [9, 9, 9]>]}
      : (!lhs, !rhs) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
