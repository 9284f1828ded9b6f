// RUN: fp4-opt %s --split-input-file --fp4-specialize-dims="dims=N=24,K=40" | FileCheck %s

// Scales have as many columns as a dimension has blocks: "K/16" follows from K, rounded up.

// CHECK-LABEL: func.func @scales
// CHECK-SAME:    %{{.*}}: tensor<24x3xf8E4M3FN>
func.func @scales(%s: tensor<512x64xf8E4M3FN> {fp4.dims = ["N", "K/16"]})
    -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  // CHECK: fp4.swizzle_scales {{.*}} -> tensor<24x3xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %t = fp4.swizzle_scales %s
      : tensor<512x64xf8E4M3FN> -> tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
