// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_120a -fp4-plan-kernels -split-input-file -verify-diagnostics
// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -split-input-file -verify-diagnostics
// Kernels number what they read and write with 32 bits. The first operation of a case has a kernel.

!ok = tensor<268435452x64xf4E2M1FN>
!bad = tensor<2147484032x64xf4E2M1FN>
!b = tensor<8x64xf4E2M1FN>
!sok = tensor<268435452x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sbad = tensor<2147484032x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !ok, !sok>
!rhs = !fp4.scaled<nvfp4, !b, !sb>
!lhs2 = !fp4.scaled<nvfp4, !bad, !sbad>
func.func @elements(%ok: !ok, %sok: !sok, %bad: !bad, %sbad: !sbad, %b: !b, %sb: !sb) {
  %ok_scaled = fp4.scaled %ok, %sok : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %ok_scaled, %b_scaled : (!lhs, !rhs) -> tensor<268435452x8xf32>
  %bad_scaled = fp4.scaled %bad, %sbad : !lhs2
  // expected-error @+2 {{has kernels for tensors of at most 17179869176 elements, but got 'tensor<2147484032x64xf4E2M1FN>'}}
  // expected-note @+1 {{split the tensor along its rows}}
  %1 = fp4.matmul %bad_scaled, %b_scaled : (!lhs2, !rhs) -> tensor<2147484032x8xf32>
  return
}

// -----

!ok = tensor<2x2147418080xf4E2M1FN>
!bad = tensor<2x2147418112xf4E2M1FN>
!sok = tensor<2x134213630xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sbad = tensor<2x134213632xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !ok, !sok>
!operand2 = !fp4.scaled<nvfp4, !bad, !sbad>
func.func @columns(%ok: !ok, %sok: !sok, %bad: !bad, %sbad: !sbad) {
  %ok_scaled = fp4.scaled %ok, %sok : !operand
  %0 = fp4.matmul %ok_scaled, %ok_scaled : (!operand, !operand) -> tensor<2x2xf32>
  %bad_scaled = fp4.scaled %bad, %sbad : !operand2
  // expected-error @+2 {{has kernels for at most 2147418111 rows and columns, but got 'tensor<2x2147418112xf4E2M1FN>'}}
  // expected-note @+1 {{split the tensor along that dimension}}
  %1 = fp4.matmul %bad_scaled, %bad_scaled : (!operand2, !operand2) -> tensor<2x2xf32>
  return
}

// -----

// The number of elements is more than 64 bits can count.
func.func @overflow(%ok: tensor<64x64xf32>, %bad: tensor<4294967296x4294967296xf32>) {
  %0 = fp4.amax %ok : tensor<64x64xf32> -> tensor<f32>
  // expected-error @+2 {{has kernels for tensors of at most 17179869176 elements, but got 'tensor<4294967296x4294967296xf32>'}}
  // expected-note @+1 {{split the tensor along its rows}}
  %1 = fp4.amax %bad : tensor<4294967296x4294967296xf32> -> tensor<f32>
  return
}
