// One GEMM of dynamic rows has several plans, of which host code takes one by the number of rows.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=MERGED
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_gemm, max_rows = 32, tile = [32, 128, 256]; tile_gemm, tile = [64, 128, 256]; tile_gemm, max_rows = 8, stages = 2}" | FileCheck %s --check-prefix=ASKED

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Tiles of few rows, which give all SMs a tile, and the wide one of many.
// Two ranges of rows have one tile, and one plan.
// MERGED-LABEL: func.func @chosen
// MERGED-COUNT-7: max_rows
// MERGED-NOT: max_rows
// MERGED-LABEL: func.func @ranges
// CHECK-LABEL: func.func @chosen
// CHECK: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 128], {{.*}}pdl = both>
// CHECK-SAME: fp4.row_plans = [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}max_rows = 8>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], {{.*}}max_rows = 32>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 256], {{.*}}max_rows = 64>, {{.*}}tile = [48, 128, 256], {{.*}}max_rows = 96>, {{.*}}tile = [64, 128, 256], {{.*}}max_rows = 128>, {{.*}}tile = [96, 128, 128], {{.*}}max_rows = 192>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], {{.*}}max_rows = 256>]
// Plans of the option are a list in the order of the rows.
// ASKED-LABEL: func.func @chosen
// ASKED: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256],
// ASKED-SAME: fp4.row_plans = [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}stages = 2, {{.*}}max_rows = 8>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 256], {{.*}}max_rows = 32>]
func.func @chosen(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Split-K for up to 100 rows: a plan ends there, and plans of more rows have no reduction. With 8
// rows, the next launch has room beside the CTAs of this one, and begins when it ends.
// CHECK-LABEL: func.func @ranges
// CHECK: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 256, 128], schedule = #pipe.static_persistent<panels<16>>
// CHECK-SAME: [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 2, pdl = waits, max_rows = 8>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 1, pdl = both, max_rows = 16>, {{.*}}cluster = [2, 1], {{.*}}max_rows = 64>, {{.*}}tile = [104, 128, 128], cluster = [2, 1], {{.*}}max_rows = 100>, {{.*}}tile = [64, 128, 256], schedule{{.*}}max_rows = 128>, {{.*}}#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], schedule{{.*}}max_rows = 256>]
// A plan of the option is for all rows.
// ASKED-LABEL: func.func @ranges
// ASKED: max_rows = 8>, {{.*}}max_rows = 32>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256], cluster = [2, 1], {{.*}}max_rows = 100>]
func.func @ranges(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = 2, split_rows = 100>}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Fields that a program sets are kept, and fields that it leaves open come from the option, for as many rows.
// CHECK-LABEL: func.func @said
// CHECK: fp4.row_plans = [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}ctas_per_sm = 2, pdl = waits, max_rows = 8>]
// ASKED-LABEL: func.func @said
// ASKED: fp4.row_plans = [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}stages = 2, ctas_per_sm = 2, pdl = waits, max_rows = 8>, {{.*}}max_rows = 32>]
func.func @said(%x: tensor<?x8192xbf16>, %w: !w) -> tensor<?x8192xbf16> {
  %y = fp4.matmul %x, %w
      {fp4.row_plans = [#fp4.plan<tile_gemm, tile = [8, 128, 256], ctas_per_sm = 2, pdl = waits, max_rows = 8>]}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}

// -----

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>

// Static rows have one plan, whatever the option says of others.
// CHECK-LABEL: func.func @static
// CHECK-NOT: row_plans
// ASKED-LABEL: func.func @static
// ASKED-NOT: row_plans
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
// CHECK: ctas_per_sm = 2, pdl = waits>
// CHECK-NOT: row_plans
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
// CHECK: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [256, 128, 128],
// CHECK-SAME: fp4.row_plans = [#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 256], {{.*}}max_rows = 32>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [16, 128, 256], {{.*}}max_rows = 256>, #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128], {{.*}}max_rows = 2048>]
// ASKED-LABEL: func.func @groups
// ASKED: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 256],
// ASKED-SAME: max_rows = 8>, {{.*}}max_rows = 32>]
func.func @groups(%x: tensor<?x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<?x2944xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<?x2880xbf16>, !w, tensor<33xi64>) -> tensor<?x2944xbf16>
  return %y : tensor<?x2944xbf16>
}
