// Only tensor memory has a number of accumulators to choose. On targets whose sums are in registers, a plan with one is refused,
// as one with any other field is that means nothing there.
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --fp4-plan-kernels | FileCheck %s
// RUN: sed 's/, accumulators = 2//' %s | fp4-opt --fp4-set-target=target=sm_120a --fp4-plan-kernels | FileCheck %s --check-prefix=WITHOUT
// RUN: not fp4-opt %s --fp4-set-target=target=sm_120a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=GROUPS
// CHECK: accumulators = 2
// WITHOUT: #fp4.plan<tile_gemm
// WITHOUT-NOT: accumulators
// WARPS: error: 'fp4.matmul' op must have a plan without 'accumulators', which route <core = mma_sync, {{.*}}> does not read
// WARPS-NEXT: %y
// WARPS: note: fields that the route reads: route, tile, schedule, roles, stages, ctas_per_sm, pdl, wave_cost
// GROUPS: error: 'fp4.matmul' op must have a plan without 'accumulators', which route <core = wgmma, {{.*}}> does not read
!s = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !s>
func.func @f(%a: tensor<512x1024xf4E2M1FN>, %s: !s) -> tensor<512x512xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, accumulators = 2>}
      : (!operand, !operand) -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}
