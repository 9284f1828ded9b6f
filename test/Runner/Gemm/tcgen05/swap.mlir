// Small M: the rhs is operand A of the tensor core, the rows are its columns, and results are stored
// transposed. The epilogue reads rows and columns of the result, not of the tile.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=eight --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=eight --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=eight --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=sixteen --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=many --policy=random --seed=3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=split --policy=random --seed=4 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=inputs --check=strict | FileCheck %s
// CHECK: passed
// CHECK: hazards {{.*}}none

!s = tensor<5x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<200x20xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<5x320xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<200x320xf4E2M1FN>, !t>
func.func @eight(%a: tensor<5x320xf4E2M1FN>, %la: tensor<5x20xf8E4M3FN>, %b: tensor<200x320xf4E2M1FN>, %lb: tensor<200x20xf8E4M3FN>, %r: tensor<5x1xf32>) -> tensor<5x200xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<5x20xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<200x20xf8E4M3FN> -> !t
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %r
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 8, 256]>}
      : (!lhs, !rhs, tensor<5x1xf32>) -> tensor<5x200xbf16>
  return %y : tensor<5x200xbf16>
}

!s16 = tensor<16x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t16 = tensor<136x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, tensor<16x512xf4E2M1FN>, !s16>
!rhs2 = !fp4.scaled<mxfp4, tensor<136x512xf4E2M1FN>, !t16>
func.func @sixteen(%a: tensor<16x512xf4E2M1FN>, %la: tensor<16x16xf8E8M0FNU>, %b: tensor<136x512xf4E2M1FN>, %lb: tensor<136x16xf8E8M0FNU>) -> tensor<16x136xf32> {
  %sa = fp4.swizzle_scales %la : tensor<16x16xf8E8M0FNU> -> !s16
  %sb = fp4.swizzle_scales %lb : tensor<136x16xf8E8M0FNU> -> !t16
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {epilogue = #fp4.epilogue<relu>, fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 16, 256]>}
      : (!lhs2, !rhs2) -> tensor<16x136xf32>
  return %y : tensor<16x136xf32>
}

// Several tiles along both, of which those of 32 rows begin within a block of scales.
!s150 = tensor<150x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t300 = tensor<300x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<nvfp4, tensor<150x128xf4E2M1FN>, !s150>
!rhs3 = !fp4.scaled<nvfp4, tensor<300x128xf4E2M1FN>, !t300>
func.func @many(%a: tensor<150x128xf4E2M1FN>, %la: tensor<150x8xf8E4M3FN>, %b: tensor<300x128xf4E2M1FN>, %lb: tensor<300x8xf8E4M3FN>, %c: tensor<1x300xf32>) -> tensor<150x300xf16> {
  %sa = fp4.swizzle_scales %la : tensor<150x8xf8E4M3FN> -> !s150
  %sb = fp4.swizzle_scales %lb : tensor<300x8xf8E4M3FN> -> !t300
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled alpha %c
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256]>}
      : (!lhs3, !rhs3, tensor<1x300xf32>) -> tensor<150x300xf16>
  return %y : tensor<150x300xf16>
}

!s40 = tensor<40x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t200 = tensor<200x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs4 = !fp4.scaled<nvfp4, tensor<40x1280xf4E2M1FN>, !s40>
!rhs4 = !fp4.scaled<nvfp4, tensor<200x1280xf4E2M1FN>, !t200>
func.func @split(%a: tensor<40x1280xf4E2M1FN>, %la: tensor<40x80xf8E4M3FN>, %b: tensor<200x1280xf4E2M1FN>, %lb: tensor<200x80xf8E4M3FN>, %r: tensor<40x1xf32>) -> tensor<40x200xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<40x80xf8E4M3FN> -> !s40
  %sb = fp4.swizzle_scales %lb : tensor<200x80xf8E4M3FN> -> !t200
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled alpha %r
      {work = #fp4.work<split_k = 3>, fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 64, 256]>}
      : (!lhs4, !rhs4, tensor<40x1xf32>) -> tensor<40x200xbf16>
  return %y : tensor<40x200xbf16>
}

// A bias of columns, a factor of rows, a residual and a scalar become the epilogue.
!s20 = tensor<20x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t130 = tensor<130x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs5 = !fp4.scaled<nvfp4, tensor<20x512xf4E2M1FN>, !s20>
!rhs5 = !fp4.scaled<nvfp4, tensor<130x512xf4E2M1FN>, !t130>
func.func @inputs(%a: tensor<20x512xf4E2M1FN>, %la: tensor<20x32xf8E4M3FN>, %b: tensor<130x512xf4E2M1FN>, %lb: tensor<130x32xf8E4M3FN>, %alpha: tensor<f32>,
    %bias: tensor<130xbf16>, %factor: tensor<20xf32>, %residual: tensor<20x130xbf16>) -> tensor<20x130xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<20x32xf8E4M3FN> -> !s20
  %sb = fp4.swizzle_scales %lb : tensor<130x32xf8E4M3FN> -> !t130
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256]>}
      : (!lhs5, !rhs5, tensor<f32>) -> tensor<20x130xf32>
  %empty = tensor.empty() : tensor<20x130xbf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%y, %bias, %factor, %residual : tensor<20x130xf32>, tensor<130xbf16>, tensor<20xf32>, tensor<20x130xbf16>) outs(%empty : tensor<20x130xbf16>) {
  ^bb0(%s: f32, %c: bf16, %f: f32, %x: bf16, %o: bf16):
    %wide = arith.extf %c : bf16 to f32
    %sum = arith.addf %s, %wide : f32
    %scaled = arith.mulf %sum, %f : f32
    %rest = arith.extf %x : bf16 to f32
    %all = arith.addf %scaled, %rest : f32
    %r = arith.truncf %all : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<20x130xbf16>
  return %z : tensor<20x130xbf16>
}

// RUN: fp4-runner %s --emit=mlir --compile-to=planned | FileCheck %s --check-prefix=PLANNED
// PLANNED-LABEL: func.func @inputs
// PLANNED: fp4.matmul {{.*}} epilogue({{.*}}) {
// PLANNED-NOT: linalg.generic
// The model decides by itself for a decode step of a large layer.
// PLANNED-LABEL: func.func @layer
// PLANNED: fp4.matmul {{.*}}orientation = swapped>, tile = [128, 8, 256]
!s3 = tensor<3x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t19k = tensor<19328x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs6 = !fp4.scaled<nvfp4, tensor<3x2048xf4E2M1FN>, !s3>
!rhs6 = !fp4.scaled<nvfp4, tensor<19328x2048xf4E2M1FN>, !t19k>
func.func @layer(%a: tensor<3x2048xf4E2M1FN>, %la: tensor<3x128xf8E4M3FN>, %b: tensor<19328x2048xf4E2M1FN>, %lb: tensor<19328x128xf8E4M3FN>) -> tensor<3x19328xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<3x128xf8E4M3FN> -> !s3
  %sb = fp4.swizzle_scales %lb : tensor<19328x128xf8E4M3FN> -> !t19k
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs6, !rhs6) -> tensor<3x19328xbf16>
  return %y : tensor<3x19328xbf16>
}
