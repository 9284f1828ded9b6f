// GEMMs of elements of 6 bits on tensor cores with tensor memory, in any pair with 4, 6 and 8 bits: a kernel packs
// them, TMA spreads them over shared memory, and kind mxf8f6f4 multiplies. Small M, pairs of CTAs, clusters whose
// CTAs load tiles together, and split-K.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=six --shape 130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=six --shape 1 --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=six_four --shape 40 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=eight_six --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=few --check=strict --policy=random --seed=2 | FileCheck %s
// RUN: fp4-run %t.so --function=cluster --check=strict --policy=random --seed=3 | FileCheck %s
// RUN: fp4-run %t.so --function=split --check=strict --policy=eager | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// RUN: fp4-opt %s --compile-to=tiles | FileCheck %s --check-prefix=TILES
// TILES-DAG: !pipe.tensor_map<{{[0-9]+}}x128xf6E2M3FN, swizzle_128B_b6x16_p32>
// TILES-DAG: !pipe.tensor_map<{{[0-9]+}}x128xf6E3M2FN, swizzle_128B_b6x16_p32>

#tiled = #fp4.scale_layout<tiled_128x4>
!lhs = !fp4.scaled<mxfp6_e2m3, tensor<?x256xf6E2M3FN>, tensor<?x8xf8E8M0FNU, #tiled>>
!rhs = !fp4.scaled<mxfp6_e3m2, tensor<72x256xf6E3M2FN>, tensor<72x8xf8E8M0FNU, #tiled>>
func.func @six(%x: tensor<?x256xbf16>, %w: tensor<72x256xbf16>) -> (tensor<?x72xbf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf6E2M3FN>, tensor<?x8xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<?x8xf8E8M0FNU> -> tensor<?x8xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_rceil>}
      : (tensor<72x256xbf16>) -> (tensor<72x256xf6E3M2FN>, tensor<72x8xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<72x8xf8E8M0FNU> -> tensor<72x8xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs
  %qb_scaled = fp4.scaled %qb, %sb : !rhs
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs, !rhs) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

!lhs2 = !fp4.scaled<mxfp6_e2m3, tensor<?x384xf6E2M3FN>, tensor<?x12xf8E8M0FNU, #tiled>>
!rhs2 = !fp4.scaled<mxfp4, tensor<200x384xf4E2M1FN>, tensor<200x12xf8E8M0FNU, #tiled>>
func.func @six_four(%x: tensor<?x384xbf16>, %w: tensor<200x384xbf16>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_rceil>}
      : (tensor<?x384xbf16>) -> (tensor<?x384xf6E2M3FN>, tensor<?x12xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<?x12xf8E8M0FNU> -> tensor<?x12xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<200x384xbf16>) -> (tensor<200x384xf4E2M1FN>, tensor<200x12xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<200x12xf8E8M0FNU> -> tensor<200x12xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs2
  %qb_scaled = fp4.scaled %qb, %sb : !rhs2
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs2, !rhs2) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!lhs3 = !fp4.scaled<mxfp8_e4m3, tensor<300x256xf8E4M3FN>, tensor<300x8xf8E8M0FNU, #tiled>>
!rhs3 = !fp4.scaled<mxfp6_e3m2, tensor<136x256xf6E3M2FN>, tensor<136x8xf8E8M0FNU, #tiled>>
func.func @eight_six(%x: tensor<300x256xbf16>, %w: tensor<136x256xbf16>) -> (tensor<300x136xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<300x256xbf16>) -> (tensor<300x256xf8E4M3FN>, tensor<300x8xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<300x8xf8E8M0FNU> -> tensor<300x8xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_floor>}
      : (tensor<136x256xbf16>) -> (tensor<136x256xf6E3M2FN>, tensor<136x8xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<136x8xf8E8M0FNU> -> tensor<136x8xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs3
  %qb_scaled = fp4.scaled %qb, %sb : !rhs3
  %y = fp4.matmul %qa_scaled, %qb_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 64, 128], store = tma>}
      : (!lhs3, !rhs3) -> tensor<300x136xf32>
  return %y : tensor<300x136xf32>
}

!lhs4 = !fp4.scaled<mxfp6_e3m2, tensor<9x128xf6E3M2FN>, tensor<9x4xf8E8M0FNU, #tiled>>
!rhs4 = !fp4.scaled<mxfp6_e2m3, tensor<136x128xf6E2M3FN>, tensor<136x4xf8E8M0FNU, #tiled>>
func.func @few(%x: tensor<9x128xbf16>, %w: tensor<136x128xbf16>) -> (tensor<9x136xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_floor>}
      : (tensor<9x128xbf16>) -> (tensor<9x128xf6E3M2FN>, tensor<9x4xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<9x4xf8E8M0FNU> -> tensor<9x4xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<136x128xbf16>) -> (tensor<136x128xf6E2M3FN>, tensor<136x4xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<136x4xf8E8M0FNU> -> tensor<136x4xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs4
  %qb_scaled = fp4.scaled %qb, %sb : !rhs4
  %y = fp4.matmul %qa_scaled, %qb_scaled {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>>}
      : (!lhs4, !rhs4) -> tensor<9x136xf32>
  return %y : tensor<9x136xf32>
}

!lhs5 = !fp4.scaled<mxfp6_e3m2, tensor<300x256xf6E3M2FN>, tensor<300x8xf8E8M0FNU, #tiled>>
!rhs5 = !fp4.scaled<mxfp8_e5m2, tensor<200x256xf8E5M2>, tensor<200x8xf8E8M0FNU, #tiled>>
func.func @cluster(%x: tensor<300x256xbf16>, %w: tensor<200x256xbf16>) -> (tensor<300x200xf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_floor>}
      : (tensor<300x256xbf16>) -> (tensor<300x256xf6E3M2FN>, tensor<300x8xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<300x8xf8E8M0FNU> -> tensor<300x8xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp8_e5m2>, recipe = #fp4.recipe<mxfp8_e5m2_floor>}
      : (tensor<200x256xbf16>) -> (tensor<200x256xf8E5M2>, tensor<200x8xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<200x8xf8E8M0FNU> -> tensor<200x8xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs5
  %qb_scaled = fp4.scaled %qb, %sb : !rhs5
  %y = fp4.matmul %qa_scaled, %qb_scaled {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 2]>}
      : (!lhs5, !rhs5) -> tensor<300x200xf16>
  return %y : tensor<300x200xf16>
}

!lhs6 = !fp4.scaled<mxfp6_e2m3, tensor<65x1024xf6E2M3FN>, tensor<65x32xf8E8M0FNU, #tiled>>
!rhs6 = !fp4.scaled<mxfp6_e2m3, tensor<64x1024xf6E2M3FN>, tensor<64x32xf8E8M0FNU, #tiled>>
func.func @split(%x: tensor<65x1024xbf16>, %w: tensor<64x1024xbf16>) -> (tensor<65x64xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<65x1024xbf16>) -> (tensor<65x1024xf6E2M3FN>, tensor<65x32xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<65x32xf8E8M0FNU> -> tensor<65x32xf8E8M0FNU, #tiled>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<64x1024xbf16>) -> (tensor<64x1024xf6E2M3FN>, tensor<64x32xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<64x32xf8E8M0FNU> -> tensor<64x32xf8E8M0FNU, #tiled>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs6
  %qb_scaled = fp4.scaled %qb, %sb : !rhs6
  %y = fp4.matmul %qa_scaled, %qb_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs6, !rhs6) -> tensor<65x64xf32>
  return %y : tensor<65x64xf32>
}
