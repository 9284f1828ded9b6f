// Results of any rows and columns whose caller places the rows: fp4-run gives them gaps that no kernel may write.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=product --dim M=70 --dim N=72 --dim K=96 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=product --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=copied --dim M=33 --dim K=48 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.90.so
// RUN: fp4-run %t.90.so --device=sim --function=product --dim M=130 --dim N=136 --dim K=96 --check=strict --policy=lazy | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !s>
func.func @product(%a: !c {fp4.dims = ["M", "K"]}, %sa: !s {fp4.dims = ["M", "K/16"]},
                   %b: !c {fp4.dims = ["N", "K"]}, %sb: !s {fp4.dims = ["N", "K/16"]}) -> (tensor<?x?xbf16> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

func.func @copied(%x: tensor<?x?xbf16> {fp4.dims = ["M", "K"]}) -> (tensor<?x?xbf16> {fp4.strided}) {
  %y = fp4.hadamard %x {dimension = 1 : i64, size = 16 : i64} : tensor<?x?xbf16> -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
