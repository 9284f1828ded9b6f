// A plan bounds stages and accumulators, and is told where fewer have room or use.
// RUN: sed 's/ASKED/stages = 40, accumulators = 4/; s/COLUMNS/256/' %s | %fp4-opt-once -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline --remarks-filter=pipe-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/ASKED/stages = 40/; s/COLUMNS/64/' %s | %fp4-opt-once -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline --remarks-filter=pipe-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: sed 's/ASKED/stages = 3, accumulators = 2/; s/COLUMNS/128/' %s | %fp4-opt-once -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline --remarks-filter=pipe-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWIN --allow-empty

// CHECK: remark: {{\[}}Missed] stages | Category:pipe-pipeline | Reason="5 of 40 stages that are asked for: its memory has no room for more"
// CHECK: remark: {{\[}}Missed] accumulators | Category:pipe-pipeline | Reason="1 of 4 accumulators that are asked for: its memory has no room for more"
// LIMIT: remark: {{\[}}Missed] stages | Category:pipe-pipeline | Reason="8 of 40 stages that are asked for: a channel like this one has at most 8"
// TWIN-NOT: remark:

!s = tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>, !s>
func.func @f(%a: tensor<1024x1024xf4E2M1FN>, %s: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, COLUMNS, 256], ASKED>}
      : (!operand, !operand) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
