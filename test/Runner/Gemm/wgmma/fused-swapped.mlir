// REQUIRES: ptxas
// A dual GEMM, a gate, a quantizer and an amax in one kernel of sm_90a whose operands are swapped: threads have columns of
// the result, and exchange rows. Few rows are converted within the GEMM, and many are pre-dequantized; each once for both GEMMs.
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_90a --function=few --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_90a --function=many --check=strict --policy=delay --sms=2 | FileCheck %s --check-prefixes=CHECK,MANY
// CHECK: passed
// FEW: matmul_0 {{.*}} 512 threads, 128 registers, {{[0-9]+}} bytes shared,
// FEW: kernels 1 launched
// MANY: matmul_0 {{.*}} 384 threads, 168 registers, {{[0-9]+}} bytes shared,
// MANY: kernels 2 launched
// CHECK-COUNT-3: equals the reference, bit for bit
// CHECK: hazards none (strict check)
!e = tensor<13x192xf4E2M1FN>
!s = tensor<13x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!w = tensor<208x192xf4E2M1FN>
!t = tensor<208x12xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !e, !s>
!rhs = !fp4.scaled<nvfp4, !w, !t>
func.func @few(%qx: !e, %sx: !s, %q1: !w, %s1: !t, %q2: !w, %s2: !t, %alpha: tensor<f32>, %more: tensor<f32>, %given: tensor<f32>)
    -> (tensor<13x208xf4E2M1FN>, tensor<13x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) {
  %qx_scaled = fp4.scaled %qx, %sx : !lhs
  %q1_scaled = fp4.scaled %q1, %s1 : !rhs
  %q2_scaled = fp4.scaled %q2, %s2 : !rhs
  %q, %r, %amax = fp4.matmul %qx_scaled, %q1_scaled with %q2_scaled alpha %alpha alpha2 %more epilogue(%given) {
  ^bb0(%x: f32, %y: f32, %amax_in: f32):
    %p = arith.mulf %x, %y : f32
    %z = arith.truncf %p : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    %amax_out = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %code, %scale, %amax_out : f4E2M1FN, f8E4M3FN, f32
  } : (!lhs, !rhs, !rhs, tensor<f32>, tensor<f32>, tensor<f32>)
      -> (tensor<13x208xf4E2M1FN>, tensor<13x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
          tensor<f32>)
  return %q, %r, %amax : tensor<13x208xf4E2M1FN>, tensor<13x13xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}

// Blocks of rows and of columns, of elements of 32 bits.
!me = tensor<160x256xf4E2M1FN>
!ms = tensor<160x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!mw = tensor<288x256xf4E2M1FN>
!mt = tensor<288x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs2 = !fp4.scaled<mxfp4, !me, !ms>
!rhs2 = !fp4.scaled<mxfp4, !mw, !mt>
func.func @many(%qx: !me, %sx: !ms, %q1: !mw, %s1: !mt, %q2: !mw, %s2: !mt, %bias: tensor<1x288xf32>)
    -> (tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU>, tensor<288x160xf4E2M1FN>, tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) {
  %qx_scaled = fp4.scaled %qx, %sx : !lhs2
  %q1_scaled = fp4.scaled %q1, %s1 : !rhs2
  %q2_scaled = fp4.scaled %q2, %s2 : !rhs2
  %q, %r, %qc, %rc, %amax = fp4.matmul %qx_scaled, %q1_scaled with %q2_scaled epilogue(%bias) {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %z = arith.subf %x, %y : f32
    %w = arith.addf %z, %c : f32
    %code, %scale, %code_t, %scale_t = fp4.epilogue_quantize %w {recipe = #fp4.recipe<ocp_rceil>, outputs = #fp4.outputs<both>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax_out = fp4.epilogue_amax %w : f32 -> f32
    fp4.yield %code, %scale, %code_t, %scale_t, %amax_out : f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 128, 128]>}
      : (!lhs2, !rhs2, !rhs2, tensor<1x288xf32>)
      -> (tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU>, tensor<288x160xf4E2M1FN>,
          tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>)
  return %q, %r, %qc, %rc, %amax : tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU>, tensor<288x160xf4E2M1FN>, tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}

// Elements are a result too, of two accumulators: lanes meet again behind what the first one leaves. The second tile has few rows.
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_90a --function=wide --check=strict --policy=random | FileCheck %s
!ve = tensor<144x128xf4E2M1FN>
!vs = tensor<144x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!vw = tensor<256x128xf4E2M1FN>
!vt = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs3 = !fp4.scaled<mxfp4, !ve, !vs>
!rhs3 = !fp4.scaled<mxfp4, !vw, !vt>
func.func @wide(%qx: !ve, %sx: !vs, %q1: !vw, %s1: !vt, %given: tensor<f32>)
    -> (tensor<144x256xbf16>, tensor<144x256xf4E2M1FN>, tensor<144x16xf8E4M3FN>, tensor<256x144xf4E2M1FN>, tensor<256x9xf8E4M3FN>) {
  %qx_scaled = fp4.scaled %qx, %sx : !lhs3
  %q1_scaled = fp4.scaled %q1, %s1 : !rhs3
  %r:5 = fp4.matmul %qx_scaled, %q1_scaled epilogue(%given) {
  ^bb0(%x: f32, %amax_in: f32):
    %z = arith.truncf %x : f32 to bf16
    %code, %scale, %code_t, %scale_t = fp4.epilogue_quantize %z amax %amax_in {recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN)
    fp4.yield %z, %code, %scale, %code_t, %scale_t : bf16, f4E2M1FN, f8E4M3FN, f4E2M1FN, f8E4M3FN
  } {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [256, 128, 128]>}
      : (!lhs3, !rhs3, tensor<f32>)
      -> (tensor<144x256xbf16>, tensor<144x256xf4E2M1FN>, tensor<144x16xf8E4M3FN>,
          tensor<256x144xf4E2M1FN>, tensor<256x9xf8E4M3FN>)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<144x256xbf16>, tensor<144x256xf4E2M1FN>, tensor<144x16xf8E4M3FN>, tensor<256x144xf4E2M1FN>, tensor<256x9xf8E4M3FN>
}
