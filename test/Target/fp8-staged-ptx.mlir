// GEMMs of FP8 with f32 scales whose K is a multiple of 512: 4 scales of each of 256 rows are one box, and the
// four k tiles of a box are written out. A thread reads five scales of a k tile, of two rows in each of two parts
// and of B, before it starts the first MMA of the tile. The last sums of a box are added in the next turn of the
// loop, before its first MMA, and behind the loop. The last MMA of a box orders the reads of scales before
// the box is loaded again. One thread of each warp arrives, without a branch.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [256, 128, 128]" -o %t && FileCheck %s < %t
// If a stage has two k tiles, the second MMA has begun already, and the fence is before its end.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [64, 64, 256]" -o %t.two && FileCheck %s --check-prefix=TWO < %t.two
// TWO: wgmma.wait_group.sync.aligned 0;
// TWO: fence.proxy.async.shared::cta;
// TWO: wgmma.wait_group.sync.aligned 0;

!lhs = !fp4.scaled<fp8_block128, tensor<512x512xf8E4M3FN>, tensor<512x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
// CHECK: .reqntid
// CHECK-COUNT-4: cp.async.bulk.tensor.2d
// CHECK-NOT: ld.global
// CHECK-COUNT-5: ld.shared.b32
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-64: fma.rn.f32
// CHECK: wgmma.fence.sync.aligned;
// CHECK-NOT: bar.warp.sync
// CHECK: @p mbarrier.arrive.shared.b64
// CHECK: fence.proxy.async.shared::cta;
// CHECK-NEXT: wgmma.wait_group.sync.aligned 0;
// CHECK: @p mbarrier.arrive.shared.b64
// CHECK-NOT: fma.rn.f32
// CHECK: bar.warp.sync
// CHECK: @p mbarrier.arrive.shared.b64
// CHECK-COUNT-64: fma.rn.f32
func.func @product(%a: tensor<512x512xf8E4M3FN>, %sa: tensor<512x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}
