// RUN: fp4-opt %s --split-input-file --fp4-compile=to=tiles | FileCheck %s
// RUN: fp4-opt %s --split-input-file --fp4-compile=to=host | FileCheck %s --check-prefix=HOST

// The rows of a GEMM are where its caller wants them: the pitch is asked for, the kernel gets it as a number,
// and no copy is made.

// CHECK-LABEL: func.func @product
// CHECK-SAME:    -> (memref<?x20xf32, strided<[?, 1]>>
// CHECK:         %[[BYTES:.*]] = arith.constant 80 : index
// CHECK:         %[[AT:.*]] = pipe.result_pitch 0 of %[[BYTES]]
// CHECK:         %[[WIDE:.*]] = gpu.alloc ({{.*}}) {fp4.result = 0 : i32} : memref<?x?xf32>
// CHECK:         %[[ROWS:.*]] = memref.subview %[[WIDE]][0, 0] [%{{.*}}, 20] [1, 1]
// CHECK-NOT:     gpu.memcpy
// CHECK:         return %[[ROWS]] : memref<?x20xf32, strided<[?, 1]>>
// CHECK-LABEL: gpu.module @product_matmul_0
// CHECK:         gpu.func @kernel({{.*}}, %[[Y:[a-z0-9]+]]: !pipe.global<?x?xf32>, %[[PITCH:[a-z0-9]+]]: i64, %{{[a-z0-9]+}}: i32)
// CHECK:         pipe.view %[[Y]] pitch %[[PITCH]] : !pipe.global<?x?xf32> -> !pipe.global<?x20xf32>
// HOST-LABEL:  llvm.func {{.*}}@fp4_inner_product
// HOST:          llvm.call @fp4rt_result_pitch(%{{.*}}, %{{.*}}) : (i32, i64) -> i64
// HOST:          llvm.call @fp4rt_alloc_result(
!a = tensor<?x64xf4E2M1FN>
!s = tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<20x64xf4E2M1FN>
!t = tensor<20x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !s>
!rhs = !fp4.scaled<nvfp4, !b, !t>
func.func @product(%a: !a, %s: !s, %b: !b, %t: !t) -> (tensor<?x20xf32> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

// Rows that a kernel wrote without gaps are copied.

// CHECK-LABEL: func.func @codes
// CHECK:         %[[WIDE:.*]] = gpu.alloc ({{.*}}) {fp4.result = 0 : i32} : memref<?x?xi8>
// CHECK:         %[[ROWS:.*]] = memref.subview %[[WIDE]]
// CHECK:         gpu.memcpy  %[[ROWS]], %{{.*}} : memref<?x32xi8, strided<[?, 1]>>, memref<?x32xi8>
// CHECK:         return %[[ROWS]]
func.func @codes(%x: tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN> {fp4.strided}, tensor<?x2xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>
}
