// Tiles of groups whose CTAs have all parts of K, where the plan leaves them open.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: sed 's/split_k = 2/split_k = 6/' %s | not fp4-opt -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=SIX
// RUN: not fp4-opt %s -split-input-file -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: sed 's/split_k = 2/split_k = 4/; s/{work/{fp4.plan = #fp4.plan<tile_gemm, sliced_k>, work/' %s | not fp4-opt -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=SLICED

// Slices of parts that differ in length have warpgroups of their own, and tiles of groups a power of two of rows.
// CHECK-LABEL: @any_rows
// CHECK: tile = [32, 128, 128], k_slices = 2, sliced_k,
// SIX: error: {{.*}}must have groups whose 'split_k' is 2 or 4 and cuts K into parts of as many whole units of 256 elements, or is 2 or 3 and divides the units, but got 6 for K = 2880
// SIX: note: leave 'split_k' out, or let 'split_k = fastest' choose the factor
// WARPS: error: {{.*}}must have groups whose 'split_k' is 2 or 4 and cuts K into parts of as many whole units of 256 elements, but got 2 for K = 960
// WARPS: note: leave 'split_k' out, or let 'split_k = fastest' choose the factor
func.func @any_rows(%x: tensor<?x960xbf16>, %p: tensor<4x15x4608xi8, #fp4.weight_layout<wgmma>>, %o: tensor<5xi64>) -> tensor<?x128xbf16> {
  %y = fp4.matmul %x, %p offsets %o {work = #fp4.work<split_k = 2, unspecified_rows>}
      : (tensor<?x960xbf16>, tensor<4x15x4608xi8, #fp4.weight_layout<wgmma>>, tensor<5xi64>) -> tensor<?x128xbf16>
  return %y : tensor<?x128xbf16>
}

// -----

// CHECK-LABEL: @many_rows
// CHECK: tile = [32, 128, 256], k_slices = 2, sliced_k,
func.func @many_rows(%x: tensor<2048x2880xbf16>, %p: tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<2048x2944xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2, groups = [512, 512, 512, 512]>}
      : (tensor<2048x2880xbf16>, tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<2048x2944xbf16>
  return %y : tensor<2048x2944xbf16>
}

// -----

// Slices of parts of one length are those of all warps, which leave registers for more rows.
// CHECK-LABEL: @one_length
// CHECK: tile = [64, 128, 128], k_slices = 2, schedule
// SLICED: error: {{.*}}'sliced_k' goes with a 'split_k' of groups that is 2 or 3 and that divides the units of 256 elements of K, but got 'split_k' = 4
func.func @one_length(%x: tensor<2048x1024xbf16>, %p: tensor<32x16x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<2048x1024xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2, groups = [512, 512, 512, 512]>}
      : (tensor<2048x1024xbf16>, tensor<32x16x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<2048x1024xbf16>
  return %y : tensor<2048x1024xbf16>
}
