// Split-K whose CTAs are a cluster: each CTA sends the others the columns that these add, and adds its
// own in the order of the ranges. The bits are those of a reduction in a workspace.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=static --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=static --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=static --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=static --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=dynamic --shape 20 --policy=random --seed=3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=dynamic --shape 1 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pairs --shape 200 --policy=random --seed=4 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=wide --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=uneven --policy=random --seed=5 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=rows --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=bytes --policy=random --seed=6 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!lhs = !fp4.scaled<nvfp4, tensor<20x1280xf4E2M1FN>,
                   tensor<20x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<72x1280xf4E2M1FN>,
                   tensor<72x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// RUN: fp4-runner %s --emit=mlir --compile-to=planned | FileCheck %s --check-prefix=PLANNED
// PLANNED-LABEL: func.func @static
// PLANNED: cluster = [3, 1], reduction = cluster
func.func @static(%a: tensor<20x1280xf4E2M1FN>, %la: tensor<20x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<20x72xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x80xf8E4M3FN> -> tensor<20x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> tensor<72x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 3>, epilogue = #fp4.epilogue<relu>,
       fp4.plan = #fp4.plan<tile_gemm, reduction = cluster>}
      : (!lhs, !rhs) -> tensor<20x72xbf16>
  return %y : tensor<20x72xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<?x1280xf4E2M1FN>,
                    tensor<?x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<64x1280xf4E2M1FN>,
                    tensor<64x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Rows are known at run time; five CTAs, of which four add 16 columns each.
func.func @dynamic(%a: tensor<?x1280xf4E2M1FN>, %la: tensor<?x80xf8E4M3FN>, %b: tensor<64x1280xf4E2M1FN>, %lb: tensor<64x80xf8E4M3FN>) -> tensor<?x64xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x80xf8E4M3FN> -> tensor<?x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<64x80xf8E4M3FN> -> tensor<64x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 5>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster>}
      : (!lhs2, !rhs2) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Pairs reduce: CTAs with the same place in their pairs.
func.func @pairs(%a: tensor<?x1280xf4E2M1FN>, %la: tensor<?x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x80xf8E4M3FN> -> tensor<?x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> tensor<72x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256], reduction = cluster>}
      : (!lhs2, !rhs) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<30x1024xf4E2M1FN>,
                    tensor<30x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp4, tensor<132x1024xf4E2M1FN>,
                    tensor<132x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// 32 sums in a thread, and a second tile of four columns.
func.func @wide(%a: tensor<30x1024xf4E2M1FN>, %la: tensor<30x32xf8E8M0FNU>, %b: tensor<132x1024xf4E2M1FN>, %lb: tensor<132x32xf8E8M0FNU>) -> tensor<30x132xf16> {
  %sa = fp4.swizzle_scales %la : tensor<30x32xf8E8M0FNU> -> tensor<30x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<132x32xf8E8M0FNU> -> tensor<132x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], reduction = cluster>}
      : (!lhs3, !rhs3) -> tensor<30x132xf16>
  return %y : tensor<30x132xf16>
}

!lhs4 = !fp4.scaled<nvfp4, tensor<40x2048xf4E2M1FN>,
                    tensor<40x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<nvfp4, tensor<56x2048xf4E2M1FN>,
                    tensor<56x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// The last CTA adds four columns, and ranges have one or two slices of K.
func.func @uneven(%a: tensor<40x2048xf4E2M1FN>, %la: tensor<40x128xf8E4M3FN>, %b: tensor<56x2048xf4E2M1FN>, %lb: tensor<56x128xf8E4M3FN>, %alpha: tensor<1x56xf32>) -> tensor<40x56xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<40x128xf8E4M3FN> -> tensor<40x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<56x128xf8E4M3FN> -> tensor<56x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<split_k = 7>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster>}
      : (!lhs4, !rhs4, tensor<1x56xf32>) -> tensor<40x56xbf16>
  return %y : tensor<40x56xbf16>
}

!lhs5 = !fp4.scaled<nvfp4, tensor<5x1280xf4E2M1FN>,
                    tensor<5x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<nvfp4, tensor<200x1280xf4E2M1FN>,
                    tensor<200x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Operands are swapped: eight rows are columns, which two of four CTAs add.
func.func @rows(%a: tensor<5x1280xf4E2M1FN>, %la: tensor<5x80xf8E4M3FN>, %b: tensor<200x1280xf4E2M1FN>, %lb: tensor<200x80xf8E4M3FN>, %alpha: tensor<5x1xf32>) -> tensor<5x200xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<5x80xf8E4M3FN> -> tensor<5x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<200x80xf8E4M3FN> -> tensor<200x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 8, 256], reduction = cluster>}
      : (!lhs5, !rhs5, tensor<5x1xf32>) -> tensor<5x200xbf16>
  return %y : tensor<5x200xbf16>
}

!lhs6 = !fp4.scaled<nvfp4, tensor<30x1024xf4E2M1FN>,
                    tensor<30x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs6 = !fp4.scaled<nvfp4, tensor<80x1024xf4E2M1FN>,
                    tensor<80x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @bytes(%a: tensor<30x1024xf4E2M1FN>, %la: tensor<30x64xf8E4M3FN>, %b: tensor<80x1024xf4E2M1FN>, %lb: tensor<80x64xf8E4M3FN>) -> tensor<30x80xf8E4M3FN> {
  %sa = fp4.swizzle_scales %la : tensor<30x64xf8E4M3FN> -> tensor<30x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<80x64xf8E4M3FN> -> tensor<80x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 4>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 96, 256], reduction = cluster>}
      : (!lhs6, !rhs6) -> tensor<30x80xf8E4M3FN>
  return %y : tensor<30x80xf8E4M3FN>
}
