// Split-K: several CTAs compute a tile, and the last one adds the sums in
// a fixed order, whichever it is.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=static --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=static --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=static --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=dynamic --shape 130 --policy=random --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pairs --shape 300 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!s = tensor<20x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<72x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<20x1280xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<72x1280xf4E2M1FN>, !sb>
func.func @static(%a: tensor<20x1280xf4E2M1FN>, %la: tensor<20x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<20x72xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x80xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> !sb
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>, epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs) -> tensor<20x72xbf16>
  return %y : tensor<20x72xbf16>
}

!d = tensor<?x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<nvfp4, tensor<?x1280xf4E2M1FN>, !d>
func.func @dynamic(%a: tensor<?x1280xf4E2M1FN>, %la: tensor<?x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x80xf8E4M3FN> -> !d
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> !sb
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 5>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs2, !rhs) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

func.func @pairs(%a: tensor<?x1280xf4E2M1FN>, %la: tensor<?x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x80xf8E4M3FN> -> !d
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> !sb
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256]>}
      : (!lhs2, !rhs) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}
