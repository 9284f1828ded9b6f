// Grouped GEMMs with an empty group and one of a single row, and a batch of equal groups. Each
// group has scales, weights and an alpha of its own.
// RUN: fp4-runner %s --device=sim --function=experts --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=experts --policy=random --check=strict --plan "tile_gemm, tile = [128, 96, 256]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=batch --policy=lazy --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!lw = tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<301x240xf4E2M1FN>,
                   tensor<2560x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<800x240xf4E2M1FN>, !lw>
func.func @experts(%x: tensor<301x240xbf16>, %w: tensor<800x240xbf16>) -> tensor<301x200xbf16> {
  %ax = fp4.amax %x {groups = array<i64: 170, 0, 1, 130>} : tensor<301x240xbf16> -> tensor<4xf32>
  %aw = fp4.amax %w {groups = array<i64: 200, 200, 200, 200>} : tensor<800x240xbf16> -> tensor<4xf32>
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 170, 0, 1, 130>}
      : (tensor<301x240xbf16>, tensor<4xf32>) -> (tensor<301x240xf4E2M1FN>, tensor<2560x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %qw, %sw = fp4.quantize %w amax %aw {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 200, 200, 200, 200>}
      : (tensor<800x240xbf16>, tensor<4xf32>) -> (tensor<800x240xf4E2M1FN>, !lw)
  %alpha = fp4.matmul_alpha %ax, %aw {per_group} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %q_scaled = fp4.scaled %q, %s : !lhs
  %qw_scaled = fp4.scaled %qw, %sw : !rhs
  %y = fp4.matmul %q_scaled, %qw_scaled alpha %alpha {work = #fp4.work<groups = [170, 0, 1, 130]>}
      : (!lhs, !rhs, tensor<4xf32>) -> tensor<301x200xbf16>
  return %y : tensor<301x200xbf16>
}

!mx = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!mw = tensor<384x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, tensor<120x128xf4E2M1FN>, !mx>
!rhs2 = !fp4.scaled<mxfp4, tensor<192x128xf4E2M1FN>, !mw>
func.func @batch(%x: tensor<120x128xbf16>, %w: tensor<192x128xbf16>) -> tensor<120x64xf32> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 40, 40, 40>}
      : (tensor<120x128xbf16>) -> (tensor<120x128xf4E2M1FN>, !mx)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, groups = array<i64: 64, 64, 64>}
      : (tensor<192x128xbf16>) -> (tensor<192x128xf4E2M1FN>, !mw)
  %q_scaled = fp4.scaled %q, %s : !lhs2
  %qw_scaled = fp4.scaled %qw, %sw : !rhs2
  %y = fp4.matmul %q_scaled, %qw_scaled {work = #fp4.work<groups = [40, 40, 40]>}
      : (!lhs2, !rhs2) -> tensor<120x64xf32>
  return %y : tensor<120x64xf32>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<301x256xf4E2M1FN>,
                    tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<800x256xf4E2M1FN>,
                    tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Offsets that the device has: the first rows and the last are of no group, and one group is empty.
// RUN: fp4-runner %s --device=sim --function=offsets --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=offsets --policy=random --check=strict --plan "tile_gemm, tile = [128, 64, 256]" | FileCheck %s
func.func @offsets(%q: tensor<301x256xf4E2M1FN>, %s: tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<800x256xf4E2M1FN>, %sw: tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<301x200xf32> {
  %o = arith.constant dense<[5, 170, 170, 171, 300]> : tensor<5xi64>
  %q_scaled = fp4.scaled %q, %s : !lhs3
  %w_scaled = fp4.scaled %w, %sw : !rhs3
  %y = fp4.matmul %q_scaled, %w_scaled offsets %o
      : (!lhs3, !rhs3, tensor<5xi64>) -> tensor<301x200xf32>
  return %y : tensor<301x200xf32>
}
