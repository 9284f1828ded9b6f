// RUN: fp4-runner %s --emit=mlir --remarks -o /dev/null 2>&1 | FileCheck %s
// RUN: fp4-runner %s --emit=mlir -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT
// Remarks of fp4-fuse stand at the operation, and are printed only for who asks.

// SILENT-NOT: remark

// CHECK: remarks.mlir:[[@LINE+4]]:{{.*}}remark: [Passed] hadamard+amax | Category:fp4-fuse | Remark="one pass for the amax before and after the transform"
func.func @amaxes(%x: tensor<32x32xbf16>) -> (tensor<f32>, tensor<f32>) {
  %ax = fp4.amax %x : tensor<32x32xbf16> -> tensor<f32>
  %y = fp4.hadamard %x : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  return %ax, %ay : tensor<f32>, tensor<f32>
}

// CHECK: remarks.mlir:[[@LINE+4]]:{{.*}}remark: [Missed] hadamard+amax | Category:fp4-fuse | Reason="the transform stays, and no amax of its input could be had in the same pass"
func.func @transformed(%x: tensor<32x32xbf16>)
    -> (tensor<f32>, tensor<32x32xbf16>) {
  %y = fp4.hadamard %x : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  return %ay, %y : tensor<f32>, tensor<32x32xbf16>
}
