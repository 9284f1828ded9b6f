// Two warpgroups read an accumulator, each a half of its columns: results that leave through shared memory, in halves
// side by side, and directly; of pairs, with swapped operands, and of split-K that reduces in a cluster.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=staged --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=staged --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=staged --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=staged --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pairs --shape 200 --policy=random --seed=3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=narrow --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=rows --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=joined --policy=random --seed=4 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=held --policy=random --seed=5 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=streamed --policy=random --seed=6 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

// RUN: fp4-runner %s --emit=mlir --compile-to=planned | FileCheck %s --check-prefix=PLANNED
// PLANNED-LABEL: func.func @staged
// PLANNED: store = tma, epilogue_warps = 8
// PLANNED-SAME: mma warps 8 to 10 drives [tensor, scale_copy], epilogue warps 0 to 8 drives [threads], store warps 11 to 12

!lhs = !fp4.scaled<nvfp4, tensor<130x256xf4E2M1FN>,
                   tensor<130x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<136x256xf4E2M1FN>,
                   tensor<136x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @staged(%a: tensor<130x256xf4E2M1FN>, %la: tensor<130x16xf8E4M3FN>, %b: tensor<136x256xf4E2M1FN>, %lb: tensor<136x16xf8E4M3FN>) -> tensor<130x136xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<130x16xf8E4M3FN> -> tensor<130x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<136x16xf8E4M3FN> -> tensor<136x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], store = tma, epilogue_warps = 8>}
      : (!lhs, !rhs) -> tensor<130x136xbf16>
  return %y : tensor<130x136xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<?x512xf4E2M1FN>,
                    tensor<?x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<72x512xf4E2M1FN>,
                    tensor<72x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @pairs(%a: tensor<?x512xf4E2M1FN>, %la: tensor<?x32xf8E4M3FN>, %b: tensor<72x512xf4E2M1FN>, %lb: tensor<72x32xf8E4M3FN>, %alpha: tensor<1x72xf32>) -> tensor<?x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<?x32xf8E4M3FN> -> tensor<?x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<72x32xf8E4M3FN> -> tensor<72x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 256], store = direct, epilogue_warps = 8>}
      : (!lhs2, !rhs2, tensor<1x72xf32>) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<20x256xf4E2M1FN>,
                    tensor<20x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp4, tensor<100x256xf4E2M1FN>,
                    tensor<100x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @narrow(%a: tensor<20x256xf4E2M1FN>, %la: tensor<20x8xf8E8M0FNU>, %b: tensor<100x256xf4E2M1FN>, %lb: tensor<100x8xf8E8M0FNU>) -> tensor<20x100xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x8xf8E8M0FNU> -> tensor<20x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<100x8xf8E8M0FNU> -> tensor<100x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {epilogue = #fp4.epilogue<relu>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 96, 256], epilogue_warps = 8>}
      : (!lhs3, !rhs3) -> tensor<20x100xbf16>
  return %y : tensor<20x100xbf16>
}

!lhs4 = !fp4.scaled<nvfp4, tensor<20x256xf4E2M1FN>,
                    tensor<20x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows(%a: tensor<20x256xf4E2M1FN>, %la: tensor<20x16xf8E4M3FN>, %b: tensor<136x256xf4E2M1FN>, %lb: tensor<136x16xf8E4M3FN>, %alpha: tensor<20x1xf32>) -> tensor<20x136xf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x16xf8E4M3FN> -> tensor<20x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<136x16xf8E4M3FN> -> tensor<136x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256], epilogue_warps = 8>}
      : (!lhs4, !rhs, tensor<20x1xf32>) -> tensor<20x136xf16>
  return %y : tensor<20x136xf16>
}

!lhs5 = !fp4.scaled<nvfp4, tensor<20x512xf4E2M1FN>,
                    tensor<20x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<nvfp4, tensor<64x512xf4E2M1FN>,
                    tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @joined(%a: tensor<20x512xf4E2M1FN>, %la: tensor<20x32xf8E4M3FN>, %b: tensor<64x512xf4E2M1FN>, %lb: tensor<64x32xf8E4M3FN>) -> tensor<20x64xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x32xf8E4M3FN> -> tensor<20x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<64x32xf8E4M3FN> -> tensor<64x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster, epilogue_warps = 8>}
      : (!lhs5, !rhs4) -> tensor<20x64xbf16>
  return %y : tensor<20x64xbf16>
}

!rhs5 = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>,
                    tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// All columns of a tile are read before any is stored.
func.func @held(%a: tensor<20x256xf4E2M1FN>, %la: tensor<20x16xf8E4M3FN>, %b: tensor<256x256xf4E2M1FN>, %lb: tensor<256x16xf8E4M3FN>) -> tensor<20x256xf8E4M3FN> {
  %sa = fp4.swizzle_scales %la : tensor<20x16xf8E4M3FN> -> tensor<20x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<256x16xf8E4M3FN> -> tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256], epilogue_warps = 8>}
      : (!lhs4, !rhs5) -> tensor<20x256xf8E4M3FN>
  return %y : tensor<20x256xf8E4M3FN>
}

// Half of the columns of a thread leave before the others are read.
func.func @streamed(%a: tensor<20x256xf4E2M1FN>, %la: tensor<20x16xf8E4M3FN>, %b: tensor<256x256xf4E2M1FN>, %lb: tensor<256x16xf8E4M3FN>) -> tensor<20x256xf32> {
  %sa = fp4.swizzle_scales %la : tensor<20x16xf8E4M3FN> -> tensor<20x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<256x16xf8E4M3FN> -> tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256], store = tma, epilogue_warps = 8>}
      : (!lhs4, !rhs5) -> tensor<20x256xf32>
  return %y : tensor<20x256xf32>
}
