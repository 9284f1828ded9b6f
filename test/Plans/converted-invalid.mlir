// Plans that a GEMM of converted operands cannot have, each named with what it is.
// RUN: sed s/PLAN/tile=[128,128,256]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/tile=[128,64,128]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed s/PLAN/pair/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: sed s/PLAN/cluster=[2,1]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed s/PLAN/ctas_per_sm=2/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: sed 's/PLAN/roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CONVERT
// RUN: sed 's/PLAN/roles = #pipe.role_plan<load warps 8 to 9 drives [tma], convert warps 4 to 8 drives [threads] auxiliary, math warps 0 to 4 drives [tensor, threads]>/' %s \
// RUN:   | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MATH
// RUN: sed s/PLAN/tile=[128,128,128]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null

!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>,
                       tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// TILE: error: {{.*}}tile{{.*}}[256, 128, 128]{{.*}}for up to 64 columns, [256, 64, 128] or [128, 64, 128]
// PAIR: error: {{.*}}must have a plan without 'pair', which route {{<.*>}} does not read
// CLUSTER: error: {{.*}}must have a plan without 'cluster', which route {{<.*>}} does not read
// RESIDENT: error: {{.*}}ctas_per_sm{{.*}}1
// CONVERT: error: {{.*}}'roles' have an auxiliary role of threads, which converts
// MATH: error: {{.*}}roles{{.*}}tensor and threads with 8 warps from a multiple of 4
func.func @f(%a: tensor<256x256xf4E2M1FN>, %s: tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<256x256xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (!operand, !operand) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
