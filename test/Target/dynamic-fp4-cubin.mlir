// Kernels of libraries of MXFP4 for any M, N and K spill nothing. Where the lhs is converted before the product, the
// loading warp has the sizes and the addresses of four tensor maps in 40 registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s --implicit-check-not="spill {{[1-9]}}"

// CHECK: any_matmul_2 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-NEXT: any_convert_0
// CHECK-NEXT: any_matmul_3 kernel: registers 168, spill 0, stack 0
// CHECK: any_matmul_6 kernel: registers {{[0-9]+}}, spill 0, stack 0

!c = tensor<?x?xf4E2M1FN>
!e = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @any(%a: !c, %s: !e, %b: !c, %t: !e) -> tensor<?x?xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t {format = #fp4.format<mxfp4>} : (!c, !e, !c, !e) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
