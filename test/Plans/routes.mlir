// A plan has the route by which its GEMM reaches the core. A program or --plan asks for axes of it, and a route that
// does not exist is an error that lists those that do.

// RUN: sed 's/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=TCGEN05
// RUN: sed 's/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WGMMA
// RUN: sed 's/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=WARPS
// TCGEN05-LABEL: func @codes
// TCGEN05: fp4.plan = #fp4.plan<tile_gemm, route = <core = tcgen05, a = as_is, b = as_is, accumulate = core, orientation = normal>, tile
// TCGEN05-LABEL: func @weights
// TCGEN05: fp4.plan = #fp4.plan<tile_gemm, route = <core = tcgen05, a = tmem, b = as_is, accumulate = core, orientation = swapped>, tile
// TCGEN05-LABEL: func @rows
// TCGEN05: fp4.plan = #fp4.plan<gemv, route = <core = fma, a = registers, b = registers, accumulate = core, orientation = normal>, threads
// WGMMA-LABEL: func @codes
// WGMMA: route = <core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal>, tile
// WGMMA-LABEL: func @weights
// WGMMA: route = <core = wgmma, a = registers, b = as_is, accumulate = core, orientation = swapped>, tile
// WARPS-LABEL: func @codes
// WARPS: route = <core = mma_sync, a = as_is, b = as_is, accumulate = core, orientation = normal>, tile
// WARPS-LABEL: func @weights
// WARPS: route = <core = mma_sync, a = registers, b = as_is, accumulate = core, orientation = swapped>, tile

// The program asks for one axis, and the planner fills the others and the tile.
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre>>/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=PRE
// PRE: route = <core = wgmma, a = registers, b = pre, accumulate = core, orientation = swapped>, tile = [{{128|256}}, 128, 128],
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = shared>>/; s/256x512/16x512/g; s/256x32/16x32/g; s/256x1024xf32/16x1024xf32/g' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=SHARED
// SHARED: route = <core = wgmma, a = registers, b = shared, accumulate = core, orientation = swapped>, tile = [128, 16, 128],{{.*}}auxiliary
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <orientation = normal>>/; s/256x512/16x512/g; s/256x32/16x32/g; s/256x1024xf32/16x1024xf32/g' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=NORMAL
// NORMAL: func @codes
// NORMAL: route = <core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal>, tile
// NORMAL-NOT: swapped
// NORMAL: func @weights
// The option asks for all GEMMs.
// RUN: sed 's/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_gemm, route = <orientation = swapped>}" | FileCheck %s --check-prefix=OPTION
// OPTION: func @codes
// OPTION: b = pre, accumulate = core, orientation = swapped>, tile = [{{128|256}}, 128, 128],
// OPTION: func @weights
// OPTION: b = as_is, accumulate = core, orientation = swapped>, tile = [{{[0-9]+}}, 128, 128]

// Routes that the target, the pair or groups do not have; a field that the route does not read; the former spelling.
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <core = wgmma>>/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: <stdin>:[[#]]:[[#]]: error: 'fp4.matmul' op route <core = wgmma> is none of target 'sm_120a' for GEMMs of elements of 4 bits with scales
// TARGET: note: routes there: <core = mma_sync, a = as_is, b = as_is, accumulate = core, orientation = normal>; targets with the one that is asked for: sm_90a
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre, orientation = normal>>/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=PAIR
// PAIR: error: {{.*}}route <b = pre, orientation = normal> is none of target 'sm_90a'
// PAIR: note: routes there: <core = wgmma, a = registers, b = shared, {{.*}}normal>, <{{.*}}b = shared{{.*}}swapped>, <{{.*}}b = pre{{.*}}swapped>; no target has the one that is asked for
// RUN: sed 's/PLAN/work = #fp4.work<groups = [128, 128]>, fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>>/; s/1024x512xf4/2048x512xf4/g; s/256x32xf8/2048x4xf8/g; s/1024x32xf8/16384x4xf8/g' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: {{.*}}route <orientation = swapped> is none of target 'sm_90a' for GEMMs of elements of 4 bits with scales, with groups
// GROUPS: note: routes there: <core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal>; no target
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre>, mma_warps = 2>/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FIELD
// FIELD: error: {{.*}}must have a plan without 'mma_warps', which route <core = wgmma, a = registers, b = pre, {{.*}}> does not read
// FIELD: note: fields that the route reads: route, tile, cluster, schedule, roles, stages, ctas_per_sm, pdl, wave_cost
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre>, ctas_per_sm = 1>/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// Axes of the program and of the option make one route, unless they contradict each other: then the program wins.
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre>>/' %s | fp4-opt -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_gemm, route = <orientation = swapped>}" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH-NOT: warning
// BOTH: func @codes
// BOTH: b = pre, accumulate = core, orientation = swapped>
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <orientation = normal>>/' %s | fp4-opt -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_gemm, route = <orientation = swapped>}" 2>&1 | FileCheck %s --check-prefix=HALVES
// HALVES: warning: fp4.plan of the program wins over the plan 'tile_gemm, route = <orientation = swapped>' of the options in: route
// HALVES: func @codes
// HALVES: b = shared, accumulate = core, orientation = normal>
// A plan that was saved without its route is not complete.
// RUN: sed 's/PLAN//' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels | sed 's/ route = <[^>]*>,//' | not fp4-opt -convert-fp4-to-pipe 2>&1 | FileCheck %s --check-prefix=SAVED
// SAVED: error: 'fp4.matmul' op must have a complete plan before it is lowered, but 'route' is missing
// SAVED: note: run fp4-plan-kernels, which completes plans
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, swap>/' %s | not fp4-opt 2>&1 | FileCheck %s --check-prefix=FORMER
// FORMER: error: a plan of family tile_gemm has no field 'swap'
// FORMER: note: 'swap' is called 'route = <orientation = swapped>' now
// RUN: sed 's/PLAN/fp4.plan = #fp4.plan<tile_gemm, route = <b = pre>, roles = #pipe.role_plan<load warps 12 to 13 drives [tma], convert warps 8 to 12 drives [threads] auxiliary, math warps 0 to 8 drives [tensor, threads]>>/; s/256x512/16x512/g; s/256x32/16x32/g; s/256x1024xf32/16x1024xf32/g' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROLES
// ROLES: error: {{.*}}'roles' have no auxiliary role with route <{{.*}}b = pre{{.*}}>, but got one

!lhs = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>,
                   tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<1024x512xf4E2M1FN>,
                   tensor<1024x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @codes(%a: tensor<256x512xf4E2M1FN>, %s: tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                 %b: tensor<1024x512xf4E2M1FN>, %t: tensor<1024x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x1024xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {PLAN} : (!lhs, !rhs) -> tensor<256x1024xf32>
  return %y : tensor<256x1024xf32>
}
func.func @weights(%x: tensor<64x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xbf16> {
  %y = fp4.matmul %x, %w
      : (tensor<64x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}
!lhs2 = !fp4.scaled<nvfp4, tensor<1x512xf4E2M1FN>,
                    tensor<1x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<128x512xf4E2M1FN>,
                    tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows(%a: tensor<1x512xf4E2M1FN>, %s: tensor<1x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                %b: tensor<128x512xf4E2M1FN>, %t: tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<1x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs2, !rhs2) -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}
