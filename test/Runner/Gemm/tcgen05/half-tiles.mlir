// Two warpgroups read the columns of a swapped tile, which are rows of the result: where the last tile has half of them,
// the second warpgroup stores nothing. The epilogue regions add a bias; 64 rows are the twin whose tiles are whole.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=half32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=half64 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=whole --check=strict | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}} equals the reference, bit for bit
// CHECK: hazards {{.*}}none

!t32 = tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t48 = tensor<48x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t64 = tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t96 = tensor<96x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, tensor<48x64xf4E2M1FN>, !t48>
!rhs = !fp4.scaled<mxfp4, tensor<32x64xf4E2M1FN>, !t32>
func.func @half32(%a: tensor<48x64xf4E2M1FN>, %sa: !t48, %b: tensor<32x64xf4E2M1FN>, %sb: !t32, %bias: tensor<32xf32>) -> (tensor<48x32xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256], epilogue_warps = 8>}
      : (!lhs, !rhs) -> tensor<48x32xf32>
  %e = tensor.empty() : tensor<48x32xf32>
  %w = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<48x32xf32>) dimensions = [0]
  %s = arith.addf %y, %w : tensor<48x32xf32>
  %r = arith.truncf %s : tensor<48x32xf32> to tensor<48x32xbf16>
  return %r : tensor<48x32xbf16>
}

!lhs2 = !fp4.scaled<mxfp4, tensor<96x64xf4E2M1FN>, !t96>
func.func @half64(%a: tensor<96x64xf4E2M1FN>, %sa: !t96, %b: tensor<32x64xf4E2M1FN>, %sb: !t32, %bias: tensor<32xf32>) -> (tensor<96x32xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 64, 256], epilogue_warps = 8>}
      : (!lhs2, !rhs) -> tensor<96x32xf32>
  %e = tensor.empty() : tensor<96x32xf32>
  %w = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<96x32xf32>) dimensions = [0]
  %s = arith.addf %y, %w : tensor<96x32xf32>
  %r = arith.truncf %s : tensor<96x32xf32> to tensor<96x32xbf16>
  return %r : tensor<96x32xbf16>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, !t64>
func.func @whole(%a: tensor<64x64xf4E2M1FN>, %sa: !t64, %b: tensor<32x64xf4E2M1FN>, %sb: !t32, %bias: tensor<32xf32>) -> (tensor<64x32xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256], epilogue_warps = 8>}
      : (!lhs3, !rhs) -> tensor<64x32xf32>
  %e = tensor.empty() : tensor<64x32xf32>
  %w = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<64x32xf32>) dimensions = [0]
  %s = arith.addf %y, %w : tensor<64x32xf32>
  %r = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xbf16>
  return %r : tensor<64x32xbf16>
}
