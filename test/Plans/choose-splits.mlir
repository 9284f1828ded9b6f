// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-choose-splits -fp4-plan-kernels | FileCheck %s --check-prefix=PLAN
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-choose-splits | FileCheck %s --check-prefix=TMEM
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-choose-splits -fp4-plan-kernels -o /dev/null
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_120a -fp4-choose-splits -fp4-plan-kernels | FileCheck %s --check-prefix=WARPS

// Dynamic rows get a factor for each range of rows, and a kernel ends where a factor does.
// CHECK-LABEL: @rows
// CHECK: dispatch = [#fp4.case<m = [1, 32], split_k = 3 : tile_gemm>, #fp4.case<m = [33, 256], split_k = 2 : tile_gemm>, #fp4.case<m = [257, ?] : tile_gemm>]
// PLAN-LABEL: @rows
// PLAN: dispatch = [{{.*}}, 32], split_k = 3 : {{.*}}, 256], split_k = 2 : {{.*}}#fp4.case<m = [257, ?] :
!w = tensor<32x112x4608xi8, #fp4.weight_layout<wgmma>>
func.func @rows(%x: tensor<?x7168xbf16>, %w: !w) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<?x7168xbf16>, !w) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

// -----

// A plan of the program becomes that of all cases, and a case that holds where a factor ends becomes two.
// CHECK-LABEL: @said
// CHECK: dispatch = [#fp4.case<m = [1, 32], split_k = 3 : tile_gemm, stages = 3>, #fp4.case<m = [33, 256], split_k = 2 : tile_gemm, stages = 3>, #fp4.case<m = [257, ?] : tile_gemm, stages = 3>]
// CHECK: dispatch = [#fp4.case<m = [1, 32], split_k = 3 : tile_gemm>, #fp4.case<m = [33, 64], split_k = 2 : tile_gemm>, #fp4.case<m = [65, 256], split_k = 2 : tile_gemm, stages = 3>, #fp4.case<m = [257, ?] : tile_gemm, stages = 3>]
!w = tensor<32x112x4608xi8, #fp4.weight_layout<wgmma>>
func.func @said(%x: tensor<?x7168xbf16>, %w: !w) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>) {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, fp4.plan = #fp4.plan<tile_gemm, stages = 3>}
      : (tensor<?x7168xbf16>, !w) -> tensor<?x4096xbf16>
  %z = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, dispatch = [#fp4.case<m = [1, 64] : tile_gemm>, #fp4.case<m = [65, ?] : tile_gemm, stages = 3>]}
      : (tensor<?x7168xbf16>, !w) -> tensor<?x4096xbf16>
  return %y, %z : tensor<?x4096xbf16>, tensor<?x4096xbf16>
}

// -----

// The policy fixed has one factor for any number of rows, as few of them want it.
// CHECK-LABEL: @fixed
// CHECK: work = #fp4.work<split_k = 3>
// CHECK-LABEL: @fixed_rows
// CHECK: work = #fp4.work<split_k = 3>
!w = tensor<32x112x4608xi8, #fp4.weight_layout<wgmma>>
func.func @fixed(%x: tensor<?x7168xbf16>, %w: !w) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fixed>}
      : (tensor<?x7168xbf16>, !w) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @fixed_rows(%x: tensor<512x7168xbf16>, %w: !w) -> tensor<512x4096xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fixed>}
      : (tensor<512x7168xbf16>, !w) -> tensor<512x4096xbf16>
  return %y : tensor<512x4096xbf16>
}

// -----

// Tiles that fill all SMs are not cut, and the policy goes.
// CHECK-LABEL: @wide
// CHECK: fp4.matmul
// CHECK-NOT: work
!w = tensor<224x64x4608xi8, #fp4.weight_layout<wgmma>>
func.func @wide(%x: tensor<?x4096xbf16>, %w: !w) -> tensor<?x28672xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<?x4096xbf16>, !w) -> tensor<?x28672xbf16>
  return %y : tensor<?x28672xbf16>
}

