// Results of e4m3 with a bias in tiles whose threads have 128 sums, which are derived in parts and put together as bytes:
// wide tiles beside a pre-dequantized lhs, and those that convert both. The twin has f32.
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --plan "tile_gemm, tile = [256, 128, 128], route = <orientation = swapped>" | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=delay --plan "tile_gemm, tile = [128, 256, 128]" | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --plan "tile_gemm, tile = [256, 128, 128]" | FileCheck %s
// RUN: sed 's/tensor<70x256xf8E4M3FN>/tensor<70x256xf32>/g' %s > %t.mlir
// RUN: fp4-runner %t.mlir --target=sm_90a --device=sim --check=strict --plan "tile_gemm, tile = [256, 128, 128]" | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK: hazards {{.*}}none (strict check)

#tiled = #fp4.scale_layout<tiled_128x4>
!x = tensor<70x128xf4E2M1FN>
!s = tensor<70x8xf8E4M3FN, #tiled>
!w = tensor<256x128xf4E2M1FN>
!t = tensor<256x8xf8E4M3FN, #tiled>
!lhs = !fp4.scaled<nvfp4, !x, !s>
!rhs = !fp4.scaled<nvfp4, !w, !t>
func.func @biased(%x: !x, %sx: !s, %w: !w, %sw: !t, %bias: tensor<1x256xf32>) -> tensor<70x256xf8E4M3FN> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled epilogue(%bias) {
  ^bb0(%sum: f32, %b: f32):
    %r = arith.addf %sum, %b : f32
    fp4.yield %r : f32
  } : (!lhs, !rhs, tensor<1x256xf32>) -> tensor<70x256xf8E4M3FN>
  return %y : tensor<70x256xf8E4M3FN>
}
