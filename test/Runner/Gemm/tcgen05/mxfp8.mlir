// GEMMs of elements of 8 bits, and of 8 and 4 (kind mxf8f6f4): both element types, ragged M, N and K, M at
// run time, pairs, split-K, swapped operands, groups, a dual GEMM with a quantized result.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=layer --shape 130 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=layer --shape 7 --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=weights --shape 40 --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=gradients --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pair --policy=random --seed=3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=split --policy=random --seed=4 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=few --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=batch --policy=random --seed=5 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)
// RUN: fp4-run %t.so --function=gate --shape 130 --policy=random --seed=6 --check=strict | FileCheck %s --check-prefix=GATE
// RUN: fp4-runner %s --emit=mlir --compile-to=fused | FileCheck %s --check-prefix=DUAL
// DUAL: fp4.matmul {{.*}} with {{.*}} epilogue() {
// DUAL: fp4.epilogue_quantize
// GATE: codes {{.*}}equals the reference, bit for bit
// GATE: scales {{.*}}equals the reference, bit for bit
// GATE: hazards {{.*}}none (strict check)

// On sm_90a operands become bf16, exactly. Pairs, groups and GEMMs of two right-hand sides are left out.
// RUN: sed -e '/^func.*@pair/,/^}/d' -e '/^func.*@batch/,/^}/d' -e '/^func.*@gate/,/^}/d' %s > %t.hopper.mlir
// RUN: fp4-runner %t.hopper.mlir --target=sm_90a --emit=so -o %t.hopper.so
// RUN: fp4-run %t.hopper.so --function=layer --shape 130 --check=strict | FileCheck %s --check-prefix=HOPPER
// RUN: fp4-run %t.hopper.so --function=weights --shape 40 --policy=random --seed=2 --check=strict | FileCheck %s --check-prefix=HOPPER
// RUN: fp4-run %t.hopper.so --function=gradients --policy=delay --dist=adversarial --check=strict | FileCheck %s --check-prefix=HOPPER
// RUN: fp4-run %t.hopper.so --function=split --policy=random --seed=4 --check=strict | FileCheck %s --check-prefix=HOPPER
// RUN: fp4-run %t.hopper.so --function=few --policy=lazy --check=strict | FileCheck %s --check-prefix=HOPPER
// HOPPER: passed
// HOPPER: y {{.*}}equals the wgmma model, bit for bit, and the fp64 sum within its bound
// HOPPER: hazards {{.*}}none (strict check)
// RUN: not fp4-opt %s --fp4-set-target=target=sm_100a --fp4-plan-kernels="plans='tile_gemm, tile = [128, 64, 64]'" 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: must have a plan whose 'tile' is [128, n, k] with n = 64, 96, 128, 192 or 256 and k a multiple of 128, but got [128, 64, 64]

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x160xf8E4M3FN>,
                   tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp8_e4m3, tensor<200x160xf8E4M3FN>,
                   tensor<200x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @layer(%x: tensor<?x160xbf16>, %w: tensor<200x160xbf16>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %qx, %sx = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x160xbf16>) -> (tensor<?x160xf8E4M3FN>, tensor<?x5xf8E8M0FNU>)
  %tx = fp4.swizzle_scales %sx : tensor<?x5xf8E8M0FNU> -> tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (tensor<200x160xbf16>) -> (tensor<200x160xf8E4M3FN>, tensor<200x5xf8E8M0FNU>)
  %tw = fp4.swizzle_scales %sw : tensor<200x5xf8E8M0FNU> -> tensor<200x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x384xf8E4M3FN>,
                    tensor<?x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<72x384xf4E2M1FN>,
                    tensor<72x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Activations of 8 bits, weights of 4.
func.func @weights(%x: tensor<?x384xbf16>, %w: tensor<72x384xbf16>) -> (tensor<?x72xf16> {fp4.name = "y"}) {
  %qx, %sx = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x384xbf16>) -> (tensor<?x384xf8E4M3FN>, tensor<?x12xf8E8M0FNU>)
  %tx = fp4.swizzle_scales %sx : tensor<?x12xf8E8M0FNU> -> tensor<?x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<72x384xbf16>) -> (tensor<72x384xf4E2M1FN>, tensor<72x12xf8E8M0FNU>)
  %tw = fp4.swizzle_scales %sw : tensor<72x12xf8E8M0FNU> -> tensor<72x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs2
  %qw_scaled = fp4.scaled %qw, %tw : !rhs2
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!lhs2, !rhs2) -> tensor<?x72xf16>
  return %y : tensor<?x72xf16>
}

!lhs3 = !fp4.scaled<mxfp8_e5m2, tensor<65x96xf8E5M2>,
                    tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp8_e4m3, tensor<136x96xf8E4M3FN>,
                    tensor<136x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @gradients(%a: tensor<65x96xf8E5M2>, %la: tensor<65x3xf8E8M0FNU>, %b: tensor<136x96xf8E4M3FN>, %lb: tensor<136x3xf8E8M0FNU>) -> (tensor<65x136xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<65x3xf8E8M0FNU> -> tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<136x3xf8E8M0FNU> -> tensor<136x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs3) -> tensor<65x136xf32>
  return %y : tensor<65x136xf32>
}

