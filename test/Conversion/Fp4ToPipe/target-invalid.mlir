// RUN: not fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels -convert-fp4-to-pipe 2>&1 | FileCheck %s
// RUN: not fp4-opt %s -fp4-set-target=target=sm_17 -fp4-plan-kernels -convert-fp4-to-pipe 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -o /dev/null

!operand = !fp4.scaled<nvfp4, tensor<128x512xf4E2M1FN>,
                       tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK: target-invalid.mlir:[[@LINE+7]]:{{.*}} error: 'fp4.matmul' op target 'sm_120a' has no GEMMs of elements of 4 bits with scales, with 'stream_k'
// CHECK: note: {{.*}}sm_100a
// UNKNOWN: error: {{.*}}sm_17
// UNKNOWN: note: {{.*}}sm_100a
func.func @f(%a: tensor<128x512xf4E2M1FN>, %s: tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<128x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<stream_k = [2, 128, 128]>}
      : (!operand, !operand) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// Split-K with warps that multiply, and with swapped operands for small M; one range is no split.
// RUN: sed 's/stream_k = .*\]>}/split_k = 2>}/' %s > %t.split.mlir
// RUN: sed s/128x512/64x512/g %t.split.mlir | sed s/128x32/64x32/g | sed s/128x128xf32/64x64xf32/g > %t.mlir
// RUN: fp4-opt %t.split.mlir -fp4-set-target=target=sm_120a -fp4-plan-kernels -o /dev/null
// RUN: not fp4-opt %t.split.mlir -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: fp4-opt %t.mlir -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/split_k = 2/split_k = 1/' %t.split.mlir | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/split_k = 2/split_k = 1/' %t.split.mlir | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// MANY: error: 'fp4.matmul' op {{.*}}sm_90a{{.*}}tcgen05
