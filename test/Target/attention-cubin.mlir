// ptxas accepts attention with tcgen05 for sm_100a without spills: parts of 128 rows whose threads have the sums of 64
// and of 128 elements beside a row of scores, with masks and without, one part, two parts that share heads, a window, and
// packed sequences.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: whole_attention_0 kernel: registers 168, spill 0, stack 0
// CHECK: causal_attention_0 kernel: registers 168, spill 0, stack 0
// CHECK: small_attention_0 kernel: registers 128, spill 0, stack 0
// CHECK: part_attention_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: scores_attention_0 kernel: registers 168, spill 0, stack 0
// CHECK: heads_attention_0 kernel: registers 168, spill 0, stack 0
// CHECK: packed_attention_0 kernel: registers 168, spill 0, stack 0

!t = tensor<2x4096x16x128xbf16>
!k = tensor<2x4096x2x128xbf16>
!s = tensor<2x4096x16x64xf16>
!p = tensor<2x100x16x64xf16>
!g = tensor<2x40x16x128xbf16>
!q = tensor<?x16x128xbf16>
!c = tensor<?x2x128xbf16>
func.func @whole(%q: !t, %k: !k) -> !t {
  %o = fp4.attention %q, %k, %k scale 0.09 : !t, !k, !k -> !t
  return %o : !t
}
func.func @causal(%q: !t, %k: !k) -> (!t, tensor<2x4096x16xf32>) {
  %o, %l = fp4.attention %q, %k, %k scale 0.09 causal : !t, !k, !k -> !t, tensor<2x4096x16xf32>
  return %o, %l : !t, tensor<2x4096x16xf32>
}
func.func @small(%q: !s) -> !s {
  %o = fp4.attention %q, %q, %q scale 0.125 causal : !s, !s, !s -> !s
  return %o : !s
}
func.func @part(%q: !p, %k: !s) -> !p {
  %o = fp4.attention %q, %k, %k scale 0.125 causal : !p, !s, !s -> !p
  return %o : !p
}
func.func @scores(%q: !t, %k: !k, %s: tensor<16xf32>) -> !t {
  %o = fp4.attention %q, %k, %k sinks(%s : tensor<16xf32>) scale 0.09 softcap 30.0 causal window 1024 : !t, !k, !k -> !t
  return %o : !t
}
func.func @heads(%q: !g, %k: !k) -> !g {
  %o = fp4.attention %q, %k, %k scale 0.09 causal : !g, !k, !k -> !g
  return %o : !g
}
func.func @packed(%q: !q, %k: !c, %n: tensor<9xi32>) -> !q {
  %o = fp4.attention %q, %k, %k query_offsets(%n : tensor<9xi32>) key_offsets(%n : tensor<9xi32>) scale 0.09 causal : !q, !c, !c -> !q
  return %o : !q
}
