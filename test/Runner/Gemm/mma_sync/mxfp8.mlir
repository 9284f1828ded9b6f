// GEMMs of elements of 8 bits with mma.sync, which has a warp's sums in its registers: both element types,
// ragged M, N and K, small-M tiles and tiles of several fragments.
// RUN: fp4-runner %s --target=sm_120a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=layer --shape 70 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=layer --shape 3 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=gradients --check=strict --policy=delay | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the mma.sync model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-opt %s --fp4-set-target=target=sm_120a --fp4-plan-kernels="plans='tile_gemm, tile = [64, 64, 256]'" 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: must have a plan whose 'tile' is [m, n, k] with m = 16, 32, 64 or 128, n = 64, 128 or 256, m * n up to 16384 and k = 128, but got [64, 64, 256]

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<?x160xf8E4M3FN>,
                   tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp8_e4m3, tensor<72x160xf8E4M3FN>,
                   tensor<72x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @layer(%x: tensor<?x160xbf16>, %w: tensor<72x160xbf16>) -> (tensor<?x72xbf16> {fp4.name = "y"}) {
  %qx, %sx = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x160xbf16>) -> (tensor<?x160xf8E4M3FN>, tensor<?x5xf8E8M0FNU>)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (tensor<72x160xbf16>) -> (tensor<72x160xf8E4M3FN>, tensor<72x5xf8E8M0FNU>)
  %tx = fp4.swizzle_scales %sx : tensor<?x5xf8E8M0FNU> -> tensor<?x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw : tensor<72x5xf8E8M0FNU> -> tensor<72x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

!lhs2 = !fp4.scaled<mxfp8_e5m2, tensor<65x96xf8E5M2>,
                    tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp8_e4m3, tensor<136x96xf8E4M3FN>,
                    tensor<136x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @gradients(%a: tensor<65x96xf8E5M2>, %la: tensor<65x3xf8E8M0FNU>, %b: tensor<136x96xf8E4M3FN>, %lb: tensor<136x3xf8E8M0FNU>, %alpha: tensor<65x1xf32>)
    -> (tensor<65x136xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<65x3xf8E8M0FNU> -> tensor<65x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<136x3xf8E8M0FNU> -> tensor<136x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      : (!lhs2, !rhs2, tensor<65x1xf32>) -> tensor<65x136xf32>
  return %y : tensor<65x136xf32>
}
