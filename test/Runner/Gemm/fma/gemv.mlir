// Threads multiply a small M with a matrix, or with the matrices of a batch.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=batched --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=ragged --dist=adversarial --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=mx --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=inputs --check=strict | FileCheck %s
// CHECK: passed
// CHECK: hazards {{.*}}none

#fma = #fp4.matmul_arithmetic<fma>
// Two rows for each of three matrices, each of which has rows that its last block of 128 lacks.
!s3 = tensor<384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<6x64xf4E2M1FN>, !s3>
!rhs = !fp4.scaled<nvfp4, tensor<120x64xf4E2M1FN>, !s3>
func.func @batched(%a: tensor<6x64xf4E2M1FN>, %sa: !s3, %b: tensor<120x64xf4E2M1FN>, %sb: !s3, %alpha: tensor<3xf32>) -> tensor<6x40xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<groups = [2, 2, 2]>, arithmetic = #fma, epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs, tensor<3xf32>) -> tensor<6x40xbf16>
  return %y : tensor<6x40xbf16>
}

// K ends within a chunk and within an access of 16 bytes.
!s8 = tensor<8x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t33 = tensor<33x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<nvfp4, tensor<8x272xf4E2M1FN>, !s8>
!rhs2 = !fp4.scaled<nvfp4, tensor<33x272xf4E2M1FN>, !t33>
func.func @ragged(%a: tensor<8x272xf4E2M1FN>, %la: tensor<8x17xf8E4M3FN>, %b: tensor<33x272xf4E2M1FN>, %lb: tensor<33x17xf8E4M3FN>, %r: tensor<8x1xf32>) -> tensor<8x33xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<8x17xf8E4M3FN> -> !s8
  %sb = fp4.swizzle_scales %lb : tensor<33x17xf8E4M3FN> -> !t33
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %r {arithmetic = #fma}
      : (!lhs2, !rhs2, tensor<8x1xf32>) -> tensor<8x33xbf16>
  return %y : tensor<8x33xbf16>
}

!sx = tensor<3x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!tx = tensor<70x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<mxfp4, tensor<3x288xf4E2M1FN>, !sx>
!rhs3 = !fp4.scaled<mxfp4, tensor<70x288xf4E2M1FN>, !tx>
func.func @mx(%a: tensor<3x288xf4E2M1FN>, %la: tensor<3x9xf8E8M0FNU>, %b: tensor<70x288xf4E2M1FN>, %lb: tensor<70x9xf8E8M0FNU>, %c: tensor<1x70xf32>) -> tensor<3x70xf16> {
  %sa = fp4.swizzle_scales %la : tensor<3x9xf8E8M0FNU> -> !sx
  %sb = fp4.swizzle_scales %lb : tensor<70x9xf8E8M0FNU> -> !tx
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled alpha %c {arithmetic = #fma}
      : (!lhs3, !rhs3, tensor<1x70xf32>) -> tensor<3x70xf16>
  return %y : tensor<3x70xf16>
}

!s4 = tensor<4x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t130 = tensor<130x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs4 = !fp4.scaled<nvfp4, tensor<4x512xf4E2M1FN>, !s4>
!rhs4 = !fp4.scaled<nvfp4, tensor<130x512xf4E2M1FN>, !t130>
func.func @inputs(%a: tensor<4x512xf4E2M1FN>, %la: tensor<4x32xf8E4M3FN>, %b: tensor<130x512xf4E2M1FN>, %lb: tensor<130x32xf8E4M3FN>,
    %bias: tensor<130xbf16>, %factor: tensor<4xf32>, %residual: tensor<4x130xbf16>) -> tensor<4x130xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<4x32xf8E4M3FN> -> !s4
  %sb = fp4.swizzle_scales %lb : tensor<130x32xf8E4M3FN> -> !t130
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fma} : (!lhs4, !rhs4) -> tensor<4x130xf32>
  %empty = tensor.empty() : tensor<4x130xbf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%y, %bias, %factor, %residual : tensor<4x130xf32>, tensor<130xbf16>, tensor<4xf32>, tensor<4x130xbf16>) outs(%empty : tensor<4x130xbf16>) {
  ^bb0(%s: f32, %c: bf16, %f: f32, %x: bf16, %o: bf16):
    %wide = arith.extf %c : bf16 to f32
    %sum = arith.addf %s, %wide : f32
    %scaled = arith.mulf %sum, %f : f32
    %rest = arith.extf %x : bf16 to f32
    %all = arith.addf %scaled, %rest : f32
    %r = arith.truncf %all : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4x130xbf16>
  return %z : tensor<4x130xbf16>
}
