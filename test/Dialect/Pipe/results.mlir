// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// Results that an epilogue derives from its elements.

!y = tensor<128x32xbf16, #pipe.distribution<lanes>>
!t = tensor<128x32xbf16, #pipe.distribution<columns>>
// CHECK-LABEL: func.func @amax
func.func @amax(%v: !y, %amax: !pipe.global<f32>, %row: i32, %column: i32, %m: i32, %n: i32) {
  // CHECK: %[[FIRST:.*]] = pipe.amax %{{.*}}[%{{.*}}, %{{.*}}] rows %{{.*}} of %{{.*}} : tensor<128x32xbf16, #pipe.distribution<lanes>>
  %first = pipe.amax %v[%row, %column] rows %m of %n : !y
  // CHECK: %[[BOTH:.*]] = pipe.amax %{{.*}}[%{{.*}}, %{{.*}}] of %{{.*}} and %[[FIRST]] : tensor<128x32xbf16, #pipe.distribution<lanes>>
  %both = pipe.amax %v[%row, %column] of %n and %first : !y
  // CHECK: pipe.fold_amax %[[BOTH]], %{{.*}} : !pipe.global<f32>
  pipe.fold_amax %both, %amax : !pipe.global<f32>
  return
}

// CHECK-LABEL: func.func @transposed
func.func @transposed(%v: !y, %q: !pipe.global<512x256xf4E2M1FN>, %s: !pipe.global<512x16xf8E4M3FN, tiled_128x4>,
                      %amax: f32, %row: i32, %column: i32) {
  // CHECK: pipe.transpose %{{.*}} : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xbf16, #pipe.distribution<columns>>
  %t = pipe.transpose %v : !y -> !t
  %codes, %scales = pipe.quantize_blocks %t amax %amax {recipe = #fp4.recipe<transformer_engine>}
      : !t -> tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, tensor<8x32xf8E4M3FN, #pipe.distribution<columns>>
  // CHECK: pipe.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  pipe.store %codes, %q[%row, %column] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  pipe.store %scales, %s[%row, %column] transposed : tensor<8x32xf8E4M3FN, #pipe.distribution<columns>>, !pipe.global<512x16xf8E4M3FN, tiled_128x4>
  return
}
