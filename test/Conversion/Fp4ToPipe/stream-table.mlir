// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s

// Two workers share three tiles of two slices of K. A slice has two k tiles of 128, but K ends within the second one:
// no range reaches behind the third k tile.
// Table of each work: the tile along m and n, its k tiles from and to, the first of its sums, its part, the parts, the counter.
// CHECK: pipe.device_constant dense<"0x0000000000000000000000000300000000000000000000000100000000000000
// CHECK-SAME: 0100000000000000020000000300000000000000010000000200000000000000
// CHECK-SAME: 0100000000000000000000000200000000000000000000000200000000000000
// CHECK-SAME: 0200000000000000000000000300000000000000000000000100000000000000">
!s = tensor<300x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t = tensor<64x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp8_e4m3, tensor<300x384xf8E4M3FN>, !s>
!rhs = !fp4.scaled<mxfp8_e4m3, tensor<64x384xf8E4M3FN>, !t>
func.func @bytes(%a: tensor<300x384xf8E4M3FN>, %sa: !s, %b: tensor<64x384xf8E4M3FN>, %sb: !t) -> tensor<300x64xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [2, 128, 64]>}
      : (!lhs, !rhs) -> tensor<300x64xf32>
  return %y : tensor<300x64xf32>
}
