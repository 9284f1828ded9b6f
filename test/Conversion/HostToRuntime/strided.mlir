// RUN: fp4-opt %s --split-input-file --fp4-compile=to=tiles | FileCheck %s
// RUN: fp4-opt %s --split-input-file --fp4-compile=to=host | FileCheck %s --check-prefix=ENTRY

// Operations that read strides get the argument as it is: the buffer has a layout, the kernel the strides in
// bytes, and no copy is made.

// CHECK-LABEL: gpu.module @quantizer_quantize_0
// CHECK:         gpu.func @kernel({{.*}}!pipe.global<?x?xbf16>, %{{.*}}: i64{{.*}}) kernel
// CHECK-LABEL: func.func @quantizer
// CHECK-SAME:    (%[[X:.*]]: memref<?x64xbf16, strided<[?, 1]>>
// CHECK-NOT:     gpu.memcpy
// CHECK:         pipe.view %[[X]] : memref<?x64xbf16, strided<[?, 1]>> -> !pipe.global<?x?xbf16>
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @quantizer(%x: tensor<?x64xbf16> {fp4.strided}) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>
}

// -----

// The casts of later arguments come where those of a strided one were.

// CHECK-LABEL: func.func @later
// CHECK-SAME:    (%[[X:.*]]: memref<?x64xbf16, strided<[?, 1]>>{{.*}}, %[[AMAX:.*]]: memref<f32>
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @later(%x: tensor<?x64xbf16> {fp4.strided}, %amax: tensor<f32>)
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// A batch has two strides.

// CHECK-LABEL: gpu.module @batch_amax_0
// CHECK:         gpu.func @kernel({{.*}}!pipe.global<?x?xbf16>, %{{.*}}: i64, %{{.*}}: i64{{.*}}) kernel
// CHECK-LABEL: func.func @batch
// CHECK-SAME:    (%[[X:.*]]: memref<?x8x64xbf16, strided<[?, ?, 1]>>
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @batch(%x: tensor<?x8x64xbf16> {fp4.strided}) -> tensor<f32> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x8x64xbf16> into tensor<?x64xbf16>
  %a = fp4.amax %m : tensor<?x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

// A tensor map has the stride of its buffer.

!s = tensor<?x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<40x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<?x208xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<40x208xf4E2M1FN>, !t>
// CHECK-LABEL: func.func @product
// CHECK-SAME:    (%[[A:.*]]: memref<?x104xi8, strided<[?, 1]>>{{.*}}, %{{.*}}, %[[B:.*]]: memref<40x104xi8, strided<[?, 1]>>
// CHECK-NOT:     gpu.memcpy
// CHECK-DAG:     pipe.make_tensor_map %[[A]] columns 208 : memref<?x104xi8, strided<[?, 1]>> ->
// CHECK-DAG:     pipe.make_tensor_map %[[B]] columns 208 : memref<40x104xi8, strided<[?, 1]>> ->
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
// ENTRY-LABEL: llvm.func @fp4_entry_product
// ENTRY:         %[[STRIDE:.*]] = llvm.load
// ENTRY:         %[[BYTES:.*]] = llvm.mul %{{.*}}, %{{.*}} : i64
// ENTRY:         %[[MORE:.*]] = llvm.add %[[BYTES]], %{{.*}} : i64
// ENTRY:         %[[UP:.*]] = llvm.and %[[MORE]], %{{.*}} : i64
// ENTRY:         llvm.call @fp4rt_expect_size(%{{.*}}, %[[BYTES]], %{{.*}}, %{{.*}}, %{{.*}})
// ENTRY:         llvm.call @fp4rt_expect_size(%{{.*}}, %[[BYTES]], %[[UP]], %[[UP]], %{{.*}})
func.func @product(%a: tensor<?x208xf4E2M1FN> {fp4.strided}, %s: !s, %b: tensor<40x208xf4E2M1FN> {fp4.strided}, %t: !t)
    -> tensor<?x40xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x40xbf16>
  return %y : tensor<?x40xbf16>
}

// -----

// The right sides of a dual GEMM are strided.

!e = tensor<64x128xf4E2M1FN>
!u = tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !u>
// CHECK-LABEL: func.func @dual
// CHECK-SAME:    %[[B:[^ ]*]]: memref<64x64xi8, strided<[?, 1]>>{{.*}}, %[[C:[^ ]*]]: memref<64x64xi8, strided<[?, 1]>>
// CHECK-NOT:     gpu.memcpy
// CHECK-DAG:     pipe.make_tensor_map %[[B]]
// CHECK-DAG:     pipe.make_tensor_map %[[C]]
// CHECK:         return
func.func @dual(%a: !e, %s: !u, %b: !e {fp4.strided}, %c: !e {fp4.strided}) -> tensor<64x64xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %s : !operand
  %c_scaled = fp4.scaled %c, %s : !operand
  %y = fp4.matmul %a_scaled, %b_scaled with %c_scaled epilogue() {
  ^bb0(%x: f32, %z: f32):
    %p = arith.mulf %x, %z : f32
    %r = arith.truncf %p : f32 to bf16
    fp4.yield %r : bf16
  } : (!operand, !operand, !operand) -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}

// -----

// Another operation reads a copy; the amax beside it does not.

// CHECK-LABEL: func.func @copied
// CHECK-SAME:    (%[[X:.*]]: memref<?x32xbf16, strided<[?, 1]>>
// CHECK:         %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK:         %[[COPY:.*]] = gpu.alloc (%[[ROWS]]) : memref<?x32xbf16>
// CHECK:         gpu.memcpy %[[COPY]], %[[X]]
// CHECK-NOT:     gpu.memcpy
// CHECK-DAG:     pipe.view %[[COPY]] : memref<?x32xbf16>
// CHECK-DAG:     pipe.view %[[X]] : memref<?x32xbf16, strided<[?, 1]>>
// CHECK:         return
func.func @copied(%x: tensor<?x32xbf16> {fp4.strided}) -> (tensor<?x32xbf16>, tensor<f32>) {
  %h = fp4.hadamard %x {size = 16 : i64, dimension = 1 : i64} : tensor<?x32xbf16> -> tensor<?x32xbf16>
  %a = fp4.amax %x : tensor<?x32xbf16> -> tensor<f32>
  return %h, %a : tensor<?x32xbf16>, tensor<f32>
}

// -----

// The matrices of a batch are copied one by one.

// CHECK-LABEL: func.func @copied_batch
// CHECK-SAME:    (%[[X:.*]]: memref<2x4x32xbf16, strided<[?, ?, 1]>>
// CHECK:         %[[COPY:.*]] = gpu.alloc () : memref<2x4x32xbf16>
// CHECK-DAG:     %[[TO:.*]] = memref.subview %[[COPY]][1, 0, 0] [1, 4, 32]
// CHECK-DAG:     %[[FROM:.*]] = memref.subview %[[X]][1, 0, 0] [1, 4, 32]
// CHECK:         gpu.memcpy %[[TO]], %[[FROM]]
func.func @copied_batch(%x: tensor<2x4x32xbf16> {fp4.strided}) -> tensor<8x32xbf16> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x32xbf16> into tensor<8x32xbf16>
  %h = fp4.hadamard %m {size = 16 : i64, dimension = 1 : i64} : tensor<8x32xbf16> -> tensor<8x32xbf16>
  return %h : tensor<8x32xbf16>
}