// -----

// Two ranges of 396 tiles would not run at a time, and the tiles fill three waves.
// CHECK-LABEL: @at_once
// CHECK: fp4.matmul
// CHECK-NOT: work
!w = tensor<396x80x4608xi8, #fp4.weight_layout<wgmma>>
func.func @at_once(%x: tensor<160x5120xbf16>, %w: !w) -> tensor<160x50688xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<160x5120xbf16>, !w) -> tensor<160x50688xbf16>
  return %y : tensor<160x50688xbf16>
}

// -----

// A second wave would have 28 of 160 tiles, so 132 CTAs share them; mma.sync has no measured rates.
// `fixed` shares none, nor does a matmul with a plan or with any number of rows.
// CHECK-LABEL: @shared
// CHECK: work = #fp4.work<stream_k = [132, 128, 256]>
// PLAN-LABEL: @shared
// PLAN: tile = [128, 256, 128]
// WARPS-LABEL: @shared
// WARPS-NOT: stream_k
// CHECK-LABEL: @not_shared
// CHECK-NOT: stream_k
!w = tensor<40x512x4608xi8, #fp4.weight_layout<wgmma>>
func.func @shared(%x: tensor<1024x32768xbf16>, %w: !w) -> tensor<1024x5120xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<1024x32768xbf16>, !w) -> tensor<1024x5120xbf16>
  return %y : tensor<1024x5120xbf16>
}
func.func @not_shared(%x: tensor<1024x32768xbf16>, %any: tensor<?x32768xbf16>, %w: !w)
    -> (tensor<1024x5120xbf16>, tensor<1024x5120xbf16>, tensor<?x5120xbf16>) {
  %fixed = fp4.matmul %x, %w {work = #fp4.work<split_k = fixed>}
      : (tensor<1024x32768xbf16>, !w) -> tensor<1024x5120xbf16>
  %said = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, fp4.plan = #fp4.plan<tile_gemm, stages = 3>}
      : (tensor<1024x32768xbf16>, !w) -> tensor<1024x5120xbf16>
  %rows = fp4.matmul %any, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<?x32768xbf16>, !w) -> tensor<?x5120xbf16>
  return %fixed, %said, %rows : tensor<1024x5120xbf16>, tensor<1024x5120xbf16>, tensor<?x5120xbf16>
}

// -----

// A fourth wave would have 4 of 400 tiles whose sums are promoted; those of 384 tiles fill three waves.
// CHECK-LABEL: @shared_promoted
// CHECK: work = #fp4.work<stream_k = [132, 128, 128]>
// CHECK-LABEL: @full_promoted
// CHECK-NOT: stream_k
func.func @shared_promoted(%x: tensor<128x5120xf8E4M3FN>, %w: tensor<400x40x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<128x51200xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<128x5120xf8E4M3FN>, tensor<400x40x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<128x51200xbf16>
  return %y : tensor<128x51200xbf16>
}
func.func @full_promoted(%x: tensor<128x5120xf8E4M3FN>, %w: tensor<384x40x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<128x49152xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<128x5120xf8E4M3FN>, tensor<384x40x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<128x49152xbf16>
  return %y : tensor<128x49152xbf16>
}

// -----

// A third wave would have 72 of 336 tiles: CTAs that share them are predicted to gain less than 5 %.
// CHECK-LABEL: @hardly_shared
// CHECK-NOT: stream_k
!w = tensor<336x84x4608xi8, #fp4.weight_layout<wgmma>>
func.func @hardly_shared(%x: tensor<192x5376xbf16>, %w: !w) -> tensor<192x43008xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<192x5376xbf16>, !w) -> tensor<192x43008xbf16>
  return %y : tensor<192x43008xbf16>
}

// -----

