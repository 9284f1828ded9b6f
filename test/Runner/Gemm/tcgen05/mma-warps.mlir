// One warp multiplies and copies scales to tensor memory: CTAs alone, with K that ends within a k tile; pairs with two sets
// of scales, and with accumulators that overlap; clusters; swapped operands; pairs of 128 rows; split-K that reduces in
// a cluster; an epilogue of eight warps; and work that is taken over.
// RUN: fp4-runner %s --emit=so --sms=4 -o %t.so
// RUN: fp4-run %t.so --function=block --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=block --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=block --check=strict --policy=random --seed=2 | FileCheck %s
// RUN: fp4-run %t.so --function=pair --shape 300 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=pair --shape 1 --check=strict --policy=random --seed=3 | FileCheck %s
// RUN: fp4-run %t.so --function=overlapped --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=cluster --check=strict --policy=random --seed=4 | FileCheck %s
// RUN: fp4-run %t.so --function=swapped --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=narrow --check=strict --policy=random --seed=5 | FileCheck %s
// RUN: fp4-run %t.so --function=joined --check=strict --policy=random --seed=6 | FileCheck %s
// RUN: fp4-run %t.so --function=wide --check=strict --policy=random --seed=7 | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

// One warp copies the scales of a k tile, multiplies, and goes on with the next. With `mma_warps = 2` the one that multiplies
// copies nothing.
// RUN: fp4-runner %s --emit=ptx | FileCheck %s --check-prefix=ONE
// RUN: sed 's/mma_warps = 1/mma_warps = 2/' %s > %t.mlir
// RUN: fp4-runner %t.mlir --emit=ptx | FileCheck %s --check-prefix=TWO
// ONE: .reqntid 192
// ONE-NOT: {{tcgen05.mma|entry}}
// ONE: tcgen05.cp
// ONE-NOT: entry
// ONE: tcgen05.mma
// ONE-NOT: entry
// ONE: tcgen05.cp
// ONE-NOT: entry
// ONE: tcgen05.mma
// TWO: .reqntid 224
// TWO-NOT: {{tcgen05.cp|entry}}
// TWO: tcgen05.mma
// TWO-NOT: entry
// TWO: tcgen05.cp
// TWO-NOT: tcgen05.mma
// TWO: entry

!lhs = !fp4.scaled<nvfp4, tensor<300x1056xf4E2M1FN>,
                   tensor<300x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<136x1056xf4E2M1FN>,
                   tensor<136x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @block(%a: tensor<300x1056xf4E2M1FN>, %la: tensor<300x66xf8E4M3FN>, %b: tensor<136x1056xf4E2M1FN>, %lb: tensor<136x66xf8E4M3FN>) -> (tensor<300x136xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<300x66xf8E4M3FN> -> tensor<300x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<136x66xf8E4M3FN> -> tensor<136x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], mma_warps = 1>}
      : (!lhs, !rhs) -> tensor<300x136xbf16>
  return %y : tensor<300x136xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<?x768xf4E2M1FN>,
                    tensor<?x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<392x768xf4E2M1FN>,
                    tensor<392x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @pair(%a: tensor<?x768xf4E2M1FN>, %la: tensor<?x48xf8E4M3FN>, %b: tensor<392x768xf4E2M1FN>, %lb: tensor<392x48xf8E4M3FN>) -> (tensor<?x392xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<?x48xf8E4M3FN> -> tensor<?x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<392x48xf8E4M3FN> -> tensor<392x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 192, 256], store = tma, mma_warps = 1>}
      : (!lhs2, !rhs2) -> tensor<?x392xbf16>
  return %y : tensor<?x392xbf16>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>,
                    tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<512x512xf4E2M1FN>,
                    tensor<512x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @overlapped(%a: tensor<256x512xf4E2M1FN>, %la: tensor<256x32xf8E4M3FN>, %b: tensor<512x512xf4E2M1FN>, %lb: tensor<512x32xf8E4M3FN>) -> (tensor<256x512xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<512x32xf8E4M3FN> -> tensor<512x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256], mma_warps = 1>}
      : (!lhs3, !rhs3) -> tensor<256x512xbf16>
  return %y : tensor<256x512xbf16>
}

