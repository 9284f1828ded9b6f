// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s

// CTAs of attention whose values have scales are as large as lets all run at a time on 170 SMs: 64, 256 and 512 of them.
// Steps have 64 keys of NVFP4, so that 512 keys are two for each warp of a part.

!q = tensor<8x1x32x128xf4E2M1FN>
!k = tensor<8x512x8x128xf4E2M1FN>
!v = tensor<8x8x128x512xf4E2M1FN>
!qs = tensor<32768x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!ks = tensor<32768x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!vs = tensor<8192x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o = tensor<8x1x32x128xbf16>
// CHECK-LABEL: @few
// CHECK: fp4.plan = #fp4.plan<warp_attention, k_slices = 1, threads = 256, ctas_per_sm = 1>
func.func @few(%q: !q, %k: !k, %v: !v, %s: !qs, %t: !ks, %u: !vs) -> !o {
  %o = fp4.attention %q, %k, %v block_scales(%s, %t, %u : !qs, !ks, !vs) scale 0.09 : !q, !k, !v -> !o
  return %o : !o
}

!q512 = tensor<1x512x8x128xf4E2M1FN>
!v512 = tensor<1x8x128x512xf4E2M1FN>
!s512 = tensor<4096x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t512 = tensor<1024x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o512 = tensor<1x512x8x128xbf16>
// CHECK-LABEL: @some
// CHECK: fp4.plan = #fp4.plan<warp_attention, k_slices = 1, threads = 128, ctas_per_sm = 2>
func.func @some(%q: !q512, %v: !v512, %s: !s512, %t: !t512) -> !o512 {
  %o = fp4.attention %q, %q, %v block_scales(%s, %s, %t : !s512, !s512, !t512) scale 0.09 causal : !q512, !q512, !v512 -> !o512
  return %o : !o512
}

!q1024 = tensor<1x1024x8x128xf4E2M1FN>
!v1024 = tensor<1x8x128x1024xf4E2M1FN>
!s1024 = tensor<8192x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t1024 = tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!o1024 = tensor<1x1024x8x128xbf16>
// CHECK-LABEL: @many
// CHECK: fp4.plan = #fp4.plan<warp_attention, k_slices = 1, threads = 64, ctas_per_sm = 4>
func.func @many(%q: !q1024, %v: !v1024, %s: !s1024, %t: !t1024) -> !o1024 {
  %o = fp4.attention %q, %q, %v block_scales(%s, %s, %t : !s1024, !s1024, !t1024) scale 0.09 causal : !q1024, !q1024, !v1024 -> !o1024
  return %o : !o1024
}