// Operands that warps convert may be split for few rows only, and a GEMM of tensor memory by its model.
// CHECK-LABEL: @scaled
// CHECK: dispatch = [#fp4.case<m = [1, 64], split_k = 4 : tile_gemm>, #fp4.case<m = [65, ?] : tile_gemm>]
// TMEM-LABEL: @scaled
// TMEM: dispatch = [#fp4.case<m = [1, 256], split_k = 2 : tile_gemm>, #fp4.case<m = [257, ?] : tile_gemm>]
!lhs = !fp4.scaled<nvfp4, tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<4096x7168xf4E2M1FN>, tensor<4096x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @scaled(%a: tensor<?x7168xf4E2M1FN>, %sa: tensor<?x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<4096x7168xf4E2M1FN>, %sb: tensor<4096x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fastest>} : (!lhs, !rhs) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

// -----

// Members beside the policy stay. Groups have cases, too (slices-of-groups.mlir).
// CHECK-LABEL: @groups
// CHECK: work = #fp4.work<expected_rows = 16>
!w = tensor<2x128x4608xi8, #fp4.weight_layout<wgmma>>
func.func @groups(%x: tensor<?x8192xbf16>, %w: !w, %o: tensor<3xi64>) -> tensor<?x128xbf16> {
  %y = fp4.matmul %x, %w offsets %o {work = #fp4.work<split_k = fastest, expected_rows = 16>}
      : (tensor<?x8192xbf16>, !w, tensor<3xi64>) -> tensor<?x128xbf16>
  return %y : tensor<?x128xbf16>
}

// -----

// Groups stay where K is not cut, on each target.
// CHECK-LABEL: @many
// CHECK: work = #fp4.work<groups = [512, 512, 512, 512]>
// PLAN-LABEL: @many
// PLAN: work = #fp4.work<groups = [512, 512, 512, 512]>
// TMEM-LABEL: @many
// TMEM: work = #fp4.work<groups = [512, 512, 512, 512]>
// WARPS-LABEL: @many
// WARPS: work = #fp4.work<groups = [512, 512, 512, 512]>
!g = tensor<92x45x4352xi8, #fp4.weight_layout<wgmma>>
func.func @many(%x: tensor<2048x2880xbf16>, %p: !g) -> tensor<2048x2944xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = fastest, groups = [512, 512, 512, 512]>}
      : (tensor<2048x2880xbf16>, !g) -> tensor<2048x2944xbf16>
  return %y : tensor<2048x2944xbf16>
}

// -----

// Groups of scaled operands stay, too.
// CHECK-LABEL: @scaled_groups
// CHECK: work = #fp4.work<groups = [24, 40]>
// TMEM-LABEL: @scaled_groups
// TMEM: work = #fp4.work<groups = [24, 40]>
// WARPS-LABEL: @scaled_groups
// WARPS: work = #fp4.work<groups = [24, 40]>
!sl = tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sr = tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<64x1024xf4E2M1FN>, !sl>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !sr>
func.func @scaled_groups(%a: tensor<64x1024xf4E2M1FN>, %sa: !sl, %b: tensor<512x1024xf4E2M1FN>, %sb: !sr) -> tensor<64x256xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fastest, groups = [24, 40]>} : (!lhs, !rhs) -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}

// -----

