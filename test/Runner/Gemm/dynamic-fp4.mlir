// One library for GEMMs of operands of 4 bits and of any M, N and K, on every target. The clusters and pairs of
// its plan load scales through tensor maps.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=0 --dim N=72 --dim K=288 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=257 --dim N=400 --dim K=544 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp4 --dim M=70 --dim N=200 --dim K=288 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=200 --dim K=288 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp4 --dim M=0 --dim N=64 --dim K=1056 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp4 --dim M=300 --dim N=64 --dim K=1056 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_120a --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=nvfp4 --dim M=70 --dim N=200 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp4 --dim M=300 --dim N=64 --dim K=1056 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!c = tensor<?x?xf4E2M1FN>
!cs = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !cs>
func.func @nvfp4(%a: !c {fp4.dims = ["M", "K"]}, %s: !cs {fp4.dims = ["M", "K/16"]},
                 %b: !c {fp4.dims = ["N", "K"]}, %t: !cs {fp4.dims = ["N", "K/16"]}, %alpha: tensor<f32>) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      : (!operand, !operand, tensor<f32>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!es = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand2 = !fp4.scaled<mxfp4, !c, !es>
func.func @mxfp4(%a: !c {fp4.dims = ["M", "K"]}, %s: !es {fp4.dims = ["M", "K/32"]},
                 %b: !c {fp4.dims = ["N", "K"]}, %t: !es {fp4.dims = ["N", "K/32"]}) -> (tensor<?x?xf32> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
