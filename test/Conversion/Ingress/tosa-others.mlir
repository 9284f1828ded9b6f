// Operations of tosa that are connected with no fp4 operation stay, and so do those behind one that is not elementwise.

// RUN: fp4-opt %s --convert-tosa-to-fp4 | FileCheck %s

// CHECK-LABEL: func.func @others(
// CHECK:         tosa.add %arg2, %arg2
// CHECK:         %[[Y:.*]] = fp4.dequantize
// CHECK:         tosa.reduce_sum
// CHECK:         tosa.add
// CHECK-NOT:     linalg.generic
func.func @others(%d: tensor<8x64xf4E2M1FN>, %s: tensor<8x2xf8E8M0FNU>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8x1xf32>) {
  %twice = tosa.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = tosa.cast_from_block_scaled %d, %s {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>) -> tensor<8x64xf32>
  %sum = tosa.reduce_sum %y {axis = 1 : i32} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %z = tosa.add %sum, %sum : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  return %twice, %z : tensor<4xf32>, tensor<8x1xf32>
}
