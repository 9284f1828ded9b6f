!lhs = !fp4.scaled<mxfp4, tensor<300x64xf4E2M1FN>,
                   tensor<300x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<2752x64xf4E2M1FN>,
                   tensor<2752x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Panels of 10 tiles of which the last has 3: rows and columns of tiles follow from products where all sizes are static,
// and from divisions by the width of the panel where rows are dynamic.
// RUN: fp4-runner %s --device=sim --check=strict --policy=random | FileCheck %s
// RUN: sed 's/300x/?x/g' %s > %t.mlir
// RUN: fp4-runner %t.mlir --device=sim --shape=300 | FileCheck %s
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit
func.func @gemm(%x: tensor<300x64xbf16>, %w: tensor<2752x64xbf16>) -> (tensor<300x2752xbf16> {fp4.name = "y"}) {
  %qa, %la = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<300x64xbf16>) -> (tensor<300x64xf4E2M1FN>, tensor<300x2xf8E8M0FNU>)
  %sa = fp4.swizzle_scales %la : tensor<300x2xf8E8M0FNU> -> tensor<300x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qb, %lb = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<2752x64xbf16>) -> (tensor<2752x64xf4E2M1FN>, tensor<2752x2xf8E8M0FNU>)
  %sb = fp4.swizzle_scales %lb : tensor<2752x2xf8E8M0FNU> -> tensor<2752x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qa_scaled = fp4.scaled %qa, %sa : !lhs
  %qb_scaled = fp4.scaled %qb, %sb : !rhs
  %y = fp4.matmul %qa_scaled, %qb_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], schedule = #pipe.static_persistent<panels<10>>>}
      : (!lhs, !rhs) -> tensor<300x2752xbf16>
  return %y : tensor<300x2752xbf16>
}
