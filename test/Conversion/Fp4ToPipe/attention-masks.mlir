// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// A sequence hides keys of its last block alone, which comes first: a branch in front of the loop,
// and none in it.
// CHECK-LABEL: gpu.module @packed_attention_0
// CHECK: scf.if
// CHECK: pipe.reduce_rows maximum
// CHECK: scf.for {{.*}} iter_args
// CHECK-NOT: scf.if
// CHECK: scf.yield {{.*}}tensor<64x8xf32
!t = tensor<?x4x64xbf16>
!o = tensor<9xi32>
func.func @packed(%q: !t, %k: !t, %v: !t, %n: !o) -> !t {
  %r = fp4.attention %q, %k, %v query_offsets(%n : !o) key_offsets(%n : !o) scale 1.0 : !t, !t, !t -> !t
  return %r : !t
}

// With a causal mask any block may have such keys.
// CHECK-LABEL: gpu.module @causal_attention_0
// CHECK: scf.if
// CHECK: pipe.reduce_rows maximum
// CHECK: scf.for
// CHECK: scf.if
// CHECK: pipe.reduce_rows maximum
func.func @causal(%q: !t, %k: !t, %v: !t, %n: !o) -> !t {
  %r = fp4.attention %q, %k, %v query_offsets(%n : !o) key_offsets(%n : !o) scale 1.0 causal : !t, !t, !t -> !t
  return %r : !t
}

// One query sees all keys behind a causal mask, too.
// CHECK-LABEL: gpu.module @one_attention_0
// CHECK: scf.if
// CHECK: pipe.reduce_rows maximum
// CHECK: scf.for {{.*}} iter_args
// CHECK-NOT: scf.if
// CHECK: scf.yield {{.*}}tensor<64x8xf32
!one = tensor<2x1x4x256xbf16>
!cache = tensor<2x512x4x256xbf16>
func.func @one(%q: !one, %k: !cache, %v: !cache, %n: tensor<2xi32>) -> !one {
  %r = fp4.attention %q, %k, %v lengths(%n : tensor<2xi32>) scale 1.0 causal
      {fp4.plan = #fp4.plan<tile_attention>} : !one, !cache, !cache -> !one
  return %r : !one
}
