// Grouped GEMMs with an empty group and one of a single row, and a batch of equal groups. Each
// group has scales, weights and an alpha of its own.
// RUN: fp4-runner %s --device=sim --function=experts --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=experts --policy=random --check=strict --plan "tile_gemm, tile = [128, 96, 256]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=batch --policy=lazy --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!lw = tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @experts(%x: tensor<301x240xbf16>, %w: tensor<800x240xbf16>) -> tensor<301x200xbf16> {
  %ax = fp4.amax %x {groups = array<i64: 170, 0, 1, 130>} : tensor<301x240xbf16> -> tensor<4xf32>
  %aw = fp4.amax %w {groups = array<i64: 200, 200, 200, 200>} : tensor<800x240xbf16> -> tensor<4xf32>
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 170, 0, 1, 130>}
      : (tensor<301x240xbf16>, tensor<4xf32>) -> (tensor<301x240xf4E2M1FN>, tensor<2560x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %qw, %sw = fp4.quantize %w amax %aw {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 200, 200, 200, 200>}
      : (tensor<800x240xbf16>, tensor<4xf32>) -> (tensor<800x240xf4E2M1FN>, !lw)
  %alpha = fp4.matmul_alpha %ax, %aw {per_group} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %y = fp4.blockscaled_matmul %q scaled %s, %qw scaled %sw alpha %alpha
      {format = #fp4.format<nvfp4>, groups = array<i64: 170, 0, 1, 130>}
      : (tensor<301x240xf4E2M1FN>, tensor<2560x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<800x240xf4E2M1FN>, !lw, tensor<4xf32>) -> tensor<301x200xbf16>
  return %y : tensor<301x200xbf16>
}

!mx = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!mw = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @batch(%x: tensor<120x128xbf16>, %w: tensor<192x128xbf16>) -> tensor<120x64xf32> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 40, 40, 40>}
      : (tensor<120x128xbf16>) -> (tensor<120x128xf4E2M1FN>, !mx)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 64, 64, 64>}
      : (tensor<192x128xbf16>) -> (tensor<192x128xf4E2M1FN>, !mw)
  %y = fp4.blockscaled_matmul %q scaled %s, %qw scaled %sw {format = #fp4.format<mxfp4>, groups = array<i64: 40, 40, 40>}
      : (tensor<120x128xf4E2M1FN>, !mx, tensor<192x128xf4E2M1FN>, !mw) -> tensor<120x64xf32>
  return %y : tensor<120x64xf32>
}

// Offsets that the device has: the first rows and the last are of no group, and one group is empty.
// RUN: fp4-runner %s --device=sim --function=offsets --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=offsets --policy=random --check=strict --plan "tile_gemm, tile = [128, 64, 256]" | FileCheck %s
func.func @offsets(%q: tensor<301x256xf4E2M1FN>, %s: tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<800x256xf4E2M1FN>, %sw: tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<301x200xf32> {
  %o = arith.constant dense<[5, 170, 170, 171, 300]> : tensor<5xi64>
  %y = fp4.blockscaled_matmul %q scaled %s, %w scaled %sw offsets %o {format = #fp4.format<nvfp4>}
      : (tensor<301x256xf4E2M1FN>, tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<800x256xf4E2M1FN>,
         tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<5xi64>) -> tensor<301x200xf32>
  return %y : tensor<301x200xf32>
}
