// A static K drops the cases whose k_unit does not divide it, and the k_unit of the others.
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: sed 's/512x256/512x384/g; s/?x256/?x384/g; s/512x2xf32/512x3xf32/; s/?x2xf32/?x3xf32/; s/4x2xf32/4x3xf32/' %s \
// RUN:   | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=OTHER
// CHECK: dispatch = [#fp4.case<m = [1, 128] :
// CHECK-SAME: #fp4.case<any : tile_gemm{{[^>]*>[^>]*}}tile = [256, 128, 128]
// CHECK-SAME: #fp4.case<any : tile_gemm{{[^>]*>[^>]*}}tile = [128, 64, 128]
// CHECK-NOT: k_unit
// OTHER-NOT: dispatch
// OTHER: fp4.plan = #fp4.plan<tile_gemm{{[^>]*>[^>]*}}tile = [128, 64, 128]

!sa = tensor<?x2xf32>
!sb = tensor<4x2xf32>
!lhs = !fp4.scaled<fp8_block128, tensor<?x256xf8E4M3FN>, !sa>
!rhs = !fp4.scaled<fp8_block128, tensor<512x256xf8E4M3FN>, !sb>
func.func @fp8(%a: tensor<?x256xf8E4M3FN>, %sa: !sa, %b: tensor<512x256xf8E4M3FN>, %sb: !sb) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {dispatch = [#fp4.case<m = [1, 128], k_unit = 256 : tile_gemm, tile = [64, 32, 256], wave_cost = [1, 1, 1]>, #fp4.case<k_unit = 256 : tile_gemm, tile = [256, 128, 128], wave_cost = [20, 1, 1]>, #fp4.case<any : tile_gemm, tile = [128, 64, 128], wave_cost = [99, 9, 9]>]}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
