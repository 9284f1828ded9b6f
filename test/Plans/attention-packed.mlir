// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: not fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=TCGEN05

// OTHERS: error: 'fp4.attention' op has kernels of warps without 'query_offsets', but got these
// OTHERS: note: family tile_attention takes packed sequences, with wgmma, or with tcgen05 for operand 'value' of 64 or 128 elements

// Tiles of packed sequences of any number of tokens have tokens of one head, and the longest come
// first.
// TCGEN05: tile = [256, 64, 1], schedule = #pipe.static_persistent<along_n serpentine = true>
// CHECK-LABEL: func.func @packed
// CHECK: tile = [128, 128, 1], schedule = #pipe.static_persistent<panels<4>>
!q = tensor<?x32x128xbf16>
!k = tensor<?x8x128xbf16>
!o = tensor<9xi32>
func.func @packed(%q: !q, %k: !k, %v: !k, %a: !o) -> !q {
  %o = fp4.attention %q, %k, %v query_offsets(%a : !o) key_offsets(%a : !o) scale 1.0 causal : !q, !k, !k -> !q
  return %o : !q
}

// Without a mask the longest sequences come first.
// CHECK-LABEL: func.func @whole
// CHECK: tile = [128, 128, 1], schedule = #pipe.static_persistent<panels<4>>, {{.*}}drives [tensor, threads] registers 240,
func.func @whole(%q: !q, %k: !k, %v: !k, %a: !o) -> !q {
  %o = fp4.attention %q, %k, %v query_offsets(%a : !o) key_offsets(%a : !o) scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}

// Two warpgroups with slopes begin their products in turn.
// CHECK-LABEL: func.func @slopes
// CHECK: tile = [128, 128, 1], {{.*}}drives [tensor, threads] registers 240 in_turn products,
func.func @slopes(%q: !q, %k: !k, %v: !k, %a: !o, %s: tensor<32xf32>) -> !q {
  %o = fp4.attention %q, %k, %v query_offsets(%a : !o) key_offsets(%a : !o) slopes(%s : tensor<32xf32>) scale 1.0 : !q, !k, !k -> !q
  return %o : !q
}
