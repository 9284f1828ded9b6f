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
!lhs = !fp4.scaled<nvfp4, !a, !ta>
!rhs = !fp4.scaled<nvfp4, !w, !t>
func.func @nvfp4(%x: !a, %sx: !sa, %w: !w, %s: !s, %alpha: tensor<f32>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : !sa -> !ta
  %t = fp4.swizzle_scales %s : !s -> !t
  %x_scaled = fp4.scaled %x, %tx : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled alpha %alpha {work = #fp4.work<split_k = 3>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}
!lhs2 = !fp4.scaled<nvfp4, tensor<20x720xf4E2M1FN>,
                    tensor<20x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @two(%x: tensor<20x720xf4E2M1FN>, %sx: tensor<20x45xf8E4M3FN>, %w: !w, %s: !s, %alpha: tensor<20x1xf32>) -> (tensor<20x200xf32> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : tensor<20x45xf8E4M3FN> -> tensor<20x45xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %t = fp4.swizzle_scales %s : !s -> !t
  %x_scaled = fp4.scaled %x, %tx : !lhs2
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled alpha %alpha
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [32, 64, 256]>}
      : (!lhs2, !rhs, tensor<20x1xf32>) -> tensor<20x200xf32>
  return %y : tensor<20x200xf32>
}
!mw = tensor<200x640xf4E2M1FN>
!ms = tensor<200x20xf8E8M0FNU>
!mt = tensor<200x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<mxfp8_e4m3, tensor<?x640xf8E4M3FN>,
                    tensor<?x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, !mw, !mt>
func.func @mixed(%x: tensor<?x640xf8E4M3FN>, %sx: tensor<?x20xf8E8M0FNU>, %w: !mw, %s: !ms) -> (tensor<?x200xf16> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : tensor<?x20xf8E8M0FNU> -> tensor<?x20xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %t = fp4.swizzle_scales %s : !ms -> !mt
  %x_scaled = fp4.scaled %x, %tx : !lhs3
  %w_scaled = fp4.scaled %w, %t : !rhs2
  %y = fp4.matmul %x_scaled, %w_scaled
      {work = #fp4.work<split_k = 2>, epilogue = #fp4.epilogue<relu>}
      : (!lhs3, !rhs2) -> tensor<?x200xf16>
  return %y : tensor<?x200xf16>
}
func.func @bytes(%x: tensor<1x640xf8E4M3FN>, %w: !mw, %s: !ms, %alpha: tensor<1x1xf32>) -> (tensor<1x200xbf16> {fp4.name = "y"}) {
  %t = fp4.swizzle_scales %s : !ms -> !mt
  %w_scaled = fp4.scaled %w, %t : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %alpha {work = #fp4.work<split_k = 3>}
      : (tensor<1x640xf8E4M3FN>, !rhs2, tensor<1x1xf32>) -> tensor<1x200xbf16>
  return %y : tensor<1x200xbf16>
}
