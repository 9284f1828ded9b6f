// Costs of the kernels around the Hadamard transform in PTX: accesses of 32 bytes (two of 16 on sm_90a), 64
// additions for 16 elements, one instruction for four random roundings where there is one.
// RUN: fp4-runner %s --emit=ptx | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: fp4-runner %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefixes=CHECK,SM90

// Two blocks per thread, all loads before the first sum.
// CHECK-LABEL:     ---- fused_quantize_0
// SM100-COUNT-2:   ld.global{{(.nc)?}}.v8.b32
// SM90-COUNT-4:    ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT:       ld.global.v
// CHECK-COUNT-64:  {{(add|sub)}}.rn.f32
// CHECK:           cvt.rn.bf16x2.f32
// SM100-COUNT-8:   cvt.rn.satfinite.e2m1x2.f32
// SM90-COUNT-8:    cvt.rz.f16x2.f32
// CHECK-COUNT-64:  {{(add|sub)}}.rn.f32
// CHECK-NOT:       {{(add|sub)}}.rn.f32
// CHECK:           st.global.v2.b32
// CHECK:           ret;
func.func @fused(%x: tensor<?x4096xbf16>, %a: tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}

// CHECK-LABEL:     ---- stochastic_quantize_0
// SM100-COUNT-4:   cvt.rs.satfinite.e2m1x4.f32
// SM100-NOT:       cvt.rs
// SM90-COUNT-8:    min.xorsign.abs.f16x2
// SM90-NOT:        cvt.rs
// CHECK:           ret;
func.func @stochastic(%x: tensor<?x4096xbf16>, %a: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x4096xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}

// CHECK-LABEL:     ---- lanes_hadamard_0
// CHECK-COUNT-48:  shfl.sync.bfly.b32
// CHECK-NOT:       shfl.sync
// CHECK:           ret;
func.func @lanes(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16> {
  %y = fp4.hadamard %x {size = 128 : i64} : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

// Down the columns: 16 accesses of 16 bytes on either target, 8 columns of 64 additions.
// CHECK-LABEL:     ---- columns_hadamard_0
// CHECK-COUNT-16:  ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT:       ld.global
// CHECK-COUNT-512: {{(add|sub)}}.rn.f32
// CHECK-NOT:       {{(add|sub)}}.rn.f32
// CHECK-COUNT-16:  st.global.v4.b32
// CHECK-NOT:       st.global
// CHECK:           ret;
func.func @columns(%x: tensor<256x4096xbf16>) -> tensor<256x4096xbf16> {
  %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x4096xbf16> -> tensor<256x4096xbf16>
  return %y : tensor<256x4096xbf16>
}

// The amaxes read once; where a sum overflows they add once more, elements over 16.
// CHECK-LABEL:     ---- amaxes_hadamard_amax_0
// SM100:           ld.global.v8.b32
// SM90-COUNT-2:    ld.global.v4.b32
// CHECK-COUNT-64:  {{(add|sub)}}.rn.f32
// CHECK-NOT:       ld.global
// CHECK-COUNT-16:  mul.rn.f32
// CHECK-NOT:       ld.global
// CHECK-COUNT-64:  {{(add|sub)}}.rn.f32
// CHECK-NOT:       {{(add|sub)}}.rn.f32
// CHECK:           ld.relaxed.gpu.global.b64
// CHECK:           ret;
func.func @amaxes(%x: tensor<?x4096xbf16>) -> (tensor<f32>, tensor<f32>) {
  %a, %b = fp4.hadamard_amax %x : tensor<?x4096xbf16> -> tensor<f32>, tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}
