// RUN: fp4-runner %s --dist bf16 | FileCheck %s
// A GEMM of operands whose recipes scale to 256 and to 448: alpha has a factor of each.

!lhs = !fp4.scaled<nvfp4, tensor<128x128xf4E2M1FN>,
                   tensor<128x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>,
                   tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK: y {{.*}} equals the tcgen05 model, bit for bit
func.func @linear(%x: tensor<128x128xbf16> {fp4.name = "x"}, %w: tensor<64x128xbf16> {fp4.name = "w"})
    -> (tensor<128x64xf32> {fp4.name = "y"}) {
  %ax = fp4.amax %x : tensor<128x128xbf16> -> tensor<f32>
  %aw = fp4.amax %w : tensor<64x128xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<128x128xbf16>, tensor<f32>) -> (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %qw, %sw = fp4.quantize %w amax %aw {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x128xbf16>, tensor<f32>) -> (tensor<64x128xf4E2M1FN>, tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %alpha = fp4.matmul_alpha %ax, %aw {lhs_recipe = #fp4.recipe<four_over_six>} : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %sx : !lhs
  %qw_scaled = fp4.scaled %qw, %sw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}
