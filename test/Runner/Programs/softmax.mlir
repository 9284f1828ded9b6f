// RUN: fp4-runner %s --function=rows --target=sm_90a --device=sim --check=strict --remarks 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: fp4-runner %s --function=scores --target=sm_90a --device=sim --check=strict | FileCheck %s --check-prefix=SCORES
// RUN: not fp4-runner %S/../Inputs/softmax-columns.mlir --target=sm_90a --device=sim --remarks 2>&1 | FileCheck %s --check-prefix=COLUMNS
// A linalg.softmax along rows is one kernel with the quantizer behind it, or with nothing.

// ROWS: softmax.mlir:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 4 operations before it and stores 0 of them"
// ROWS: kernels {{.*}}1 launched
// ROWS: r0 {{.*}} equals the reference, bit for bit
// ROWS: r1 {{.*}} equals the reference, bit for bit
func.func @rows(%x: tensor<?x200xf32>) -> (tensor<?x200xf4E2M1FN>, tensor<?x13xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x200xf32>
  %e = tensor.empty(%m) : tensor<?x200xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<?x200xf32>) outs(%e : tensor<?x200xf32>) -> tensor<?x200xf32>
  %q:2 = fp4.quantize %p {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao_1level>}
      : (tensor<?x200xf32>) -> (tensor<?x200xf4E2M1FN>, tensor<?x13xf8E4M3FN>)
  return %q#0, %q#1 : tensor<?x200xf4E2M1FN>, tensor<?x13xf8E4M3FN>
}

// SCORES: kernels {{.*}}1 launched
// SCORES: 2x3x77xf32 equals the reference, bit for bit
func.func @scores(%x: tensor<2x3x77xf32>) -> tensor<2x3x77xf32> {
  %e = tensor.empty() : tensor<2x3x77xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x3x77xf32>) outs(%e : tensor<2x3x77xf32>) -> tensor<2x3x77xf32>
  return %p : tensor<2x3x77xf32>
}

// COLUMNS: softmax-columns.mlir:3:8: remark: [Missed] rows | Category:fp4-fuse | Reason="kernels have a softmax of f32 along the last dimension"
// COLUMNS: softmax-columns.mlir:3:8: error: 'linalg.softmax' computes on tensors and has no kernel
