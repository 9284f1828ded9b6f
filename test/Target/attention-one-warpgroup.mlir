// ptxas lets the MMAs of one warpgroup run beside each other: few queries over keys in clusters, and more of a sequence.
// A wait between two MMAs serializes them (C7520), so that 1024 keys take 9 % longer on an H200.
// REQUIRES: ptxas
// RUN: fp4-runner %s --kernel=one_attention_0 --target=sm_90a --emit=ptx -o %t.one.ptx
// RUN: ptxas -v -arch=sm_90a %t.one.ptx -o %t.one.cubin 2>&1 | FileCheck %s
// RUN: fp4-runner %s --kernel=four_attention_0 --target=sm_90a --emit=ptx -o %t.four.ptx
// RUN: ptxas -v -arch=sm_90a %t.four.ptx -o %t.four.cubin 2>&1 | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=mlir --compile-to=scheduled | FileCheck %s --check-prefix=WAITS

// CHECK-NOT: serialized
// CHECK: Used {{[0-9]+}} registers
// CHECK-NOT: serialized

// WAITS-NOT: awaited_by_mma

!q = tensor<1x1x32x128xbf16>
!k = tensor<1x1024x8x128xbf16>
func.func @one(%q: !q, %k: !k, %v: !k) -> !q {
  %o = fp4.attention %q, %k, %v scale 0.1 causal : !q, !k, !k -> !q
  return %o : !q
}

!queries = tensor<16x4x32x128xbf16>
!keys = tensor<16x4096x8x128xbf16>
func.func @four(%q: !queries, %k: !keys, %v: !keys) -> !queries {
  %o = fp4.attention %q, %k, %v scale 0.1 causal : !queries, !keys, !keys -> !queries
  return %o : !queries
}
