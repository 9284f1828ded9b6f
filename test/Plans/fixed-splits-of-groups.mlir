// The factor that `fixed` has for groups: one for any rows, given or expected, with a plan for many rows.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits -fp4-plan-kernels | FileCheck %s
// RUN: sed 's/= fixed/= fastest/' %s | fp4-opt -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits | FileCheck %s --check-prefix=FASTEST

// CHECK-LABEL: @one_group
// CHECK: tile = [8, 128, 256], k_slices = 2, sliced_k, {{.*}}work = #fp4.work<split_k = 2, groups = [0, 0, 1, 0]>
// CHECK-LABEL: @few_rows
// CHECK: tile = [8, 128, 256], k_slices = 2, sliced_k, {{.*}}work = #fp4.work<split_k = 2, groups = [1, 1, 1, 1]>
// CHECK-LABEL: @many_rows
// CHECK: tile = [64, 128, 128], k_slices = 2, schedule = {{.*}}work = #fp4.work<split_k = 2, groups = [512, 512, 512, 512]>
// CHECK-LABEL: @few_expected
// CHECK: work = #fp4.work<split_k = 2, expected_rows = 4>
// CHECK-LABEL: @many_expected
// CHECK: work = #fp4.work<split_k = 2, expected_rows = 512>
// CHECK-LABEL: @static_rows
// CHECK: tile = [64, 128, 128], k_slices = 2, schedule = {{.*}}work = #fp4.work<split_k = 2, unspecified_rows>
// FASTEST-LABEL: @one_group
// FASTEST: work = #fp4.work<split_k = 3, groups = [0, 0, 1, 0]>
// FASTEST-LABEL: @many_rows
// FASTEST: work = #fp4.work<groups = [512, 512, 512, 512]>
!p = tensor<32x24x4352xi8, #fp4.weight_layout<wgmma>>
func.func @one_group(%x: tensor<1x1536xbf16>, %p: !p) -> tensor<1x1024xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = fixed, groups = [0, 0, 1, 0]>}
      : (tensor<1x1536xbf16>, !p) -> tensor<1x1024xbf16>
  return %y : tensor<1x1024xbf16>
}
func.func @few_rows(%x: tensor<4x1536xbf16>, %p: !p) -> tensor<4x1024xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = fixed, groups = [1, 1, 1, 1]>}
      : (tensor<4x1536xbf16>, !p) -> tensor<4x1024xbf16>
  return %y : tensor<4x1024xbf16>
}
func.func @many_rows(%x: tensor<2048x1536xbf16>, %p: !p) -> tensor<2048x1024xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = fixed, groups = [512, 512, 512, 512]>}
      : (tensor<2048x1536xbf16>, !p) -> tensor<2048x1024xbf16>
  return %y : tensor<2048x1024xbf16>
}
func.func @few_expected(%x: tensor<?x1536xbf16>, %p: !p, %o: tensor<5xi64>) -> tensor<?x1024xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fixed, expected_rows = 4>}
      : (tensor<?x1536xbf16>, !p, tensor<5xi64>) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}
func.func @many_expected(%x: tensor<?x1536xbf16>, %p: !p, %o: tensor<5xi64>) -> tensor<?x1024xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fixed, expected_rows = 512>}
      : (tensor<?x1536xbf16>, !p, tensor<5xi64>) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}
func.func @static_rows(%x: tensor<4096x1536xbf16>, %p: !p, %o: tensor<5xi64>) -> tensor<4096x1024xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fixed, unspecified_rows>}
      : (tensor<4096x1536xbf16>, !p, tensor<5xi64>) -> tensor<4096x1024xbf16>
  return %y : tensor<4096x1024xbf16>
}

// -----

// Parts of 45 k tiles differ in length, and no plan of such parts has many rows.
// CHECK-LABEL: @other_lengths
// CHECK: work = #fp4.work<unspecified_rows>
!p = tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>
func.func @other_lengths(%x: tensor<4096x2880xbf16>, %p: !p, %o: tensor<5xi64>) -> tensor<4096x2944xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = fixed, unspecified_rows>}
      : (tensor<4096x2880xbf16>, !p, tensor<5xi64>) -> tensor<4096x2944xbf16>
  return %y : tensor<4096x2944xbf16>
}
