// RUN: not fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels -convert-fp4-to-pipe 2>&1 | FileCheck %s
// RUN: not fp4-opt %s -fp4-set-target=target=sm_17 -fp4-plan-kernels -convert-fp4-to-pipe 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -o /dev/null

// CHECK: target-invalid.mlir:[[@LINE+6]]:{{.*}} error: 'fp4.blockscaled_matmul' op {{.*}}sm_120a{{.*}}tcgen05
// CHECK: note: {{.*}}sm_100a
// UNKNOWN: error: {{.*}}sm_17
// UNKNOWN: note: {{.*}}sm_100a
func.func @f(%a: tensor<128x512xf4E2M1FN>, %s: tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<128x128xf32> {
  %y = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<nvfp4>, split_k = 2 : i64}
      : (tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
