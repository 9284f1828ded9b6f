// RUN: fp4-opt %s --fp4-lower-host-tensors --fp4-finalize-host-buffers | FileCheck %s

// Nothing is copied but what a result takes from an argument.

// CHECK-LABEL: func.func @views
// CHECK-SAME:    (%[[X:.*]]: memref<2x40x64xbf16>)
// CHECK:         %[[M:.*]] = pipe.view %[[X]] : memref<2x40x64xbf16> -> memref<80x64xbf16>
// CHECK:         %[[R:.*]] = pipe.view %[[M]] offset 1024 : memref<80x64xbf16> -> memref<16x64xbf16>
// CHECK:         gpu.memcpy %{{.*}}, %[[R]]
// CHECK-NOT:     gpu.memcpy
// CHECK:         return
func.func @views(%x: tensor<2x40x64xbf16>) -> tensor<16x64xbf16> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x40x64xbf16> into tensor<80x64xbf16>
  %r = tensor.extract_slice %m[8, 0] [16, 64] [1, 1] : tensor<80x64xbf16> to tensor<16x64xbf16>
  return %r : tensor<16x64xbf16>
}

// A view of what the function allocated is returned as it is, once.

// CHECK-LABEL: func.func @own
// CHECK:         %[[Y:.*]] = gpu.alloc () {fp4.result = 0 : i32} : memref<8x64xbf16>
// CHECK:         %[[V:.*]] = pipe.view %[[Y]] : memref<8x64xbf16> -> memref<2x4x64xbf16>
// CHECK:         %[[C:.*]] = gpu.alloc () {fp4.result = 1 : i32} : memref<8x64xbf16>
// CHECK:         gpu.memcpy %[[C]], %[[Y]]
// CHECK-NOT:     gpu.dealloc
// CHECK:         return %[[V]], %[[C]]
func.func @own() -> (tensor<2x4x64xbf16>, tensor<8x64xbf16>) {
  %b = gpu.alloc () : memref<8x64xbf16>
  %y = builtin.unrealized_conversion_cast %b : memref<8x64xbf16> to tensor<8x64xbf16>
  %v = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 64] : tensor<8x64xbf16> into tensor<2x4x64xbf16>
  return %v, %y : tensor<2x4x64xbf16>, tensor<8x64xbf16>
}

// A temporary lives as long as views of it do.

// CHECK-LABEL: func.func @temporary
// CHECK:         %[[T:.*]] = gpu.alloc () : memref<4x8x64xbf16>
// CHECK:         %[[V:.*]] = pipe.view %[[T]] offset 1024
// CHECK:         gpu.memcpy %{{.*}}, %[[V]]
// CHECK:         gpu.dealloc %[[T]] :
func.func @temporary() {
  %b = gpu.alloc () : memref<4x8x64xbf16>
  %y = builtin.unrealized_conversion_cast %b : memref<4x8x64xbf16> to tensor<4x8x64xbf16>
  %v = tensor.extract_slice %y[1, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<4x8x64xbf16> to tensor<8x64xbf16>
  %w = builtin.unrealized_conversion_cast %v : tensor<8x64xbf16> to memref<8x64xbf16>
  %d = gpu.alloc () : memref<8x64xbf16>
  gpu.memcpy %d, %w : memref<8x64xbf16>, memref<8x64xbf16>
  return
}

// Second tile of rows: 512 bytes for each of two tiles of blocks before it.

// CHECK-LABEL: func.func @tiles
// CHECK:         pipe.view %{{.*}} offset 1024 : memref<3x2x512xi8> -> memref<2x2x512xi8>
func.func @tiles(%s: tensor<300x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<172x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %t = tensor.extract_slice %s[128, 0] [172, 5] [1, 1]
      : tensor<300x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
        to tensor<172x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<172x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// Rows that are not known: counted, and checked where they are divided.

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    (%[[X:.*]]: memref<?x8x32xbf16>, %{{.*}})
// CHECK-DAG:     %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK-DAG:     %[[ALL:.*]] = arith.muli %[[ROWS]], %{{.*}}
// CHECK-DAG:     %[[M:.*]] = pipe.view %[[X]] rows %[[ALL]] : memref<?x8x32xbf16> -> memref<?x32xbf16>
// CHECK:         %[[THIRD:.*]] = arith.divui %{{.*}}, %{{.*}}
// CHECK:         %[[BACK:.*]] = arith.muli %[[THIRD]], %{{.*}}
// CHECK:         pipe.expect_size "rows of a tensor that is reshaped" %{{.*}} is %[[BACK]]
// CHECK:         pipe.view %[[M]] rows %[[THIRD]] : memref<?x32xbf16> -> memref<?x3x32xbf16>
func.func @dynamic(%x: tensor<?x8x32xbf16>, %n: tensor<f32>) -> tensor<?x3x32xbf16> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x8x32xbf16> into tensor<?x32xbf16>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %rows = tensor.dim %m, %c0 : tensor<?x32xbf16>
  %k = arith.divui %rows, %c3 : index
  %t = tensor.expand_shape %m [[0, 1], [2]] output_shape [%k, 3, 32] : tensor<?x32xbf16> into tensor<?x3x32xbf16>
  return %t : tensor<?x3x32xbf16>
}

// The bytes of buffers: little endian; two codes to a byte, rows of 48 padded to 32 bytes; scale
// (1, 0) 16 bytes behind (0, 0).

// CHECK-LABEL: func.func @constants
// CHECK-DAG:     pipe.device_constant dense<[-128, 63, 0, -64]> : tensor<4xi8> -> memref<2xbf16>
// CHECK-DAG:     pipe.device_constant dense<{{.*}}> : tensor<64xi8> -> memref<2x32xi8>
// CHECK-DAG:     pipe.device_constant dense<"0x38000000000000000000000000000000400000{{.*}}"> : tensor<512xi8> -> memref<1x1x512xi8>
func.func @constants() -> (tensor<2xbf16>, tensor<2x48xf4E2M1FN>, tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = arith.constant dense<[1.0, -2.0]> : tensor<2xbf16>
  %b = arith.constant dense<6.0> : tensor<2x48xf4E2M1FN>
  %c = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %a, %b, %c : tensor<2xbf16>, tensor<2x48xf4E2M1FN>, tensor<2x1xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
