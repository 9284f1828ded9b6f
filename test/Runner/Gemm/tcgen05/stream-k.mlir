// Workers share tiles: each adds up an equal part of all slices of K of the first tiles, and the last
// to come adds the sums of a tile in the order of K, whichever it is.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --function=ragged --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=ragged --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=ragged --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=ragged --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=pairs --policy=random --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=few --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=bytes --policy=random --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=waves --policy=random --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=whole --check=strict | FileCheck %s
// CHECK: passed
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none

!s = tensor<300x98xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<200x98xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<300x1568xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<200x1568xf4E2M1FN>, !sb>
// Twelve tiles of seven slices for five workers: seven are shared, and some worker has three of them.
func.func @ragged(%a: tensor<300x1568xf4E2M1FN>, %la: tensor<300x98xf8E4M3FN>, %b: tensor<200x1568xf4E2M1FN>, %lb: tensor<200x98xf8E4M3FN>) -> tensor<300x200xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<300x98xf8E4M3FN> -> !s
  %sb = fp4.swizzle_scales %lb : tensor<200x98xf8E4M3FN> -> !sb
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<stream_k = [5, 128, 64]>, epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs) -> tensor<300x200xbf16>
  return %y : tensor<300x200xbf16>
}

// Two pairs share three tiles of 256 columns, whose accumulators are read before they are stored.
!l = tensor<300x40xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!r = tensor<400x40xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<nvfp4, tensor<300x640xf4E2M1FN>, !l>
!rhs2 = !fp4.scaled<nvfp4, tensor<400x640xf4E2M1FN>, !r>
func.func @pairs(%a: tensor<300x640xf4E2M1FN>, %la: tensor<300x40xf8E4M3FN>, %b: tensor<400x640xf4E2M1FN>, %lb: tensor<400x40xf8E4M3FN>, %alpha: tensor<300x1xf32>) -> tensor<300x400xf32> {
  %sa = fp4.swizzle_scales %la : tensor<300x40xf8E4M3FN> -> !l
  %sb = fp4.swizzle_scales %lb : tensor<400x40xf8E4M3FN> -> !r
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {work = #fp4.work<stream_k = [3, 256, 256]>}
      : (!lhs2, !rhs2, tensor<300x1xf32>) -> tensor<300x400xf32>
  return %y : tensor<300x400xf32>
}

// More works than SMs: CTAs have two or three, and accumulators wrap around.
!v = tensor<1650x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!w = tensor<800x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<nvfp4, tensor<1650x512xf4E2M1FN>, !v>
!rhs3 = !fp4.scaled<nvfp4, tensor<800x512xf4E2M1FN>, !w>
func.func @waves(%a: tensor<1650x512xf4E2M1FN>, %la: tensor<1650x32xf8E4M3FN>, %b: tensor<800x512xf4E2M1FN>, %lb: tensor<800x32xf8E4M3FN>) -> tensor<1650x800xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<1650x32xf8E4M3FN> -> !v
  %sb = fp4.swizzle_scales %lb : tensor<800x32xf8E4M3FN> -> !w
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [148, 128, 64]>}
      : (!lhs3, !rhs3) -> tensor<1650x800xbf16>
  return %y : tensor<1650x800xbf16>
}

// Fewer tiles than workers, of which one has nothing to do.
!f = tensor<20x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!g = tensor<72x80xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs4 = !fp4.scaled<nvfp4, tensor<20x1280xf4E2M1FN>, !f>
!rhs4 = !fp4.scaled<nvfp4, tensor<72x1280xf4E2M1FN>, !g>
func.func @few(%a: tensor<20x1280xf4E2M1FN>, %la: tensor<20x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<20x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<20x80xf8E4M3FN> -> !f
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> !g
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [11, 128, 64]>}
      : (!lhs4, !rhs4) -> tensor<20x72xf32>
  return %y : tensor<20x72xf32>
}

// A slice of 256 is two k tiles of elements of 8 bits.
!m = tensor<140x24xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!n = tensor<136x24xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs5 = !fp4.scaled<mxfp8_e4m3, tensor<140x768xf8E4M3FN>, !m>
!rhs5 = !fp4.scaled<mxfp8_e4m3, tensor<136x768xf8E4M3FN>, !n>
func.func @bytes(%a: tensor<140x768xf8E4M3FN>, %la: tensor<140x24xf8E8M0FNU>, %b: tensor<136x768xf8E4M3FN>, %lb: tensor<136x24xf8E8M0FNU>) -> tensor<140x136xf32> {
  %sa = fp4.swizzle_scales %la : tensor<140x24xf8E8M0FNU> -> !m
  %sb = fp4.swizzle_scales %lb : tensor<136x24xf8E8M0FNU> -> !n
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [3, 128, 96]>}
      : (!lhs5, !rhs5) -> tensor<140x136xf32>
  return %y : tensor<140x136xf32>
}

// As many tiles as workers: nothing is shared.
func.func @whole(%a: tensor<20x1280xf4E2M1FN>, %la: tensor<20x80xf8E4M3FN>, %b: tensor<72x1280xf4E2M1FN>, %lb: tensor<72x80xf8E4M3FN>) -> tensor<20x72xf32> {
  %sa = fp4.swizzle_scales %la : tensor<20x80xf8E4M3FN> -> !f
  %sb = fp4.swizzle_scales %lb : tensor<72x80xf8E4M3FN> -> !g
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<stream_k = [2, 128, 64]>}
      : (!lhs4, !rhs4) -> tensor<20x72xf32>
  return %y : tensor<20x72xf32>
}
