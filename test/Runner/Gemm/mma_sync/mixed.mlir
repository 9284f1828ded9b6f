// GEMMs of elements of 4, 6 and 8 bits in any pair with mma.sync: 6 bits take a byte each in memory, and 4
// bits become bytes in registers, of either operand. Ragged M, N and K, small-M tiles.
// RUN: fp4-runner %s --target=sm_120a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=six --shape 70 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=weights4 --shape 40 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=weights4 --shape 3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=activations4 --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=few4 --check=strict --policy=random --seed=2 | FileCheck %s
// RUN: fp4-run %t.so --function=six8 --check=strict --policy=random --seed=3 | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the mma.sync model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// Tensor cores with tensor memory want K in runs of 128 (Gemm/tcgen05/mixed.mlir has them).
// RUN: not fp4-opt %s --fp4-set-target=target=sm_100a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RUNS
// RUNS: error: 'fp4.matmul' op target 'sm_100a' expects K a multiple of 128 for elements of 6 bits, but got 160
// RUNS: note: pad the contraction axis of both operands with zeros

!lhs = !fp4.scaled<mxfp6_e2m3, tensor<?x160xf6E2M3FN>,
                   tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp6_e3m2, tensor<72x160xf6E3M2FN>,
                   tensor<72x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @six(%x: tensor<?x160xbf16>, %w: tensor<72x160xbf16>) -> (tensor<?x72xbf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<?x160xbf16>) -> (tensor<?x160xf6E2M3FN>, tensor<?x5xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<?x5xf8E8M0FNU> -> tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_rceil>}
      : (tensor<72x160xbf16>) -> (tensor<72x160xf6E3M2FN>, tensor<72x5xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<72x5xf8E8M0FNU> -> tensor<72x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs
  %qb_scaled = fp4.scaled %qb, %sb : !rhs
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs, !rhs) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x384xf8E4M3FN>,
                    tensor<?x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<200x384xf4E2M1FN>,
                    tensor<200x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @weights4(%x: tensor<?x384xbf16>, %w: tensor<200x384xbf16>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x384xbf16>) -> (tensor<?x384xf8E4M3FN>, tensor<?x12xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<?x12xf8E8M0FNU> -> tensor<?x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<200x384xbf16>) -> (tensor<200x384xf4E2M1FN>, tensor<200x12xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<200x12xf8E8M0FNU> -> tensor<200x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs2
  %qb_scaled = fp4.scaled %qb, %sb : !rhs2
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs2, !rhs2) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<130x256xf4E2M1FN>,
                    tensor<130x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp8_e5m2, tensor<72x256xf8E5M2>,
                    tensor<72x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @activations4(%x: tensor<130x256xbf16>, %w: tensor<72x256xbf16>) -> (tensor<130x72xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<130x256xbf16>) -> (tensor<130x256xf4E2M1FN>, tensor<130x8xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<130x8xf8E8M0FNU> -> tensor<130x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp8_e5m2>, recipe = #fp4.recipe<mxfp8_e5m2_floor>}
      : (tensor<72x256xbf16>) -> (tensor<72x256xf8E5M2>, tensor<72x8xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<72x8xf8E8M0FNU> -> tensor<72x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs3
  %qb_scaled = fp4.scaled %qb, %sb : !rhs3
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs3, !rhs3) -> tensor<130x72xf32>
  return %y : tensor<130x72xf32>
}

!lhs4 = !fp4.scaled<mxfp4, tensor<9x128xf4E2M1FN>,
                    tensor<9x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<mxfp6_e2m3, tensor<136x128xf6E2M3FN>,
                    tensor<136x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @few4(%x: tensor<9x128xbf16>, %w: tensor<136x128xbf16>) -> (tensor<9x136xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<9x128xbf16>) -> (tensor<9x128xf4E2M1FN>, tensor<9x4xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<9x4xf8E8M0FNU> -> tensor<9x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e2m3>, recipe = #fp4.recipe<mxfp6_e2m3_floor>}
      : (tensor<136x128xbf16>) -> (tensor<136x128xf6E2M3FN>, tensor<136x4xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<136x4xf8E8M0FNU> -> tensor<136x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs4
  %qb_scaled = fp4.scaled %qb, %sb : !rhs4
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs4, !rhs4) -> tensor<9x136xf32>
  return %y : tensor<9x136xf32>
}

!lhs5 = !fp4.scaled<mxfp8_e4m3, tensor<65x96xf8E4M3FN>,
                    tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<mxfp6_e3m2, tensor<64x96xf6E3M2FN>,
                    tensor<64x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @six8(%x: tensor<65x96xbf16>, %w: tensor<64x96xbf16>) -> (tensor<65x64xf32> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<65x96xbf16>) -> (tensor<65x96xf8E4M3FN>, tensor<65x3xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<65x3xf8E8M0FNU> -> tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp6_e3m2>, recipe = #fp4.recipe<mxfp6_e3m2_rceil>}
      : (tensor<64x96xbf16>) -> (tensor<64x96xf6E3M2FN>, tensor<64x3xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<64x3xf8E8M0FNU> -> tensor<64x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs5
  %qb_scaled = fp4.scaled %qb, %sb : !rhs5
  %y = fp4.matmul %qa_scaled, %qb_scaled : (!lhs5, !rhs5) -> tensor<65x64xf32>
  return %y : tensor<65x64xf32>
}
