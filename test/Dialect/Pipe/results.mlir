// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// Results that an epilogue derives from its elements.

!y = vector<32xbf16>
// CHECK-LABEL: func.func @amax
func.func @amax(%v: !y, %amax: !pipe.global<f32>, %row: i32, %column: i32, %m: i32, %n: i32) {
  // CHECK: %[[FIRST:.*]] = pipe.row_amax %{{.*}}[%{{.*}}, %{{.*}}] rows %{{.*}} of %{{.*}} : vector<32xbf16>
  %first = pipe.row_amax %v[%row, %column] rows %m of %n : !y
  // CHECK: %[[BOTH:.*]] = pipe.row_amax %{{.*}}[%{{.*}}, %{{.*}}] of %{{.*}} and %[[FIRST]] : vector<32xbf16>
  %both = pipe.row_amax %v[%row, %column] of %n and %first : !y
  // CHECK: pipe.fold_amax %[[BOTH]], %{{.*}} : !pipe.global<f32>
  pipe.fold_amax %both, %amax : !pipe.global<f32>
  return
}

// CHECK-LABEL: func.func @transposed
func.func @transposed(%v: !y, %q: !pipe.global<512x256xf4E2M1FN>, %s: !pipe.global<512x16xf8E4M3FN, tiled_128x4>,
                      %amax: f32, %row: i32, %column: i32) {
  // CHECK: pipe.transpose %{{.*}} : vector<32xbf16>
  %t = pipe.transpose %v : !y
  %codes, %scales = pipe.quantize_blocks %t amax %amax {recipe = #fp4.recipe<transformer_engine>}
      : !y -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  // CHECK: pipe.store_column %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : vector<32xf4E2M1FN>, !pipe.global<512x256xf4E2M1FN>
  pipe.store_column %codes, %q[%row, %column] : vector<32xf4E2M1FN>, !pipe.global<512x256xf4E2M1FN>
  pipe.store_column %scales, %s[%row, %column] : vector<2xf8E4M3FN>, !pipe.global<512x16xf8E4M3FN, tiled_128x4>
  return
}
