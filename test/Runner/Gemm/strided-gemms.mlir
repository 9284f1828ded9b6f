// GEMMs whose operands have rows that their caller places, on every target. Operands that are converted or
// spread before they are multiplied are copied.

// RUN: fp4-runner %s --device=sim --function=product --shape=37 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=product --shape=130 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=product --shape=130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=mixed --shape=130 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=mixed --shape=130 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=mixed --shape=130 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// Packed rows of 104 bytes, which TMA could not read without gaps.
!pa = tensor<?x208xf4E2M1FN>
!pt = tensor<?x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!pb = tensor<40x208xf4E2M1FN>
!pu = tensor<40x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !pa, !pt>
!rhs = !fp4.scaled<nvfp4, !pb, !pu>
func.func @product(%a: !pa {fp4.strided}, %s: !pt,
                   %b: !pb {fp4.strided}, %t: !pu) -> tensor<?x40xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x40xbf16>
  return %y : tensor<?x40xbf16>
}

!lhs2 = !fp4.scaled<mxfp8_e4m3, tensor<?x256xf8E4M3FN>,
                    tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<40x256xf4E2M1FN>,
                    tensor<40x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// 4 bits beside 8: TMA spreads them on sm_100a, from a copy.
func.func @mixed(%a: tensor<?x256xf8E4M3FN> {fp4.strided},
                 %s: tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                 %b: tensor<40x256xf4E2M1FN> {fp4.strided},
                 %t: tensor<40x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x40xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<?x40xbf16>
  return %y : tensor<?x40xbf16>
}
