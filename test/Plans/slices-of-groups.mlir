// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits -fp4-plan-kernels | FileCheck %s
// RUN: sed 's/split_k = 2/split_k = 3/; s/k_slices = 2, sliced_k/k_slices = 1/' %s | not fp4-opt -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-choose-splits -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=LANES
// ALL: error: {{.*}}'k_slices' is 'split_k' of groups, 3: a CTA has all parts of K, but got 1
// LANES: error: {{.*}}attribute 'split_k' must be left out of these groups on target 'sm_100a'
// LANES: note: leave it out; K is cut beside groups where prepacked weights have routes that read 'k_slices'

// A CTA has all k slices of a group, and few experts of few rows do not fill the SMs otherwise.
// CHECK-LABEL: @given
// CHECK: tile = [8, 128, 256], k_slices = 2, sliced_k,
func.func @given(%x: tensor<4x2880xbf16>, %p: tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>, %o: tensor<5xi64>) -> tensor<4x2944xbf16> {
  %y = fp4.matmul %x, %p offsets %o
      {work = #fp4.work<split_k = 2, expected_rows = 1>, fp4.plan = #fp4.plan<tile_gemm, k_slices = 2, sliced_k>}
      : (tensor<4x2880xbf16>, tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>, tensor<5xi64>) -> tensor<4x2944xbf16>
  return %y : tensor<4x2944xbf16>
}

// -----

// The policy `fastest` cuts K where few rows leave SMs idle, and no group of many rows.
// CHECK-LABEL: @few
// CHECK: tile = [8, 128, 256], k_slices = 3, sliced_k,
// CHECK-SAME: split_k = 3
// CHECK-LABEL: @many
// CHECK-NOT: split_k
func.func @few(%x: tensor<4x2880xbf16>, %p: tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, %o: tensor<33xi64>) -> tensor<4x2944xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fastest, expected_rows = 1, unspecified_rows>}
      : (tensor<4x2880xbf16>, tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, tensor<33xi64>) -> tensor<4x2944xbf16>
  return %y : tensor<4x2944xbf16>
}
func.func @many(%x: tensor<512x2880xbf16>, %p: tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, %o: tensor<33xi64>) -> tensor<512x2944xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fastest, unspecified_rows>}
      : (tensor<512x2880xbf16>, tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, tensor<33xi64>) -> tensor<512x2944xbf16>
  return %y : tensor<512x2944xbf16>
}

// -----

// `fixed` has one factor for any number of rows.
// CHECK-LABEL: @fixed
// CHECK-NOT: split_k
func.func @fixed(%x: tensor<?x2880xbf16>, %p: tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, %o: tensor<33xi64>) -> tensor<?x2944xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fixed, unspecified_rows>}
      : (tensor<?x2880xbf16>, tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>, tensor<33xi64>) -> tensor<?x2944xbf16>
  return %y : tensor<?x2944xbf16>
}
