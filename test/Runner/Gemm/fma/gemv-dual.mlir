// Threads multiply a small M with two matrices, gate and up, and the region of the matmul joins both sums.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=vector --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=vector --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=batched --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=mx --dist=adversarial --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=fused --check=strict --policy=random --seed=2 | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so -o %t.90.so
// RUN: fp4-run %t.90.so --function=vector --device=sim --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.90.so --function=mx --device=sim --check=strict --policy=lazy | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the {{fma model|reference}}, bit for bit
// CHECK: hazards {{.*}}none

// Two matmuls and the operation that joins them have one kernel. A warp takes the matrices in turn, so that the code of
// four sums and their five exchanges is there once.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=fused_dots_0 -o - | FileCheck %s --check-prefix=PTX
// PTX: .entry kernel
// PTX-COUNT-20: shfl.sync.bfly
// PTX-NOT: shfl.sync
// PTX: bra
// PTX: ret;
// RUN: fp4-run %t.so --list | FileCheck %s --check-prefix=LIST
// LIST-COUNT-1: kernel fused_
// LIST-NOT: kernel fused_

#fma = #fp4.matmul_arithmetic<fma>
!s = tensor<1x144xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<136x144xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<1x2304xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<136x2304xf4E2M1FN>, !t>
func.func @vector(%a: tensor<1x2304xf4E2M1FN>, %sa: !s, %g: tensor<136x2304xf4E2M1FN>, %sg: !t, %u: tensor<136x2304xf4E2M1FN>, %su: !t,
    %of_gate: tensor<f32>, %of_up: tensor<f32>) -> (tensor<1x136xbf16> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs
  %gate = fp4.scaled %g, %sg : !rhs
  %up = fp4.scaled %u, %su : !rhs
  %y = fp4.matmul %x, %gate with %up alpha %of_gate alpha2 %of_up epilogue() {
  ^bb0(%first: f32, %second: f32):
    %one = arith.constant 1.0 : f32
    %less = arith.negf %first : f32
    %power = math.exp %less : f32
    %sum = arith.addf %power, %one : f32
    %silu = arith.divf %first, %sum : f32
    %product = arith.mulf %silu, %second : f32
    %rounded = arith.truncf %product : f32 to bf16
    fp4.yield %rounded : bf16
  } {arithmetic = #fma} : (!lhs, !rhs, !rhs, tensor<f32>, tensor<f32>) -> tensor<1x136xbf16>
  return %y : tensor<1x136xbf16>
}

// Two rows for each of three pairs of matrices, whose rows end within a block of 128, and a row of each group.
!s3 = tensor<384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<nvfp4, tensor<6x64xf4E2M1FN>, !s3>
!rhs3 = !fp4.scaled<nvfp4, tensor<120x64xf4E2M1FN>, !s3>
func.func @batched(%a: tensor<6x64xf4E2M1FN>, %sa: !s3, %g: tensor<120x64xf4E2M1FN>, %sg: !s3, %u: tensor<120x64xf4E2M1FN>, %su: !s3,
    %of_gate: tensor<3xf32>, %of_up: tensor<3xf32>, %bias: tensor<3x1x40xf32>) -> (tensor<6x40xf32> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs3
  %gate = fp4.scaled %g, %sg : !rhs3
  %up = fp4.scaled %u, %su : !rhs3
  %y = fp4.matmul %x, %gate with %up alpha %of_gate alpha2 %of_up epilogue(%bias) {
  ^bb0(%first: f32, %second: f32, %shift: f32):
    %sum = arith.addf %second, %shift : f32
    %product = arith.mulf %first, %sum : f32
    fp4.yield %product : f32
  } {work = #fp4.work<groups = [2, 2, 2]>, arithmetic = #fma}
      : (!lhs3, !rhs3, !rhs3, tensor<3xf32>, tensor<3xf32>, tensor<3x1x40xf32>) -> tensor<6x40xf32>
  return %y : tensor<6x40xf32>
}

// K ends within a chunk.
!sx = tensor<8x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!tx = tensor<70x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs4 = !fp4.scaled<mxfp4, tensor<8x288xf4E2M1FN>, !sx>
!rhs4 = !fp4.scaled<mxfp4, tensor<70x288xf4E2M1FN>, !tx>
func.func @mx(%a: tensor<8x288xf4E2M1FN>, %la: tensor<8x9xf8E8M0FNU>, %g: tensor<70x288xf4E2M1FN>, %lg: tensor<70x9xf8E8M0FNU>,
    %u: tensor<70x288xf4E2M1FN>, %lu: tensor<70x9xf8E8M0FNU>) -> (tensor<8x70xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<8x9xf8E8M0FNU> -> !sx
  %sg = fp4.swizzle_scales %lg : tensor<70x9xf8E8M0FNU> -> !tx
  %su = fp4.swizzle_scales %lu : tensor<70x9xf8E8M0FNU> -> !tx
  %x = fp4.scaled %a, %sa : !lhs4
  %gate = fp4.scaled %g, %sg : !rhs4
  %up = fp4.scaled %u, %su : !rhs4
  %y = fp4.matmul %x, %gate with %up epilogue() {
  ^bb0(%first: f32, %second: f32):
    %product = arith.subf %first, %second : f32
    fp4.yield %product : f32
  } {arithmetic = #fma} : (!lhs4, !rhs4, !rhs4) -> tensor<8x70xf32>
  return %y : tensor<8x70xf32>
}

func.func @fused(%a: tensor<1x2304xf4E2M1FN>, %sa: !s, %g: tensor<136x2304xf4E2M1FN>, %sg: !t, %u: tensor<136x2304xf4E2M1FN>, %su: !t,
    %of_gate: tensor<f32>, %of_up: tensor<f32>) -> (tensor<1x136xbf16> {fp4.name = "y"}) {
  %x = fp4.scaled %a, %sa : !lhs
  %gate = fp4.scaled %g, %sg : !rhs
  %up = fp4.scaled %u, %su : !rhs
  %first = fp4.matmul %x, %gate alpha %of_gate {arithmetic = #fma} : (!lhs, !rhs, tensor<f32>) -> tensor<1x136xf32>
  %second = fp4.matmul %x, %up alpha %of_up {arithmetic = #fma} : (!lhs, !rhs, tensor<f32>) -> tensor<1x136xf32>
  %empty = tensor.empty() : tensor<1x136xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%first, %second : tensor<1x136xf32>, tensor<1x136xf32>) outs(%empty : tensor<1x136xbf16>) {
  ^bb0(%f: f32, %s: f32, %o: bf16):
    %product = arith.mulf %f, %s : f32
    %rounded = arith.truncf %product : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<1x136xbf16>
  return %y : tensor<1x136xbf16>
}
