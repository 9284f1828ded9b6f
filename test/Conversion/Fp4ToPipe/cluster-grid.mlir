// A grid has no more clusters than find room at a time: those of four CTAs and more leave SMs idle, and one
// that waits for another would begin a second turn. Smaller ones to fall back on fill what is left.
// RUN: sed 's/CLUSTER/[2, 2]/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/CLUSTER/[2, 1]/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=PAIR
// RUN: sed 's/CLUSTER/[4, 1], fallback = [2, 1]/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=EITHER
// FOUR: %[[CLUSTERS:.*]] = arith.constant 33 : index
// FOUR: %[[GRID:.*]] = arith.muli %[[CLUSTERS]]
// FOUR: gpu.launch_func {{.*}} blocks in (%[[GRID]], %c2{{.*}}, %c1)
// PAIR: %c74 = arith.constant 74 : index
// EITHER: %c37 = arith.constant 37 : index
!s = tensor<4096x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<4096x2048xf4E2M1FN>, !s>
func.func @f(%a: tensor<4096x2048xf4E2M1FN>, %s: !s) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256], cluster = CLUSTER>}
      : (!operand, !operand) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
