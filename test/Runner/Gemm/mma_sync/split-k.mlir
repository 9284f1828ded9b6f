// Split-K where warps multiply: every thread leaves its sums in a workspace, 16 rows of a fragment after the other, and the
// last CTA adds those of all ranges, from the first to the last. Dynamic and static rows, ragged M, N and K, all families.
// RUN: fp4-runner %s --target=sm_120a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=nvfp4 --shape 70 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=nvfp4 --shape 3 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=two --check=strict --policy=random --seed=2 | FileCheck %s
// RUN: fp4-run %t.so --function=mixed --shape 40 --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=bytes --check=strict --policy=random --seed=3 | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the mma.sync model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

!a = tensor<?x720xf4E2M1FN>
!sa = tensor<?x45xf8E4M3FN>
!ta = tensor<?x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!w = tensor<200x720xf4E2M1FN>
!s = tensor<200x45xf8E4M3FN>
!t = tensor<200x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @nvfp4(%x: !a, %sx: !sa, %w: !w, %s: !s, %alpha: tensor<f32>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : !sa -> !ta
  %t = fp4.swizzle_scales %s : !s -> !t
  %y = fp4.blockscaled_matmul %x scaled %tx, %w scaled %t alpha %alpha {format = #fp4.format<nvfp4>, split_k = 3 : i64}
      : (!a, !ta, !w, !t, tensor<f32>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}
func.func @two(%x: tensor<20x720xf4E2M1FN>, %sx: tensor<20x45xf8E4M3FN>, %w: !w, %s: !s, %alpha: tensor<20x1xf32>) -> (tensor<20x200xf32> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : tensor<20x45xf8E4M3FN> -> tensor<20x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %t = fp4.swizzle_scales %s : !s -> !t
  %y = fp4.blockscaled_matmul %x scaled %tx, %w scaled %t alpha %alpha
      {format = #fp4.format<nvfp4>, split_k = 2 : i64, fp4.plan = #fp4.plan<tile_gemm, tile = [32, 64, 256]>}
      : (tensor<20x720xf4E2M1FN>, tensor<20x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, !w, !t, tensor<20x1xf32>) -> tensor<20x200xf32>
  return %y : tensor<20x200xf32>
}
!mw = tensor<200x640xf4E2M1FN>
!ms = tensor<200x20xf8E8M0FNU>
!mt = tensor<200x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @mixed(%x: tensor<?x640xf8E4M3FN>, %sx: tensor<?x20xf8E8M0FNU>, %w: !mw, %s: !ms) -> (tensor<?x200xf16> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : tensor<?x20xf8E8M0FNU> -> tensor<?x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %t = fp4.swizzle_scales %s : !ms -> !mt
  %y = fp4.blockscaled_matmul %x scaled %tx, %w scaled %t
      {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>, split_k = 2 : i64, epilogue = #fp4.epilogue<relu>}
      : (tensor<?x640xf8E4M3FN>, tensor<?x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, !mw, !mt) -> tensor<?x200xf16>
  return %y : tensor<?x200xf16>
}
func.func @bytes(%x: tensor<1x640xf8E4M3FN>, %w: !mw, %s: !ms, %alpha: tensor<1x1xf32>) -> (tensor<1x200xbf16> {fp4.name = "y"}) {
  %t = fp4.swizzle_scales %s : !ms -> !mt
  %y = fp4.blockscaled_matmul %x, %w scaled %t alpha %alpha {format = #fp4.format<mxfp4>, split_k = 3 : i64}
      : (tensor<1x640xf8E4M3FN>, !mw, !mt, tensor<1x1xf32>) -> tensor<1x200xbf16>
  return %y : tensor<1x200xbf16>
}
