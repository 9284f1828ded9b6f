// One library for GEMMs of elements of 8 and 6 bits, and of these and 4, and of any M, N and K.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=mxfp8 --dim M=70 --dim N=72 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp8 --dim M=1 --dim N=8 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=w4a8 --dim M=257 --dim N=200 --dim K=384 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp6 --dim M=70 --dim N=136 --dim K=128 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=mxfp6 --dim M=130 --dim N=8 --dim K=640 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=unit --dim M=70 --dim N=136 --dim K=256 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=rows --dim M=130 --check=strict | FileCheck %s
// RUN: fp4-runner %s --ptxas=none --device=sim --function=depth --dim K=256 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_120a --emit=so --ptxas=none -o %t.120.so
// RUN: fp4-run %t.120.so --device=sim --function=mxfp8 --dim M=70 --dim N=200 --dim K=288 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=w4a8 --dim M=40 --dim N=64 --dim K=384 --check=strict | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=unit --dim M=20 --dim N=136 --dim K=256 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.120.so --device=sim --function=mxfp6 --dim M=40 --dim N=136 --dim K=160 --check=strict --policy=lazy | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// TMA spreads runs of 128 elements of 4 and 6 bits.
// RUN: not fp4-run %t.so --device=sim --function=mxfp8 --dim M=70 --dim N=72 --dim K=48 2>&1 | FileCheck %s --check-prefix=BLOCK
// BLOCK: error: columns of operand 'lhs' of the matmul at dynamic-wide.mlir:{{[0-9]+}}:{{[0-9]+}} must be 64, but got 48
// BLOCK: note: pad the contraction axis of both operands with zeros to a multiple of 32
// RUN: not fp4-run %t.so --device=sim --function=mxfp6 --dim M=70 --dim N=72 --dim K=160 2>&1 | FileCheck %s --check-prefix=SIX
// RUN: not fp4-run %t.so --device=sim --function=w4a8 --dim M=70 --dim N=72 --dim K=160 2>&1 | FileCheck %s --check-prefix=SIX
// RUN: not fp4-run %t.120.so --device=sim --function=w4a8 --dim M=70 --dim N=72 --dim K=160 2>&1 | FileCheck %s --check-prefix=SIX
// SIX: error: columns of operand 'lhs' of the matmul at dynamic-wide.mlir:{{[0-9]+}}:{{[0-9]+}} must be 256, but got 160
// SIX: note: pad the contraction axis of both operands with zeros to a multiple of 128

!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!e = tensor<?x?xf8E4M3FN>
!g = tensor<?x?xf8E5M2>
!lhs = !fp4.scaled<mxfp8_e4m3, !e, !s>
!rhs = !fp4.scaled<mxfp8_e5m2, !g, !s>
func.func @mxfp8(%a: !e {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/32"]},
                 %b: !g {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N", "K/32"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!c = tensor<?x?xf4E2M1FN>
!rhs2 = !fp4.scaled<mxfp4, !c, !s>
func.func @w4a8(%a: !e {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/32"]},
                %b: !c {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N", "K/32"]}) -> tensor<?x?xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs2) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Activations without scales.
func.func @unit(%a: !e {fp4.dims = ["M", "K"]}, %b: !c {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N", "K/32"]},
                %alpha: tensor<?x1xf32> {fp4.dims = ["M", ""]}) -> tensor<?x?xbf16> {
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a, %b_scaled alpha %alpha : (!e, !rhs2, tensor<?x1xf32>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!x = tensor<?x?xf6E2M3FN>
!z = tensor<?x?xf6E3M2FN>
!lhs2 = !fp4.scaled<mxfp6_e2m3, !x, !s>
!rhs3 = !fp4.scaled<mxfp6_e3m2, !z, !s>
func.func @mxfp6(%a: !x {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/32"]},
                 %b: !z {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N", "K/32"]}) -> tensor<?x?xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs3) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

!lhs3 = !fp4.scaled<mxfp6_e2m3, tensor<?x256xf6E2M3FN>,
                    tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp6_e2m3, tensor<72x256xf6E2M3FN>,
                    tensor<72x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Only some sizes are dynamic: those of elements of 6 bits that a kernel packs before.
func.func @rows(%a: tensor<?x256xf6E2M3FN> {fp4.dims = ["M", ""]}, %s: tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.dims = ["M", ""]},
                %b: tensor<72x256xf6E2M3FN>, %t: tensor<72x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x72xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs3
  %b_scaled = fp4.scaled %b, %t : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs4) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}
!lhs4 = !fp4.scaled<mxfp6_e2m3, tensor<33x?xf6E2M3FN>,
                    tensor<33x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<mxfp6_e2m3, tensor<72x?xf6E2M3FN>,
                    tensor<72x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @depth(%a: tensor<33x?xf6E2M3FN> {fp4.dims = ["", "K"]}, %s: tensor<33x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.dims = ["", "K/32"]},
                 %b: tensor<72x?xf6E2M3FN> {fp4.dims = ["", "K"]}, %t: tensor<72x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.dims = ["", "K/32"]}) -> tensor<33x72xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs4
  %b_scaled = fp4.scaled %b, %t : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs4, !rhs5) -> tensor<33x72xbf16>
  return %y : tensor<33x72xbf16>
}