!lhs4 = !fp4.scaled<mxfp4, tensor<300x256xf4E2M1FN>,
                    tensor<300x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp8_e5m2, tensor<208x256xf8E5M2>,
                    tensor<208x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @pair(%a: tensor<300x256xf4E2M1FN>, %la: tensor<300x8xf8E8M0FNU>, %b: tensor<208x256xf8E5M2>, %lb: tensor<208x8xf8E8M0FNU>, %alpha: tensor<f32>) -> (tensor<300x208xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<300x8xf8E8M0FNU> -> tensor<300x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<208x8xf8E8M0FNU> -> tensor<208x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {epilogue = #fp4.epilogue<relu>,
       fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 128, 128]>}
      : (!lhs4, !rhs4, tensor<f32>) -> tensor<300x208xbf16>
  return %y : tensor<300x208xbf16>
}

!lhs5 = !fp4.scaled<mxfp8_e4m3, tensor<20x608xf8E4M3FN>,
                    tensor<20x19xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<mxfp8_e4m3, tensor<72x608xf8E4M3FN>,
                    tensor<72x19xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Five k tiles of three slices in two ranges.
func.func @split(%a: tensor<20x608xf8E4M3FN>, %la: tensor<20x19xf8E8M0FNU>, %b: tensor<72x608xf8E4M3FN>, %lb: tensor<72x19xf8E8M0FNU>) -> (tensor<20x72xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<20x19xf8E8M0FNU> -> tensor<20x19xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<72x19xf8E8M0FNU> -> tensor<72x19xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs5, !rhs5) -> tensor<20x72xf32>
  return %y : tensor<20x72xf32>
}

!lhs6 = !fp4.scaled<mxfp8_e4m3, tensor<5x256xf8E4M3FN>,
                    tensor<5x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs6 = !fp4.scaled<mxfp4, tensor<200x256xf4E2M1FN>,
                    tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @few(%a: tensor<5x256xf8E4M3FN>, %la: tensor<5x8xf8E8M0FNU>, %b: tensor<200x256xf4E2M1FN>, %lb: tensor<200x8xf8E8M0FNU>) -> (tensor<5x200xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<5x8xf8E8M0FNU> -> tensor<5x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<200x8xf8E8M0FNU> -> tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 8, 128]>}
      : (!lhs6, !rhs6) -> tensor<5x200xbf16>
  return %y : tensor<5x200xbf16>
}

!ga = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs7 = !fp4.scaled<mxfp8_e4m3, tensor<120x128xf8E4M3FN>, !ga>
!rhs7 = !fp4.scaled<mxfp4, tensor<192x128xf4E2M1FN>, !ga>
func.func @batch(%x: tensor<120x128xbf16>, %w: tensor<192x128xbf16>) -> (tensor<120x64xbf16> {fp4.name = "y"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>, groups = array<i64: 40, 40, 40>}
      : (tensor<120x128xbf16>) -> (tensor<120x128xf8E4M3FN>, !ga)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 64, 64, 64>}
      : (tensor<192x128xbf16>) -> (tensor<192x128xf4E2M1FN>, !ga)
  %q_scaled = fp4.scaled %q, %s : !lhs7
  %qw_scaled = fp4.scaled %qw, %sw : !rhs7
  %y = fp4.matmul %q_scaled, %qw_scaled {work = #fp4.work<groups = [40, 40, 40]>}
      : (!lhs7, !rhs7) -> tensor<120x64xbf16>
  return %y : tensor<120x64xbf16>
}

!sx = tensor<?x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!sw = tensor<96x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs8 = !fp4.scaled<mxfp8_e4m3, tensor<?x192xf8E4M3FN>, !sx>
!rhs8 = !fp4.scaled<mxfp8_e4m3, tensor<96x192xf8E4M3FN>, !sw>
func.func @gate(%a: tensor<?x192xf8E4M3FN>, %la: tensor<?x6xf8E8M0FNU>, %u: tensor<96x192xf8E4M3FN>, %lu: tensor<96x6xf8E8M0FNU>, %g: tensor<96x192xf8E4M3FN>, %lg: tensor<96x6xf8E8M0FNU>)
    -> (tensor<?x96xf4E2M1FN> {fp4.name = "codes"}, tensor<?x3xf8E8M0FNU> {fp4.name = "scales"}) {
  %sa = fp4.swizzle_scales %la : tensor<?x6xf8E8M0FNU> -> !sx
  %su = fp4.swizzle_scales %lu : tensor<96x6xf8E8M0FNU> -> !sw
  %sg = fp4.swizzle_scales %lg : tensor<96x6xf8E8M0FNU> -> !sw
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %u_scaled = fp4.scaled %u, %su : !rhs8
  %up = fp4.matmul %a_scaled, %u_scaled : (!lhs8, !rhs8) -> tensor<?x96xf32>
  %g_scaled = fp4.scaled %g, %sg : !rhs8
  %gate = fp4.matmul %a_scaled, %g_scaled : (!lhs8, !rhs8) -> tensor<?x96xf32>
  %product = arith.mulf %up, %gate : tensor<?x96xf32>
  %codes, %scales = fp4.quantize %product {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x96xf32>) -> (tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU>)
  return %codes, %scales : tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU>
}
