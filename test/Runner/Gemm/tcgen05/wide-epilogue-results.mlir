// Two warpgroups derive results from a half of the columns each: codes and scales of rows and of columns, an amax, and
// the elements of a gate of two GEMMs.
// RUN: fp4-runner %s --plan "tile_gemm, tile = [128, 128, 256], epilogue_warps = 8" --emit=so -o %t.so
// RUN: fp4-run %t.so --check=strict | FileCheck %s
// RUN: fp4-run %t.so --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --policy=random --seed=2 --check=strict | FileCheck %s
// CHECK: passed
// CHECK: hazards {{.*}}none

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
!lhs = !fp4.scaled<nvfp4, tensor<32x256xf4E2M1FN>,
                   tensor<32x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                   tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @product(%qx: tensor<32x256xf4E2M1FN>, %sx: tensor<32x16xf8E4M3FN>, %bias: tensor<128xf32>, %given: tensor<f32>, %qw: tensor<128x256xf4E2M1FN>, %sw: tensor<128x16xf8E4M3FN>, %qv: tensor<128x256xf4E2M1FN>, %sv: tensor<128x16xf8E4M3FN>) -> (tensor<32x128xbf16>, tensor<32x128xf4E2M1FN>, tensor<32x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<128x32xf4E2M1FN>, tensor<128x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) {
  %tx = fp4.swizzle_scales %sx : tensor<32x16xf8E4M3FN> -> tensor<32x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %p0 = fp4.matmul %qx_scaled, %qw_scaled alpha %given
      : (!lhs, !rhs, tensor<f32>) -> tensor<32x128xf32>
  %tv = fp4.swizzle_scales %sv : tensor<128x16xf8E4M3FN> -> tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %qv_scaled = fp4.scaled %qv, %tv : !rhs
  %p1 = fp4.matmul %qx_scaled, %qv_scaled alpha %given
      : (!lhs, !rhs, tensor<f32>) -> tensor<32x128xf32>
  %empty = tensor.empty() : tensor<32x128xbf16>
  %h = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %p1 : tensor<32x128xf32>, tensor<32x128xf32>) outs(%empty : tensor<32x128xbf16>) {
  ^bb0(%x0: f32, %x1: f32, %o: bf16):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %x0 : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %x0, %below : f32
    %e = arith.mulf %silu, %x1 : f32
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<32x128xbf16>
  %z:4 = fp4.quantize %h amax %given {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<32x128xbf16>, tensor<f32>) -> (tensor<32x128xf4E2M1FN>, tensor<32x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<128x32xf4E2M1FN>, tensor<128x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %amax = fp4.amax %h : tensor<32x128xbf16> -> tensor<f32>
  return %h, %z#0, %z#1, %z#2, %z#3, %amax : tensor<32x128xbf16>, tensor<32x128xf4E2M1FN>, tensor<32x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<128x32xf4E2M1FN>, tensor<128x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}

