// RUN: not %fp4-opt-once %s --compile-to=fused --target=sm_99 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %fp4-opt-once %S/../Runner/Gemm/tcgen05/k96.mlir --compile-to=fused --target=sm_90a 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not %fp4-opt-once %s --compile-to=everything 2>&1 | FileCheck %s --check-prefix=PHASE

// TARGET: phases-invalid.mlir:{{[0-9:]+}} error: unknown target 'sm_99'
// TARGET: note: known targets: sm_100a

// WGMMA: k96.mlir:{{.*}}error: 'fp4.matmul' op target 'sm_90a' has no GEMMs of elements of 4 bits in instructions of K = 96
// WGMMA: note: targets that have them: sm_103a, sm_107a; or leave 'arithmetic' out, and instructions have K = 64

// RUN: not %fp4-opt-once %s --pass-pipeline='builtin.module(fp4-compile{to=foo})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPTION
// OPTION: unknown phase 'foo', known: fused, planned, tiles, roles, pipelined, scheduled, nvvm, ptx, cubin, host
// RUN: %fp4-opt-once %s --pass-pipeline='builtin.module(fp4-compile{to=fused})' \
// RUN:   | FileCheck %s --check-prefix=TWIN
// TWIN: fp4.matmul

!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                       tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// PHASE: error: unknown phase 'everything'
// PHASE: note: known phases: fused, planned, tiles, roles, pipelined, scheduled, nvvm, ptx, cubin, host
func.func @gemm(%a: tensor<128x256xf4E2M1FN>,
                %s: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<128x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