!lhs4 = !fp4.scaled<mxfp4, tensor<256x512xf4E2M1FN>,
                    tensor<256x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp4, tensor<128x512xf4E2M1FN>,
                    tensor<128x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @cluster(%a: tensor<256x512xf4E2M1FN>, %la: tensor<256x16xf8E8M0FNU>, %b: tensor<128x512xf4E2M1FN>, %lb: tensor<128x16xf8E8M0FNU>) -> (tensor<256x128xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<256x16xf8E8M0FNU> -> tensor<256x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<128x16xf8E8M0FNU> -> tensor<128x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 2], tile = [128, 64, 256], schedule = #pipe.static_persistent<along_n>, mma_warps = 1>}
      : (!lhs4, !rhs4) -> tensor<256x128xf32>
  return %y : tensor<256x128xf32>
}

!lhs5 = !fp4.scaled<nvfp4, tensor<8x768xf4E2M1FN>,
                    tensor<8x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<nvfp4, tensor<256x768xf4E2M1FN>,
                    tensor<256x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @swapped(%a: tensor<8x768xf4E2M1FN>, %la: tensor<8x48xf8E4M3FN>, %b: tensor<256x768xf4E2M1FN>, %lb: tensor<256x48xf8E4M3FN>) -> (tensor<8x256xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<8x48xf8E4M3FN> -> tensor<8x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<256x48xf8E4M3FN> -> tensor<256x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 8, 256], mma_warps = 1>}
      : (!lhs5, !rhs5) -> tensor<8x256xbf16>
  return %y : tensor<8x256xbf16>
}

!lhs6 = !fp4.scaled<nvfp4, tensor<130x512xf4E2M1FN>,
                    tensor<130x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs6 = !fp4.scaled<nvfp4, tensor<128x512xf4E2M1FN>,
                    tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @narrow(%a: tensor<130x512xf4E2M1FN>, %la: tensor<130x32xf8E4M3FN>, %b: tensor<128x512xf4E2M1FN>, %lb: tensor<128x32xf8E4M3FN>) -> (tensor<130x128xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<130x32xf8E4M3FN> -> tensor<130x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<128x32xf8E4M3FN> -> tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 128, 256], mma_warps = 1>}
      : (!lhs6, !rhs6) -> tensor<130x128xbf16>
  return %y : tensor<130x128xbf16>
}

!lhs7 = !fp4.scaled<nvfp4, tensor<128x1024xf4E2M1FN>,
                    tensor<128x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs7 = !fp4.scaled<nvfp4, tensor<64x1024xf4E2M1FN>,
                    tensor<64x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @joined(%a: tensor<128x1024xf4E2M1FN>, %la: tensor<128x64xf8E4M3FN>, %b: tensor<64x1024xf4E2M1FN>, %lb: tensor<64x64xf8E4M3FN>) -> (tensor<128x64xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<128x64xf8E4M3FN> -> tensor<128x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], reduction = cluster, mma_warps = 1>}
      : (!lhs7, !rhs7) -> tensor<128x64xbf16>
  return %y : tensor<128x64xbf16>
}

!lhs8 = !fp4.scaled<nvfp4, tensor<200x512xf4E2M1FN>,
                    tensor<200x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<200x512xf4E2M1FN>, %la: tensor<200x32xf8E4M3FN>, %b: tensor<128x512xf4E2M1FN>, %lb: tensor<128x32xf8E4M3FN>) -> (tensor<200x128xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<200x32xf8E4M3FN> -> tensor<200x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<128x32xf8E4M3FN> -> tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], store = tma, epilogue_warps = 8, mma_warps = 1>}
      : (!lhs8, !rhs6) -> tensor<200x128xbf16>
  return %y : tensor<200x128xbf16>
}
