// RUN: fp4-opt %s --compile-to=tiles | FileCheck %s

// An fp4 argument whose dense pitch (24 bytes) is not a TMA pitch is repacked on entry, and a result
// is a dense buffer of its own; the padded temporary is freed after its last use.

// CHECK-LABEL: func.func @repack
// CHECK-SAME:    (%[[Q:.*]]: memref<?x24xi8>) -> memref<?x24xi8>
func.func @repack(%q: tensor<?x48xf4E2M1FN>) -> tensor<?x48xf4E2M1FN> {
  // CHECK:      %[[ROWS:.*]] = memref.dim %[[Q]]
  // CHECK-NEXT: %[[PADDED:.*]] = gpu.alloc (%[[ROWS]]) : memref<?x32xi8>
  // CHECK-NEXT: %[[VIEW:.*]] = memref.subview %[[PADDED]][0, 0] [%[[ROWS]], 24] [1, 1]
  // CHECK-NEXT: gpu.memcpy %[[VIEW]], %[[Q]]
  // CHECK-NEXT: %[[RESULT:.*]] = gpu.alloc (%[[ROWS]]) {fp4.result = 0 : i32} : memref<?x24xi8>
  // CHECK-NEXT: gpu.memcpy %[[RESULT]], %[[VIEW]]
  // CHECK-NEXT: gpu.dealloc %[[PADDED]]
  // CHECK-NEXT: return %[[RESULT]]
  return %q : tensor<?x48xf4E2M1FN>
}

// A dense pitch of 32 bytes needs no repacking. Results never alias arguments or each other.

// CHECK-LABEL: func.func @aligned
// CHECK-SAME:    (%[[Q:.*]]: memref<4x32xi8>, %{{.*}}: memref<f32>)
func.func @aligned(%q: tensor<4x64xf4E2M1FN>, %unused: tensor<f32>)
    -> (tensor<4x64xf4E2M1FN>, tensor<4x64xf4E2M1FN>) {
  // CHECK-NEXT: %[[A:.*]] = gpu.alloc () {fp4.result = 0 : i32} : memref<4x32xi8>
  // CHECK-NEXT: gpu.memcpy %[[A]], %[[Q]]
  // CHECK-NEXT: %[[B:.*]] = gpu.alloc () {fp4.result = 1 : i32} : memref<4x32xi8>
  // CHECK-NEXT: gpu.memcpy %[[B]], %[[Q]]
  // CHECK-NEXT: return %[[A]], %[[B]]
  return %q, %q : tensor<4x64xf4E2M1FN>, tensor<4x64xf4E2M1FN>
}

// Counters stay for the next call.

// CHECK-LABEL: func.func @counters
// CHECK:         gpu.alloc () {fp4.counters}
// CHECK-NOT:     gpu.dealloc
// CHECK:         return
func.func @counters(%x: tensor<64x32xbf16>) -> tensor<f32> {
  %0 = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  return %0 : tensor<f32>
}

// Reports stay for the next call too.

// CHECK-LABEL: func.func @report
// CHECK:         gpu.alloc () {fp4.group_report = "offsets"}
// CHECK-NOT:     gpu.dealloc
// CHECK:         return
func.func @report() {
  %report = gpu.alloc () {fp4.group_report = "offsets"} : memref<8xi64>
  %zero = arith.constant 0 : i64
  gpu.memset %report, %zero : memref<8xi64>, i64
  return
}

// Scales in the layout of the tensor core are blocks of 512 bytes.

// CHECK-LABEL: func.func @tiled
// CHECK-SAME:    (%{{.*}}: memref<2x3x512xi8>)
func.func @tiled(%s: tensor<130x9xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  return
}