// The factor of `fixed` is one for static and dynamic rows. An epilogue region is a part of the cost.
!a = tensor<?x7168xf4E2M1FN>
!sa = tensor<?x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<4096x7168xf4E2M1FN>
!sb = tensor<4096x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!c = tensor<64x7168xf4E2M1FN>
!sc = tensor<64x448xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !sa>
!rhs = !fp4.scaled<nvfp4, !b, !sb>
!lhs2 = !fp4.scaled<nvfp4, !c, !sc>
// TMEM-LABEL: @any_rows
// TMEM: work = #fp4.work<split_k = [[FIXED:[0-9]+]]>
func.func @any_rows(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<?x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = fixed>} : (!lhs, !rhs) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
// TMEM-LABEL: @some_rows
// TMEM: work = #fp4.work<split_k = [[FIXED]]>
func.func @some_rows(%a: !c, %sa: !sc, %b: !b, %sb: !sb, %bias: tensor<1x4096xf32>) -> tensor<64x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs2
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs epilogue(%bias) {
  ^bb0(%x: f32, %v: f32):
    %sum = arith.addf %x, %v : f32
    %rounded = arith.truncf %sum : f32 to bf16
    fp4.yield %rounded : bf16
  } {work = #fp4.work<split_k = fixed>} : (!lhs2, !rhs, tensor<1x4096xf32>) -> tensor<64x4096xbf16>
  return %y : tensor<64x4096xbf16>
}
// TMEM-LABEL: @fast_rows
// TMEM: work = #fp4.work<split_k =
func.func @fast_rows(%a: !c, %sa: !sc, %b: !b, %sb: !sb, %bias: tensor<1x4096xf32>) -> tensor<64x4096xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs2
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs epilogue(%bias) {
  ^bb0(%x: f32, %v: f32):
    %sum = arith.addf %x, %v : f32
    %rounded = arith.truncf %sum : f32 to bf16
    fp4.yield %rounded : bf16
  } {work = #fp4.work<split_k = fastest>} : (!lhs2, !rhs, tensor<1x4096xf32>) -> tensor<64x4096xbf16>
  return %y : tensor<64x4096xbf16>
}

// -----

// Two k slices in 80 CTAs gain nothing with e4m3: three ranges have all SMs, and a cluster of four reduces those of
// 7168 columns.
!f = tensor<80x40x8704xi8, #fp4.weight_layout<wgmma_rows>>
!h = tensor<56x256x4352xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @few_bytes
// CHECK: work = #fp4.work<split_k = 3>
// CHECK-LABEL: @few_halves
// CHECK: work = #fp4.work<split_k = 4>
func.func @few_bytes(%x: tensor<4x5120xf8E4M3FN>, %w: !f) -> tensor<4x10240xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<4x5120xf8E4M3FN>, !f) -> tensor<4x10240xbf16>
  return %y : tensor<4x10240xbf16>
}
func.func @few_halves(%x: tensor<1x16384xbf16>, %w: !h) -> tensor<1x7168xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<1x16384xbf16>, !h) -> tensor<1x7168xbf16>
  return %y : tensor<1x7168xbf16>
}

// -----

// 288 whole tiles take a second wave of 24 on 264 places of an H200: 45.8 us, and 38.1 us with two ranges in three
// waves. 264 whole tiles have one wave.
!t = tensor<288x56x8704xi8, #fp4.weight_layout<wgmma_rows>>
!u = tensor<264x56x8704xi8, #fp4.weight_layout<wgmma_rows>>
// CHECK-LABEL: @several_waves
// CHECK: work = #fp4.work<split_k = 2>
// CHECK-LABEL: @one_wave
// CHECK-NOT: split_k = 2
// CHECK: return
func.func @several_waves(%x: tensor<2x7168xf8E4M3FN>, %w: !t) -> tensor<2x36864xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<2x7168xf8E4M3FN>, !t) -> tensor<2x36864xbf16>
  return %y : tensor<2x36864xbf16>
}
func.func @one_wave(%x: tensor<2x7168xf8E4M3FN>, %w: !u) -> tensor<2x33792xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<2x7168xf8E4M3FN>, !u) -> tensor<2x33792xbf16>
  return %y : tensor<2x33792xbf16>
}

// -----

// SMs share fewer tiles than there are SMs, three a tile: 80 of 96 x 128 take 0.92 of the cycles of three ranges in two
// waves on an H200, which take 0.92 of those of one range. 40 of 128 x 256 would take 1.02 of those of three ranges.
!w = tensor<40x200x8704xi8, #fp4.weight_layout<wgmma>>
!v = tensor<40x512x4352xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @few_tiles
// CHECK: work = #fp4.work<stream_k = [132, 96, 128]>
// CHECK-LABEL: @fewer_tiles
// CHECK: work = #fp4.work<stream_k = [132, 128, 128]>
func.func @few_tiles(%x: tensor<192x25600xf8E4M3FN>, %w: !w) -> tensor<192x5120xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<192x25600xf8E4M3FN>, !w) -> tensor<192x5120xbf16>
  return %y : tensor<192x5120xbf16>
}
func.func @fewer_tiles(%x: tensor<256x32768xbf16>, %w: !v) -> tensor<256x5120xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<256x32768xbf16>, !v) -> tensor<256x5120xbf16>
  return %y : tensor<256x5120xbf16>
}

