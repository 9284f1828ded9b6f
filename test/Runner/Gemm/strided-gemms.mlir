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
func.func @product(%a: !pa {fp4.strided}, %s: !pt,
                   %b: !pb {fp4.strided}, %t: !pu) -> tensor<?x40xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t {format = #fp4.format<nvfp4>}
      : (!pa, !pt, !pb, !pu) -> tensor<?x40xbf16>
  return %y : tensor<?x40xbf16>
}

// 4 bits beside 8: TMA spreads them on sm_100a, from a copy.
func.func @mixed(%a: tensor<?x256xf8E4M3FN> {fp4.strided},
                 %s: tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                 %b: tensor<40x256xf4E2M1FN> {fp4.strided},
                 %t: tensor<40x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x40xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<40x256xf4E2M1FN>, tensor<40x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x40xbf16>
  return %y : tensor<?x40xbf16>
}
