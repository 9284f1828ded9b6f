// GEMMs as jax exports them. Inputs/ has whole exports:
//
//   jax.nn.scaled_matmul(a, b, sa, sb, preferred_element_type=float32) * g     two batches of NVFP4
//   jax.lax.scaled_dot(a, b.T, lhs_scale=sa, rhs_scale=sb.T)                   MXFP4 matrices

// RUN: fp4-opt %S/Inputs/scaled_matmul.mlir --allow-unregistered-dialect --convert-stablehlo-to-fp4 | FileCheck %s --check-prefix=CALL
// RUN: fp4-opt %S/Inputs/scaled_dot.mlir --allow-unregistered-dialect --convert-stablehlo-to-fp4 | FileCheck %s --check-prefix=DOT
// RUN: fp4-opt %s --allow-unregistered-dialect --convert-stablehlo-to-fp4 | FileCheck %s

// CALL-LABEL: module @jit_call {
// CALL-NEXT:    func.func public @main(%{{.*}}: tensor<2x48x64xf4E2M1FN>, %{{.*}} %[[G:.*]]: tensor<f32>) -> tensor<2x48x32xf32> {
// CALL:           %[[Y0:.*]] = fp4.matmul {{.*}} alpha %[[G]] : (!nvfp4
// CALL:           %[[Y1:.*]] = fp4.matmul {{.*}} alpha %[[G]] : (!nvfp4
// CALL:           tensor.concat dim(0) %[[Y0]], %[[Y1]]
// CALL-NOT:       stablehlo

// DOT-LABEL:  module @jit_dot {
// DOT-NEXT:     func.func public @main(%[[A:.*]]: tensor<48x64xf4E2M1FN>, %[[B:.*]]: tensor<32x64xf4E2M1FN>
// DOT:            %[[LHS:.*]] = fp4.scaled %[[A]],
// DOT:            %[[RHS:.*]] = fp4.scaled %[[B]],
// DOT:            fp4.matmul %[[LHS]], %[[RHS]] : (!mxfp4{{.*}} -> tensor<48x32xbf16>
// DOT-NOT:        stablehlo
// DOT-NOT:        @xla.scaled_dot

// Sides of two formats.
// CHECK-LABEL: func.func @mixed(
// CHECK:         fp4.matmul {{.*}} : (!mxfp8_e4m3{{.*}}, !mxfp4
func.func @mixed(%a: tensor<1x48x128xf8E4M3FN>, %b: tensor<1x32x128xf4E2M1FN>, %sa: tensor<1x48x4xf8E8M0FNU>,
                 %sb: tensor<1x32x4xf8E8M0FNU>) -> tensor<1x48x32xf32> {
  %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) <{call_target_name = "__op$block_scaled_dot"}>
      : (tensor<1x48x128xf8E4M3FN>, tensor<1x32x128xf4E2M1FN>, tensor<1x48x4xf8E8M0FNU>,
         tensor<1x32x4xf8E8M0FNU>) -> tensor<1x48x32xf32>
  return %y : tensor<1x48x32xf32>
}

// The two sides contract their last dimension. Operations that are not block-scaled stay.
// CHECK-LABEL: func.func @last(
// CHECK:         fp4.matmul
// CHECK:         "stablehlo.tanh"
func.func @last(%a: tensor<1x48x64xf4E2M1FN>, %b: tensor<1x32x64xf4E2M1FN>, %sa: tensor<1x48x2xf8E8M0FNU>,
                %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32> {
  %y = "stablehlo.composite"(%a, %b, %sa, %sb) <{
      composite_attributes = {dimension_numbers = [[[2], [2]], [[0], [0]]], preferred_element_type = f32},
      decomposition = @xla.scaled_dot, name = "xla.scaled_dot", version = 0 : i32}>
      : (tensor<1x48x64xf4E2M1FN>, tensor<1x32x64xf4E2M1FN>, tensor<1x48x2xf8E8M0FNU>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x48x32xf32>
  %z = "stablehlo.tanh"(%y) : (tensor<1x48x32xf32>) -> tensor<1x48x32xf32>
  return %z : tensor<1x48x32xf32>
}
