// Split-K that reduces in clusters with several tiles: a CTA sends the sums of its next tile when
// all have added those of the one before.
// RUN: fp4-runner %s --sms=4 --emit=so -o %t.so
// RUN: fp4-run %t.so --function=turns --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=turns --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=turns --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=turns --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pairs --shape 300 --policy=random --seed=3 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!s = tensor<20x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<72x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<20x768xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<72x768xf4E2M1FN>, !t>
func.func @turns(%a: tensor<20x768xf4E2M1FN>, %la: tensor<20x48xf8E4M3FN>, %b: tensor<72x768xf4E2M1FN>, %lb: tensor<72x48xf8E4M3FN>) -> tensor<20x72xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x48xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<72x48xf8E4M3FN> -> !t
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster>}
      : (!lhs, !rhs) -> tensor<20x72xbf16>
  return %y : tensor<20x72xbf16>
}

!d = tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!w = tensor<72x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, tensor<?x512xf4E2M1FN>, !d>
!rhs2 = !fp4.scaled<mxfp4, tensor<72x512xf4E2M1FN>, !w>
func.func @pairs(%a: tensor<?x512xf4E2M1FN>, %la: tensor<?x16xf8E8M0FNU>, %b: tensor<72x512xf4E2M1FN>, %lb: tensor<72x16xf8E8M0FNU>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x16xf8E8M0FNU> -> !d
  %sb = fp4.swizzle_scales %lb : tensor<72x16xf8E8M0FNU> -> !w
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256], reduction = cluster>}
      : (!lhs2, !rhs2) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}