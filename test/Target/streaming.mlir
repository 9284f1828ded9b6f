// The row-wise kernels as machine code: no spills, no stack, and accesses as wide as the target has them, 16 bytes on
// sm_90a and 32 on sm_100a. 16 codes are 8 bytes. A thread that transforms its blocks has two.
// REQUIRES: ptxas
// RUN: fp4-opt %s "--fp4-compile=target=sm_90a to=cubin" | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %s "--fp4-compile=target=sm_100a to=cubin" | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: rm -rf %t && mkdir -p %t/90 %t/100
// RUN: fp4-runner %s --target=sm_90a --emit=ptx -o %t/90
// RUN: cd %t/90 && grep -oE '(ld|st)\.global[a-z0-9.]*' a_amax_0.ptx b_dequantize_0.ptx c_quantize_0.ptx d_quantize_0.ptx \
// RUN:   e_quantize_0.ptx f_quantize_0.ptx | sed 's/\.nc//' | sort | uniq -c | FileCheck %s --check-prefix=SM90 --implicit-check-not=global
// RUN: fp4-runner %s --target=sm_100a --emit=ptx -o %t/100
// RUN: cd %t/100 && grep -oE '(ld|st)\.global[a-z0-9.]*' a_amax_0.ptx b_dequantize_0.ptx c_quantize_0.ptx d_quantize_0.ptx \
// RUN:   e_quantize_0.ptx f_quantize_0.ptx | sed 's/\.nc//' | sort | uniq -c | FileCheck %s --check-prefix=SM100

// CHECK: a_amax_0 kernel: registers {{[1-3][0-9]}}, spill 0, stack 0
// CHECK: b_dequantize_0 kernel: registers {{[1-3][0-9]}}, spill 0, stack 0
// CHECK: c_quantize_0 kernel: registers {{[1-3][0-9]}}, spill 0, stack 0
// CHECK: d_quantize_0 kernel: registers {{[1-8][0-9]}}, spill 0, stack 0
// CHECK: e_quantize_0 kernel: registers {{[1-3][0-9]}}, spill 0, stack 0
// CHECK: f_quantize_0 kernel: registers {{[1-5][0-9]}}, spill 0, stack 0

// SM90:      2 a_amax_0.ptx:ld.global.v4.b32
// SM90-NEXT: 1 a_amax_0.ptx:st.global.b32
// SM90-NEXT: 1 b_dequantize_0.ptx:ld.global.b32
// SM90-NEXT: 1 b_dequantize_0.ptx:ld.global.b8
// SM90-NEXT: 1 b_dequantize_0.ptx:ld.global.v2.b32
// SM90-NEXT: 2 b_dequantize_0.ptx:st.global.v4.b32
// SM90-NEXT: 4 c_quantize_0.ptx:ld.global.v4.b32
// SM90-NEXT: 1 c_quantize_0.ptx:st.global.b8
// SM90-NEXT: 1 c_quantize_0.ptx:st.global.v4.b32
// SM90-NEXT: 1 d_quantize_0.ptx:ld.global.b32
// SM90-NEXT: 8 d_quantize_0.ptx:ld.global.v4.b32
// SM90-NEXT: 2 d_quantize_0.ptx:st.global.b8
// SM90-NEXT: 2 d_quantize_0.ptx:st.global.v2.b32
// SM90-NEXT: 1 e_quantize_0.ptx:ld.global.b32
// SM90-NEXT: 2 e_quantize_0.ptx:ld.global.v4.b32
// SM90-NEXT: 1 e_quantize_0.ptx:st.global.b8
// SM90-NEXT: 1 e_quantize_0.ptx:st.global.v2.b32
// SM90-NEXT: 1 f_quantize_0.ptx:ld.global.b32
// SM90-NEXT: 4 f_quantize_0.ptx:ld.global.v4.b32
// SM90-NEXT: 2 f_quantize_0.ptx:st.global.b8
// SM90-NEXT: 2 f_quantize_0.ptx:st.global.v2.b32

// SM100: 1 a_amax_0.ptx:ld.global.v8.b32
// SM100: 1 b_dequantize_0.ptx:st.global.v8.b32
// SM100: 2 c_quantize_0.ptx:ld.global.v8.b32
// SM100: 1 c_quantize_0.ptx:st.global.v4.b32
// SM100: 2 d_quantize_0.ptx:ld.global.v8.b32
// SM100: 1 e_quantize_0.ptx:ld.global.v8.b32
// SM100: 2 f_quantize_0.ptx:ld.global.v8.b32

func.func @a(%x: tensor<?x4096xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @b(%q: tensor<?x4096xf4E2M1FN>, %s: tensor<?x256xf8E4M3FN>, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @c(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>
}
func.func @d(%x: tensor<?x4096xf32>, %a: tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<?x4096xf32>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @e(%x: tensor<?x4096xbf16>, %a: tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @f(%x: tensor<?x4096xbf16>, %a: tensor<f32>)
    -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
