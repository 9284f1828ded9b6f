// If sums are in registers, a plan counts the tiles of all groups: tiles of many small groups have few rows, if the instruction
// has as few, and equal groups have the tiles of a GEMM alone.
// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=SYNC
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WGMMA
// RUN: not fp4-opt %s -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_gemm, route = <orientation = swapped>}" 2>&1 | FileCheck %s --check-prefix=SWAP
// SWAP: error: {{.*}}route <orientation = swapped> is none of target 'sm_90a' for GEMMs of {{.*}}, with groups

!t = tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!u = tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<16x128xf4E2M1FN>, !u>
!rhs = !fp4.scaled<nvfp4, tensor<4096x128xf4E2M1FN>, !t>
// SYNC-LABEL: func.func @few
// SYNC: tile = [16, {{[0-9]+}}, 128]
// WGMMA-LABEL: func.func @few
// WGMMA: tile = [128, 128, 128], {{.*}}ctas_per_sm = 1>
func.func @few(%a: tensor<16x128xf4E2M1FN>, %sa: !u, %b: tensor<4096x128xf4E2M1FN>, %sb: !t) -> tensor<16x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]>}
      : (!lhs, !rhs) -> tensor<16x256xbf16>
  return %y : tensor<16x256xbf16>
}

// Activations without scales: a tile has the rows that an expert is expected to have, and in the middle of which it may end: so
// gpt-oss with 2, 16 and 128 rows for each of its 32 experts.
!w = tensor<1440x45x4352xi8, #fp4.weight_layout<wgmma>>
// WGMMA-LABEL: func.func @two
// WGMMA: tile = [8, 128, 256], schedule = #pipe.static_persistent<along_m>, {{.*}}ctas_per_sm = 2, pdl = before_wait>
func.func @two(%x: tensor<64x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<64x5760xbf16> {
  %y = fp4.matmul %x, %w offsets %o {work = #fp4.work<expected_rows = 2>}
      : (tensor<64x2880xbf16>, !w, tensor<33xi64>) -> tensor<64x5760xbf16>
  return %y : tensor<64x5760xbf16>
}
// WGMMA-LABEL: func.func @sixteen
// WGMMA: tile = [32, 128, 256],
func.func @sixteen(%x: tensor<512x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<512x5760xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<512x2880xbf16>, !w, tensor<33xi64>) -> tensor<512x5760xbf16>
  return %y : tensor<512x5760xbf16>
}
// WGMMA-LABEL: func.func @many
// WGMMA: tile = [128, 128, 128], schedule = #pipe.static_persistent<panels<4>>,
func.func @many(%x: tensor<4096x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<4096x5760xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<4096x2880xbf16>, !w, tensor<33xi64>) -> tensor<4096x5760xbf16>
  return %y : tensor<4096x5760xbf16>
}

// With 512 rows for each, weights are converted for 256 rows of a tile, or for 128 where a tile can have 256 columns. All tiles
// along m would read the activations again for each column of tiles.
// WGMMA-LABEL: func.func @most
// WGMMA: tile = [256, 128, 128], schedule = #pipe.static_persistent<panels<8>>,
func.func @most(%x: tensor<16384x2880xbf16>, %w: !w, %o: tensor<33xi64>) -> tensor<16384x5760xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<16384x2880xbf16>, !w, tensor<33xi64>) -> tensor<16384x5760xbf16>
  return %y : tensor<16384x5760xbf16>
}
!v = tensor<1408x45x4352xi8, #fp4.weight_layout<wgmma>>
// WGMMA-LABEL: func.func @wide
// WGMMA: tile = [128, 256, 128], schedule = #pipe.static_persistent<panels<4>>,
func.func @wide(%x: tensor<16384x2880xbf16>, %w: !v, %o: tensor<33xi64>) -> tensor<16384x5632xbf16> {
  %y = fp4.matmul %x, %w offsets %o
      : (tensor<16384x2880xbf16>, !v, tensor<33xi64>) -> tensor<16384x5632xbf16>
  return %y : tensor<16384x5632xbf16>
}

// Two grouped GEMMs have two CTAs of an SM; one layer with as many rows has one.
!g = tensor<736x45x4352xi8, #fp4.weight_layout<wgmma>>
// WGMMA-LABEL: func.func @gates_of_groups
// WGMMA: tile = [32, 128, 256], {{.*}}ctas_per_sm = 2, pdl = before_wait>
func.func @gates_of_groups(%x: tensor<512x2880xbf16>, %w: !g, %v: !g, %o: tensor<33xi64>) -> tensor<512x2944xbf16> {
  %y = fp4.matmul %x, %w with %v offsets %o epilogue() {
  ^bb0(%s: f32, %t: f32):
    %p = arith.mulf %s, %t : f32
    %z = arith.truncf %p : f32 to bf16
    fp4.yield %z : bf16
  } : (tensor<512x2880xbf16>, !g, !g, tensor<33xi64>) -> tensor<512x2944xbf16>
  return %y : tensor<512x2944xbf16>
}
!l = tensor<256x64x4352xi8, #fp4.weight_layout<wgmma>>
// WGMMA-LABEL: func.func @gates_of_one
// WGMMA: tile = [32, 128, 256], {{.*}}ctas_per_sm = 1, pdl = before_wait>
func.func @gates_of_one(%x: tensor<32x4096xbf16>, %w: !l, %v: !l) -> tensor<32x32768xbf16> {
  %y = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%s: f32, %t: f32):
    %p = arith.mulf %s, %t : f32
    %z = arith.truncf %p : f32 to bf16
    fp4.yield %z : bf16
  } : (tensor<32x4096xbf16>, !l, !l) -> tensor<32x32768xbf16>
  return %y : tensor<32x32768xbf16>
}
