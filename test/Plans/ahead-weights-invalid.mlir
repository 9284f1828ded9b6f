// Plans that a GEMM of pre-dequantized weights cannot have, each named with what it is.
// RUN: sed 's/PLAN/route = <a = pre>, tile=[256,128,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,256,256]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,200,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,188,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,120,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: sed 's/PLAN/route = <a = pre>, ctas_per_sm = 2/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: sed 's/PLAN/route = <a = pre>, cluster=[2,1]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: sed 's/PLAN/route = <a = pre>/;s/TYPE/bf16/;s/BYTES/4352/;s/TILES/8/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=FLOATS
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,192,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,128,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/PLAN/route = <a = pre>, tile=[128,256,128]/;s/TYPE/f8E4M3FN/;s/BYTES/8704/;s/TILES/4/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null

// TILE: error: {{.*}}'tile' is, with pre-dequantized weights, [128, n, 128] with n a multiple of 8 from 128 to 192, or [128, 256, 128], but got
// RESIDENT: error: {{.*}}'ctas_per_sm' is 1, but got 2
// CLUSTER: error: {{.*}}must have a plan without 'cluster', which route <core = wgmma, a = pre, {{.*}}> does not read
// FLOATS: error: {{.*}}route <a = pre> is none of target 'sm_90a' for GEMMs of bf16 and f16 without scales and prepacked weights
func.func @f(%x: tensor<256x512xTYPE>, %p: tensor<4xTILESxBYTESxi8, #fp4.weight_layout<wgmma>>) -> tensor<256x512xf32> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (tensor<256x512xTYPE>, tensor<4xTILESxBYTESxi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}