// -----

// Tiles of few rows are not shared. A cluster reduces all rows of e4m3 whose sums stay in the tensor core, but those of
// 256 rows have few stages beside their sums: two ranges take 1.10 of the cycles of one of 128 rows. Two ranges of
// promoted sums take 0.92 of one of 64 rows. A K of two deep stages has four of half as many elements.
!few = tensor<280x40x8704xi8, #fp4.weight_layout<wgmma>>
!tall = tensor<32x112x8704xi8, #fp4.weight_layout<wgmma_rows>>
!taller = tensor<56x128x8704xi8, #fp4.weight_layout<wgmma_rows>>
!promoted = tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>
!short = tensor<256x8x4352xi8, #fp4.weight_layout<wgmma>>
!longer = tensor<256x16x4352xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @few_rows
// CHECK-NOT: stream_k
// CHECK-LABEL: @tall_cluster
// CHECK: work = #fp4.work<split_k = 3>
// CHECK-LABEL: @taller_cluster
// CHECK-NOT: split_k = 2
// CHECK-LABEL: @promoted_cluster
// CHECK: work = #fp4.work<split_k = 2>
// PLAN-LABEL: @tall_cluster
// PLAN: tile = [160, 128, 128], cluster = [3, 1]
// PLAN-LABEL: @taller_cluster
// PLAN: tile = [128, 128, 256], schedule
// PLAN-LABEL: @promoted_cluster
// PLAN: tile = [128, 128, 256], cluster = [2, 1]
// PLAN-LABEL: @short_k
// PLAN: tile = [16, 128, 128]
// PLAN-LABEL: @longer_k
// PLAN: tile = [16, 128, 256]
func.func @few_rows(%x: tensor<32x5120xf8E4M3FN>, %w: !few) -> tensor<32x35840xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<32x5120xf8E4M3FN>, !few) -> tensor<32x35840xbf16>
  return %y : tensor<32x35840xbf16>
}
func.func @tall_cluster(%x: tensor<160x14336xf8E4M3FN>, %w: !tall) -> tensor<160x4096xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<160x14336xf8E4M3FN>, !tall) -> tensor<160x4096xbf16>
  return %y : tensor<160x4096xbf16>
}
func.func @taller_cluster(%x: tensor<256x16384xf8E4M3FN>, %w: !taller) -> tensor<256x7168xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<256x16384xf8E4M3FN>, !taller) -> tensor<256x7168xbf16>
  return %y : tensor<256x7168xbf16>
}
func.func @promoted_cluster(%x: tensor<256x4096xf8E4M3FN>, %w: !promoted) -> tensor<256x4096xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<256x4096xf8E4M3FN>, !promoted) -> tensor<256x4096xbf16>
  return %y : tensor<256x4096xbf16>
}
func.func @short_k(%x: tensor<12x512xbf16>, %w: !short) -> tensor<12x32768xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<12x512xbf16>, !short) -> tensor<12x32768xbf16>
  return %y : tensor<12x32768xbf16>
}
func.func @longer_k(%x: tensor<12x1024xbf16>, %w: !longer) -> tensor<12x32768xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>} : (tensor<12x1024xbf16>, !longer) -> tensor<12x32768xbf16>
  return %y : tensor<12x32768xbf16>
}

// -----

// A policy is no factor yet.
// RUN: not fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: error: {{.*}}must have factors of 'split_k' before it is planned, but got fastest
// OPEN: note: run fp4-choose-splits, which replaces the policy
