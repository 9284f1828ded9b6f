// The order of instructions in GEMMs of FP8 with f32 scales. With two blocks in a stage, the sums of the first
// are added while the second MMA runs, whose end the release of the stage waits for. With two parts of a tile, the
// first sums are added before the second MMA begins in their registers: the predicate that makes it a new sum is
// one that ptxas cannot know.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [64, 64, 256]" -o %t.two && FileCheck %s --check-prefix=TWO < %t.two
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [256, 128, 128]" -o %t.parts && FileCheck %s --check-prefix=PARTS < %t.parts

// TWO: wgmma.fence.sync.aligned;
// TWO-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3
// TWO: wgmma.commit_group.sync.aligned;
// TWO-NOT: wait_group
// TWO-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3
// TWO: wgmma.commit_group.sync.aligned;
// TWO-NEXT: wgmma.wait_group.sync.aligned 1;
// TWO-COUNT-32: fma.rn.f32
// TWO: wgmma.wait_group.sync.aligned 0;
// TWO: mbarrier.arrive.shared.b64

!lhs = !fp4.scaled<fp8_block128, tensor<512x768xf8E4M3FN>, tensor<512x6xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x768xf8E4M3FN>, tensor<2x6xf32>>
// PARTS: wgmma.wait_group.sync.aligned 0;
// PARTS-COUNT-64: fma.rn.f32
// PARTS: mov.u32 n, %nctaid.x;
// PARTS: setp.eq.u32 p, n, 0;
// PARTS: wgmma.fence.sync.aligned;
// PARTS-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3
// PARTS: wgmma.wait_group.sync.aligned 0;
func.func @product(%a: tensor<512x768xf8E4M3FN>, %sa: tensor<512x6xf32>, %b: tensor<256x768xf8E4M3FN>, %sb: tensor<2x6xf32>)
    -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}
