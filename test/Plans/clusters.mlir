// Two pairs in a cluster load rows of A together. The clusters are chosen where the pairs that find room take as many turns as
// all pairs would: not where these take fewer, where one wave is enough, where sizes are known to the device alone, and where
// nobody has measured multicasts. A field that a program sets is kept.
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_110a -fp4-plan-kernels | FileCheck %s --check-prefix=THOR
// THOR-NOT: cluster = [2, 2]

!a = tensor<4096x4096xf4E2M1FN>
!s = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!y = tensor<4096x4096xbf16>

!operand = !fp4.scaled<nvfp4, !a, !s>
// 256 tiles are four turns of 66 pairs, and of 74.
// CHECK-LABEL: func @as_many_turns
// CHECK: tile = [256, 256, 256], cluster = [2, 2], pair
func.func @as_many_turns(%a: !a, %s: !s) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> !y
  return %y : !y
}

// CHECK-LABEL: func @one_pair_is_asked_for
// CHECK: cluster = [2, 1], pair
func.func @one_pair_is_asked_for(%a: !a, %s: !s) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 1], pair>}
      : (!operand, !operand) -> !y
  return %y : !y
}

// 1024 tiles are 16 turns of 66 pairs, and 14 of 74.
!la = tensor<8192x4096xf4E2M1FN>
!ls = tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ly = tensor<8192x8192xbf16>
!operand2 = !fp4.scaled<nvfp4, !la, !ls>
// CHECK-LABEL: func @more_turns
// CHECK: tile = [256, 256, 256], cluster = [2, 1], pair
func.func @more_turns(%a: !la, %s: !ls) -> !ly {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand2, !operand2) -> !ly
  return %y : !ly
}

!oa = tensor<1024x4096xf4E2M1FN>
!os = tensor<1024x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!oy = tensor<1024x1024xbf16>
!operand3 = !fp4.scaled<nvfp4, !oa, !os>
// CHECK-LABEL: func @one_wave
// CHECK: cluster = [2, 1], pair
func.func @one_wave(%a: !oa, %s: !os) -> !oy {
  %a_scaled = fp4.scaled %a, %s : !operand3
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand3, !operand3) -> !oy
  return %y : !oy
}

!da = tensor<?x4096xf4E2M1FN>
!ds = tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!dy = tensor<?x4096xbf16>
!lhs = !fp4.scaled<nvfp4, !da, !ds>
// CHECK-LABEL: func @rows_that_the_device_knows
// CHECK-NOT: cluster = [2, 2]
// CHECK: return
func.func @rows_that_the_device_knows(%a: !da {fp4.dims = ["M", "K"]}, %s: !ds, %b: !a, %t: !s) -> !dy {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !operand) -> !dy
  return %y : !dy
}
