// GEMMs by instructions of K = 96, on sm_103a: tiles of 64, 128 and 192 columns, which begin within blocks of
// scales; k tiles that wrap around their stages and end within a tile, an instruction and a block of scales;
// both formats; M at run time; a cluster that multicasts; a result by TMA.
// RUN: fp4-runner %s --target=sm_103a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=layer --shape 300 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=layer --shape 5 --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=wide --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=powers --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=cluster --policy=random --seed=3 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

!lhs = !fp4.scaled<nvfp4, tensor<?x1040xf4E2M1FN>,
                   tensor<?x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<200x1040xf4E2M1FN>,
                   tensor<200x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @layer(%a: tensor<?x1040xf4E2M1FN>, %la: tensor<?x65xf8E4M3FN>, %b: tensor<200x1040xf4E2M1FN>, %lb: tensor<200x65xf8E4M3FN>, %alpha: tensor<f32>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<?x65xf8E4M3FN> -> tensor<?x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<200x65xf8E4M3FN> -> tensor<200x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 64, 768], cluster = [2, 1], pair>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<260x2400xf4E2M1FN>,
                    tensor<260x150xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<392x2400xf4E2M1FN>,
                    tensor<392x150xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<260x2400xf4E2M1FN>, %la: tensor<260x150xf8E4M3FN>, %b: tensor<392x2400xf4E2M1FN>, %lb: tensor<392x150xf8E4M3FN>) -> (tensor<260x392xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<260x150xf8E4M3FN> -> tensor<260x150xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<392x150xf8E4M3FN> -> tensor<392x150xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 192, 768], cluster = [2, 1], pair>}
      : (!lhs2, !rhs2) -> tensor<260x392xf32>
  return %y : tensor<260x392xf32>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<256x864xf4E2M1FN>,
                    tensor<256x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp4, tensor<320x864xf4E2M1FN>,
                    tensor<320x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @powers(%a: tensor<256x864xf4E2M1FN>, %la: tensor<256x27xf8E8M0FNU>, %b: tensor<320x864xf4E2M1FN>, %lb: tensor<320x27xf8E8M0FNU>) -> (tensor<256x320xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<256x27xf8E8M0FNU> -> tensor<256x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<320x27xf8E8M0FNU> -> tensor<320x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs3, !rhs3) -> tensor<256x320xbf16>
  return %y : tensor<256x320xbf16>
}

!lhs4 = !fp4.scaled<mxfp4, tensor<300x800xf4E2M1FN>,
                    tensor<300x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp4, tensor<520x800xf4E2M1FN>,
                    tensor<520x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @cluster(%a: tensor<300x800xf4E2M1FN>, %la: tensor<300x25xf8E8M0FNU>, %b: tensor<520x800xf4E2M1FN>, %lb: tensor<520x25xf8E8M0FNU>) -> (tensor<300x520xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<300x25xf8E8M0FNU> -> tensor<300x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<520x25xf8E8M0FNU> -> tensor<520x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 768], cluster = [2, 2], pair, store = tma>}
      : (!lhs4, !rhs4) -> tensor<300x520xbf16>
  return %y : tensor<300x520xbf16>
}
