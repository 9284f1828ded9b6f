// RUN: fp4-opt %s --fp4-specialize-dims="dims=M=7,N=8,K=64" | FileCheck %s
// RUN: not %fp4-opt-once %s --fp4-specialize-dims="dims=P=40" 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not %fp4-opt-once %s --fp4-specialize-dims="dims=S=256" 2>&1 | FileCheck %s --check-prefix=SLICE
// RUN: not %fp4-opt-once %s --fp4-specialize-dims="dims=Q=8" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not %fp4-opt-once %s --fp4-specialize-dims="dims=K=-1" 2>&1 | FileCheck %s --check-prefix=SIZE

// Sizes follow through the body; a dynamic dimension stays what the caller passes.

// CHECK-LABEL: func.func @quantized_weights
// CHECK-SAME:    %{{.*}}: tensor<?x64xbf16>
// CHECK-SAME:    %{{.*}}: tensor<8x64xbf16>
// CHECK-SAME:    -> tensor<8x4xf8E4M3FN>
// CHECK: fp4.quantize {{.*}} -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)

// UNKNOWN: error: no argument has a dimension called 'Q'
// UNKNOWN: note: the dimensions that have a name are B, K, M, N, P, S

// SIZE: error: a size must be written NAME=SIZE with SIZE at least 1, but got 'K=-1'
func.func @quantized_weights(%x: tensor<?x1024xbf16> {fp4.dims = ["M", "K"]},
                             %w: tensor<512x1024xbf16> {fp4.dims = ["N", "K"]})
    -> tensor<512x64xf8E4M3FN> {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %w amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<512x1024xbf16>, tensor<f32>) -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
  return %s : tensor<512x64xf8E4M3FN>
}

// The verifiers judge what became of it.
// BLOCK: specialize-dims.mlir:[[# @LINE + 3]]:{{.*}}error: 'fp4.quantize'
// BLOCK-SAME: 40
func.func @whole_blocks(%x: tensor<?x64xbf16> {fp4.dims = ["M", "P"]}) -> tensor<?x2xf8E8M0FNU> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  return %s : tensor<?x2xf8E8M0FNU>
}

// Operations that no size reaches stay what they are, and matrices of a batch are collapsed again.
// CHECK-LABEL: func.func @views
// CHECK: tensor.extract_slice %{{.*}} : tensor<96x32xbf16> to tensor<64x32xbf16>
// CHECK: tensor.collapse_shape %{{.*}} : tensor<7x16x32xbf16> into tensor<112x32xbf16>
// CHECK: fp4.amax %{{.*}} {per_row} : tensor<112x32xbf16> -> tensor<112xf32>
// SLICE: specialize-dims.mlir:[[# @LINE + 4]]:{{.*}}error: 'tensor.extract_slice' cannot be given other sizes
// SLICE: note: write the program for these sizes, or give sizes only to dimensions that it does not depend on
func.func @views(%w: tensor<96x32xbf16> {fp4.dims = ["S", ""]},
                 %x: tensor<2x16x32xbf16> {fp4.dims = ["M", "B", ""]}) -> (tensor<64x32xbf16>, tensor<32xf32>) {
  %s = tensor.extract_slice %w[32, 0] [64, 32] [1, 1] : tensor<96x32xbf16> to tensor<64x32xbf16>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x16x32xbf16> into tensor<32x32xbf16>
  %a = fp4.amax %c {per_row} : tensor<32x32xbf16> -> tensor<32xf32>
  return %s, %a : tensor<64x32xbf16>, tensor<32xf32>
}
