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
func.func @turns(%a: tensor<20x768xf4E2M1FN>, %la: tensor<20x48xf8E4M3FN>, %b: tensor<72x768xf4E2M1FN>, %lb: tensor<72x48xf8E4M3FN>) -> tensor<20x72xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x48xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<72x48xf8E4M3FN> -> !t
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, split_k = 3 : i64, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster>}
      : (tensor<20x768xf4E2M1FN>, !s, tensor<72x768xf4E2M1FN>, !t) -> tensor<20x72xbf16>
  return %y : tensor<20x72xbf16>
}

!d = tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!w = tensor<72x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @pairs(%a: tensor<?x512xf4E2M1FN>, %la: tensor<?x16xf8E8M0FNU>, %b: tensor<72x512xf4E2M1FN>, %lb: tensor<72x16xf8E8M0FNU>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x16xf8E8M0FNU> -> !d
  %sb = fp4.swizzle_scales %lb : tensor<72x16xf8E8M0FNU> -> !w
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>, split_k = 2 : i64, fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256], reduction = cluster>}
      : (tensor<?x512xf4E2M1FN>, !d, tensor<72x512xf4E2M1FN>, !w) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}