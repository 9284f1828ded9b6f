// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// Tensors in the registers of threads: the encoding says which thread has an element.

!fragment = tensor<64x32xf32, #pipe.distribution<wgmma>>
!narrow = tensor<64x32xbf16, #pipe.distribution<wgmma>>
// CHECK-LABEL: func.func @fragment
// CHECK: %[[V:.*]] = pipe.read %{{.*}}[32] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: %[[N:.*]] = arith.truncf %[[V]]
// CHECK: pipe.store %[[N]], {{.*}} transposed : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<512x512xbf16>
func.func @fragment(%acc: !pipe.fragment<64x128xf32, wgmma>, %y: !pipe.global<512x512xbf16>, %i: i32) {
  %v = pipe.read %acc[32] : !pipe.fragment<64x128xf32, wgmma> -> !fragment
  %n = arith.truncf %v : !fragment to !narrow
  pipe.store %n, %y[%i, %i] transposed : !narrow, !pipe.global<512x512xbf16>
  return
}

// CHECK-LABEL: func.func @warps
// CHECK: pipe.read %{{.*}}[8] row 16 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x8xf32, #pipe.distribution<mma_sync>>
func.func @warps(%acc: !pipe.fragment<32x64xf32, mma_sync>) -> tensor<16x8xf32, #pipe.distribution<mma_sync>> {
  %v = pipe.read %acc[8] row 16 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x8xf32, #pipe.distribution<mma_sync>>
  return %v : tensor<16x8xf32, #pipe.distribution<mma_sync>>
}

// CHECK-LABEL: func.func @lanes
// CHECK: %[[V:.*]] = pipe.read %{{.*}}[%{{.*}}] : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
// CHECK: pipe.transpose %[[V]] : tensor<128x32xf32, #pipe.distribution<lanes>> -> tensor<128x32xf32, #pipe.distribution<columns>>
func.func @lanes(%acc: !pipe.tmem<128x64xf32>, %c: i32) {
  %v = pipe.read %acc[%c] : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %t = pipe.transpose %v : tensor<128x32xf32, #pipe.distribution<lanes>> -> tensor<128x32xf32, #pipe.distribution<columns>>
  return
}

// CHECK-LABEL: func.func @vectors
// CHECK: pipe.elements %{{.*}} : tensor<64x32xf32, #pipe.distribution<wgmma>> -> vector<16xf32>
// CHECK: pipe.elements %{{.*}} : vector<8xf32> -> tensor<32x32xf32, #pipe.distribution<columns>>
func.func @vectors(%t: !fragment, %w: vector<8xf32>) -> (vector<16xf32>, tensor<32x32xf32, #pipe.distribution<columns>>) {
  %v = pipe.elements %t : !fragment -> vector<16xf32>
  %c = pipe.elements %w : vector<8xf32> -> tensor<32x32xf32, #pipe.distribution<columns>>
  return %v, %c : vector<16xf32>, tensor<32x32xf32, #pipe.distribution<columns>>
}
