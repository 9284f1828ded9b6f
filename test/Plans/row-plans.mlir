// One GEMM of dynamic rows has several plans, of which host code takes one by the number of rows.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=MERGED
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={m = [9, 32] : tile_gemm, tile = [32, 128, 256]; tile_gemm, tile = [64, 128, 256]; m = [1, 8] : tile_gemm, tile = [8, 128, 256], stages = 2}" | FileCheck %s --check-prefix=ASKED

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Tiles of few rows, which give all SMs a tile, and the wide one of many.
// Two ranges of rows have one tile, and one plan.
// MERGED-LABEL: func.func @chosen
// MERGED-COUNT-8: #fp4.case
// MERGED-NOT: #fp4.case
// MERGED-LABEL: func.func @ranges
// CHECK-LABEL: func.func @chosen
// CHECK-NOT: fp4.plan
// CHECK: dispatch = [#fp4.case<m = [1, 16] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}, #fp4.case<m = [17, 32] : tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], {{.*}}, #fp4.case<m = [33, 64] : tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 256], {{.*}}, #fp4.case<m = [65, 96] : {{.*}}tile = [48, 128, 256], {{.*}}, #fp4.case<m = [97, 128] : {{.*}}tile = [64, 128, 256], {{.*}}, #fp4.case<m = [129, 192] : {{.*}}tile = [96, 128, 128], {{.*}}, #fp4.case<m = [193, 256] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], {{.*}}, #fp4.case<m = [257, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 128], {{.*}}pdl = before_wait>]
// Plans of the option are cases in the order of the rows, and one of no rows is for all others.
// ASKED-LABEL: func.func @chosen
// ASKED: dispatch = [#fp4.case<m = [1, 8] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}stages = 2, {{.*}}, #fp4.case<m = [9, 32] : tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 256], {{.*}}, #fp4.case<m = [33, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256],
func.func @chosen(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Split-K for up to 100 rows: a plan ends there, and plans of more rows have no reduction. With 8
// rows, the next launch has room beside the CTAs of this one, and begins when it ends.
// CHECK-LABEL: func.func @ranges
// CHECK: [#fp4.case<m = [1, 8], split_k = 2 : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 2, pdl = at_end>, #fp4.case<m = [9, 16], split_k = 2 : tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 1, pdl = before_wait>, {{.*}}64], split_k = 2 : {{.*}}cluster = [2, 1], {{.*}}, #fp4.case<m = [97, 100], split_k = 2 : {{.*}}tile = [104, 128, 128], cluster = [2, 1], {{.*}}, #fp4.case<m = [101, 128] : {{.*}}tile = [64, 128, 256], schedule{{.*}}, #fp4.case<m = [{{.*}}, 256] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], schedule{{.*}}, #fp4.case<m = [257, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 128], schedule = #pipe.static_persistent<panels<16>>
// A plan of the option is for all rows.
// ASKED-LABEL: func.func @ranges
// ASKED: m = [1, 8], split_k = 2{{.*}}m = [9, 32], split_k = 2{{.*}}#fp4.case<m = [33, 100], split_k = 2 : tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256], cluster = [2, 1], {{.*}}m = [101, ?] :
func.func @ranges(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 100], split_k = 2 : tile_gemm>, #fp4.case<m = [101, ?] : tile_gemm>]}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Fields that a program sets are kept, and fields that it leaves open come from the option, for as many rows.
// CHECK-LABEL: func.func @said
// CHECK: dispatch = [#fp4.case<m = [1, 8] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}ctas_per_sm = 2, pdl = at_end>, #fp4.case<m = [9, ?] :
// ASKED-LABEL: func.func @said
// ASKED: dispatch = [#fp4.case<m = [1, 8] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}stages = 2, ctas_per_sm = 2, pdl = at_end>, #fp4.case<m = [9, 32] : {{.*}}, #fp4.case<m = [33, ?] :
func.func @said(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 8] : tile_gemm, tile = [8, 128, 256], ctas_per_sm = 2, pdl = at_end>, #fp4.case<m = [9, ?] : tile_gemm>]}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Static rows have one plan, whatever the option says of others.
// CHECK-LABEL: func.func @static
// CHECK-NOT: dispatch
// ASKED-LABEL: func.func @static
// ASKED-NOT: dispatch
func.func @static(%x: tensor<20x8192xbf16>, %w: !w) -> tensor<20x8192xbf16> {
  %y = fp4.matmul %x, %w : (tensor<20x8192xbf16>, !w) -> tensor<20x8192xbf16>
  return %y : tensor<20x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// A plan that a program writes is for all rows. With few rows, CTAs of the next launch would take
// places that those of this one leave.
// CHECK-LABEL: func.func @one
// ASKED-LABEL: func.func @one
// CHECK: ctas_per_sm = 2, pdl = at_end>
// CHECK-NOT: dispatch
// CHECK: return
func.func @one(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [8, 128, 256]>}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>

// Groups whose rows the device has: 1, 8 and 64 rows of each of 32.
// CHECK-LABEL: func.func @groups
// CHECK: dispatch = [#fp4.case<m = [1, 32] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}, #fp4.case<m = [33, 256] : tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], {{.*}}, #fp4.case<m = [257, 2048] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], {{.*}}, #fp4.case<m = [2049, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [256, 128, 128],
// ASKED-LABEL: func.func @groups
// ASKED: m = [1, 8] : {{.*}}m = [9, 32] : {{.*}}m = [33, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256],
func.func @groups(%x: tensor<?x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<?x2944xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<?x2880xbf16>, !w, tensor<33xi64>) -> tensor<?x2944xbf16>
  return %y : tensor<?x2944xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// The case of a static size is the plan.
// CHECK-LABEL: func.func @known
// CHECK-NOT: dispatch
// CHECK: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 256]
func.func @known(%x: tensor<20x8192xbf16>, %w: !w) -> tensor<20x8192xbf16> {
  %y = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm, tile = [16, 128, 256]>, #fp4.case<m = [17, ?] : tile_gemm, tile = [32, 128, 256]>]}
      : (tensor<20x8192xbf16>, !w) -> tensor<20x8192xbf16>
  return %y : tensor<20x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// The split-K factor of a case of all rows stays in the list.
// CHECK-LABEL: func.func @known_split
// CHECK: dispatch = [#fp4.case<split_k = 4 : tile_gemm, route = {{<[^>]*>}}, tile = [24, 128, 256],{{[^#]*#[^#]*#[^#]*}}>]}
func.func @known_split(%x: tensor<20x8192xbf16>, %w: !w) -> tensor<20x8192xbf16> {
  %y = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 32], split_k = 4 : tile_gemm>, #fp4.case<m = [33, ?] : tile_gemm>]}
      : (tensor<20x8192xbf16>, !w) -> tensor<20x8192xbf16>
  return %y : tensor<20x8192xbf16>
}
