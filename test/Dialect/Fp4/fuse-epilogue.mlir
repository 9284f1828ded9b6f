// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse -canonicalize | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse -canonicalize -mlir-print-op-generic \
// RUN:   | fp4-opt -split-input-file | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// Elementwise operations on a GEMM become its epilogue region; with what it reads as columns and rows.

!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !s>
// CHECK-LABEL: func.func @bias
// CHECK: %[[ROW:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [1, 128]
// CHECK: %[[Y:.*]] = fp4.matmul {{.*}} epilogue(%[[ROW]], %{{.*}}) {
// CHECK-NEXT: ^bb0(%[[ELEMENT:.*]]: f32, %[[B:.*]]: f32, %[[R:.*]]: bf16):
// CHECK-NEXT:   %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[ELEMENT]] : f32 to bf16
// CHECK-NEXT:   %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : bf16 to f32
// CHECK-NEXT:   %[[SUM:.*]] = arith.addf %[[WIDE]], %[[B]] : f32
// CHECK-NEXT:   %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[HALF]] : f32
// CHECK-NEXT:   %[[NARROW:.*]] = arith.truncf %[[SCALED]] : f32 to bf16
// CHECK-NEXT:   %[[LAST:.*]] = arith.addf %[[NARROW]], %[[R]] : bf16
// CHECK-NEXT:   fp4.yield %[[LAST]] : bf16
// CHECK-NEXT: }
// CHECK-NOT: linalg.generic
func.func @bias(%a: tensor<128x256xf4E2M1FN>, %s: !s, %bias: tensor<128xf32>, %residual: tensor<128x128xbf16>) -> tensor<128x128xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  // REMARKS: remark: [Passed] matmul+elementwise | Category:fp4-fuse | {{.*}}the matmul's epilogue computes what follows it
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xbf16>
  %wide = arith.extf %y : tensor<128x128xbf16> to tensor<128x128xf32>
  %e = tensor.empty() : tensor<128x128xf32>
  %b = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%e : tensor<128x128xf32>) dimensions = [0]
  %sum = linalg.add ins(%wide, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %half = arith.constant dense<0.5> : tensor<128x128xf32>
  %scaled = arith.mulf %sum, %half : tensor<128x128xf32>
  %narrow = arith.truncf %scaled : tensor<128x128xf32> to tensor<128x128xbf16>
  %z = arith.addf %narrow, %residual : tensor<128x128xbf16>
  return %z : tensor<128x128xbf16>
}

// -----

!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !s>
// CHECK-LABEL: func.func @needed
// CHECK: fp4.matmul
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @needed(%a: tensor<128x256xf4E2M1FN>, %s: !s) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  // REMARKS: remark: [Missed] matmul+elementwise | Category:fp4-fuse | Reason="'func.return' reads the matmul too"
  %z = arith.negf %y : tensor<128x128xf32>
  return %y, %z : tensor<128x128xf32>, tensor<128x128xf32>
}

// -----

!s = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
#in = affine_map<(i, j) -> (j, i)>
#out = affine_map<(i, j) -> (i, j)>
!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !s>
// CHECK-LABEL: func.func @transposed
// CHECK: fp4.matmul
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @transposed(%a: tensor<128x256xf4E2M1FN>, %s: !s) -> tensor<128x128xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<128x128xf32>
  %e = tensor.empty() : tensor<128x128xf32>
  // REMARKS: remark: [Missed] matmul+elementwise | Category:fp4-fuse | Reason="the operation reads the matmul in another order"
  %z = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  } -> tensor<128x128xf32>
  return %z : tensor<128x128xf32>
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                       tensor<1024x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!lhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                   tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func.func @groups
// CHECK: fp4.matmul {{.*}} epilogue
// CHECK: groups = [100, 28]
// CHECK: fp4.matmul {{.*}} offsets
// CHECK-NOT: epilogue
// CHECK: return
func.func @groups(%a: tensor<128x256xf4E2M1FN>, %s: tensor<1024x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %room: tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %o: tensor<3xi64>) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled {work = #fp4.work<groups = [100, 28]>}
      : (!operand, !operand) -> tensor<128x64xf32>
  // REMARKS: remark: [Passed] matmul+elementwise
  %n = arith.negf %y : tensor<128x64xf32>
  %a_scaled2 = fp4.scaled %a, %room : !lhs
  %z = fp4.matmul %a_scaled2, %a_scaled offsets %o
      : (!lhs, !operand, tensor<3xi64>) -> tensor<128x64xf32>
  // REMARKS: remark: [Missed] matmul+elementwise | Category:fp4-fuse | Reason="rows of the matmul that are of no group are zero, and those of its result may be not"
  %m = arith.negf %z : tensor<128x64xf32>
  return %n, %m : tensor<128x64xf32>, tensor<128x64xf32>
}
