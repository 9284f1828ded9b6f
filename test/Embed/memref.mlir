// Buffers of the host around fp4: tensors are made of them and written to them as always.

// RUN: fp4-opt %s --fp4-outline-islands | FileCheck %s
// RUN: fp4-opt %s --fp4-outline-islands --one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s --check-prefix=BUFFERS

// The bytes of packed elements are a memref of the host, and a cast says what they are.
// CHECK-LABEL: func.func @update(
// CHECK-SAME:      %[[Q:.*]]: memref<64x16xi8>
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         %[[T:.*]] = bufferization.to_tensor %[[Q]] restrict
// CHECK:         %[[IN:.*]] = bufferization.to_buffer %[[T]] read_only
// CHECK:         call @update_fp4_0(%[[IN]],
// CHECK:         bufferization.materialize_in_destination
// BUFFERS-LABEL: func.func @update(
// BUFFERS-SAME:      %[[Q:.*]]: memref<64x16xi8>, %[[S:.*]]: memref<64x2xf8E4M3FN>, %[[Y:.*]]: memref<64x32xf32>
// BUFFERS:         %[[OUT:.*]] = memref.alloc() : memref<64x32xf32>
// BUFFERS-NEXT:    call @update_fp4_0(%[[Q]], %[[S]], %[[OUT]])
// BUFFERS-NEXT:    memref.copy %[[OUT]], %[[Y]]
func.func @update(%q: memref<64x16xi8>, %s: memref<64x2xf8E4M3FN>, %y: memref<64x32xf32>) {
  %bytes = bufferization.to_tensor %q restrict : memref<64x16xi8> to tensor<64x16xi8>
  %data = builtin.unrealized_conversion_cast %bytes : tensor<64x16xi8> to tensor<64x32xf4E2M1FN>
  %scales = bufferization.to_tensor %s restrict : memref<64x2xf8E4M3FN> to tensor<64x2xf8E4M3FN>
  %one = arith.constant dense<2688.0> : tensor<f32>
  %r = fp4.dequantize %data scaled %scales amax %one {format = #fp4.format<nvfp4>}
      : (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<f32>) -> tensor<64x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %y
      : (tensor<64x32xf32>, memref<64x32xf32>) -> ()
  return
}

// An operation with side effects that needs an island stays between that island and what follows:
// the second island does not join the first.
// CHECK-LABEL: func.func @order(
// CHECK:         call @order_fp4_0
// CHECK:         memref.store
// CHECK:         call @order_fp4_1
func.func @order(%x: memref<64x32xf32>, %log: memref<f32>) -> f32 {
  %t = bufferization.to_tensor %x restrict : memref<64x32xf32> to tensor<64x32xf32>
  %a = fp4.amax %t : tensor<64x32xf32> -> tensor<f32>
  %e = tensor.extract %a[] : tensor<f32>
  memref.store %e, %log[] : memref<f32>
  %b = fp4.matmul_alpha %a, %a : tensor<f32>, tensor<f32> -> tensor<f32>
  %f = tensor.extract %b[] : tensor<f32>
  return %f : f32
}
