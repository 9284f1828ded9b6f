// A kernel with PDL, of which an SM holds one CTA by its plan, says so: CTAs of the next
// launch would take second places. With several CTAs by its plan, or without PDL, it does not. The
// launch has the place that the plan says, in the same word.
// RUN: sed 's/PLAN/ctas_per_sm=1, pdl = before_wait/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=ALONE -DPLACE=before_wait
// RUN: sed 's/PLAN/ctas_per_sm=1, pdl = at_end/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=ALONE -DPLACE=at_end
// RUN: sed 's/PLAN/ctas_per_sm=1, pdl = behind_loads/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=ALONE -DPLACE=behind_loads
// RUN: sed 's/PLAN/ctas_per_sm=2, pdl = before_wait/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=TOGETHER
// RUN: sed 's/PLAN/ctas_per_sm=1, pdl = none/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=TOGETHER
// ALONE: gpu.launch_func @product_matmul_0::@kernel {{.*}}fp4.pdl = #fp4.launch_dependents<[[PLACE]]>
// ALONE: gpu.func @kernel{{.*}}pipe.alone
// TOGETHER-NOT: pipe.alone
func.func @product(%x: tensor<7x512xbf16>, %p: tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (tensor<7x512xbf16>, tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32>
  return %y : tensor<7x256xf32>
}
