// Results whose rows their caller places: fp4-runner gives them gaps that no kernel may write. GEMMs write
// such rows where they are, in stores and through tensor maps; of other operations the rows are copied.

// RUN: fp4-runner %s --device=sim --function=product --shape=37 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=product --shape=130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=product --shape=130 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=product --shape=130 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=three --shape=70 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=codes --shape=33 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=used --shape=33 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!a = tensor<?x208xf4E2M1FN>
!s = tensor<?x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<20x208xf4E2M1FN>
!t = tensor<20x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!lhs = !fp4.scaled<nvfp4, !a, !s>
!rhs = !fp4.scaled<nvfp4, !b, !t>
// Rows of 80 bytes, which end within 16 bytes that a store could write.
func.func @product(%a: !a, %s: !s, %b: !b, %t: !t) -> (tensor<?x20xf32> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// Queries, keys and values beside each other: three results of which one is dense.
!x = tensor<?x64xf4E2M1FN>
!xs = tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!q = tensor<64x64xf4E2M1FN>
!qs = tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<nvfp4, !x, !xs>
!rhs2 = !fp4.scaled<nvfp4, !q, !qs>
func.func @three(%a: !x, %s: !xs, %b: !q, %t: !qs, %c: !q, %u: !qs)
    -> (tensor<?x64xbf16> {fp4.strided}, tensor<?x64xf16>, tensor<?x64xbf16> {fp4.strided}) {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x64xbf16>
  %c_scaled = fp4.scaled %c, %u : !rhs2
  %z = fp4.matmul %a_scaled, %c_scaled : (!lhs2, !rhs2) -> tensor<?x64xf16>
  %c_scaled2 = fp4.scaled %c, %t : !rhs2
  %v = fp4.matmul %a_scaled, %c_scaled2 : (!lhs2, !rhs2) -> tensor<?x64xbf16>
  return %y, %z, %v : tensor<?x64xbf16>, tensor<?x64xf16>, tensor<?x64xbf16>
}

// Rows that are copied: packed codes, and a tensor that is used besides.
func.func @codes(%x: tensor<?x40xbf16>) -> (tensor<?x40xf4E2M1FN> {fp4.strided}, tensor<?x3xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x40xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x40xbf16>, tensor<f32>) -> (tensor<?x40xf4E2M1FN>, tensor<?x3xf8E4M3FN>)
  return %q, %s : tensor<?x40xf4E2M1FN>, tensor<?x3xf8E4M3FN>
}
func.func @used(%a: !x, %s: !xs, %b: !q, %t: !qs) -> (tensor<?x64xbf16> {fp4.strided}, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x64xbf16>
  %m = fp4.amax %y : tensor<?x64xbf16> -> tensor<f32>
  return %y, %m : tensor<?x64xbf16>, tensor<f32>
}
