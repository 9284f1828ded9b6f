// REQUIRES: ptxas
// A dual GEMM, a gate, a quantizer and an amax in one kernel whose sums are in registers: mma.sync has the launches that
// tcgen05 has, and wgmma one more, which converts the lhs; nothing spills.
// RUN: sed "s/tensor<?x/tensor<130x/g; s/tensor.empty(%m)/tensor.empty()/" %fp4_src/examples/mlp.mlir > %t.mlir
// RUN: env FP4_PTXAS= fp4-runner %t.mlir --device=sim --target=sm_90a --check=strict --policy=random | FileCheck %s --check-prefixes=MLP,WGMMA
// RUN: env FP4_PTXAS= fp4-runner %fp4_src/examples/mlp.mlir --device=sim --target=sm_120a --shape 130 --check=strict --policy=lazy | FileCheck %s --check-prefixes=MLP,SYNC
// Rows that are not known have one kernel more for each small M, and the launches are the same.
// RUN: fp4-runner %fp4_src/examples/mlp.mlir --target=sm_90a --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --shape 130 | FileCheck %s --check-prefix=UNKNOWN
// RUN: fp4-run %t.so --device=sim --shape 7 --check=strict | FileCheck %s --check-prefix=FEW
// MLP: mlp: passed
// WGMMA: matmul_0 {{.*}} 384 threads, 168 registers, {{[0-9]+}} bytes shared,
// WGMMA: kernels 10 launched
// SYNC: matmul_0 {{.*}} 288 threads, 16{{[0-9]}} registers, {{[0-9]+}} bytes shared,
// SYNC: kernels 9 launched
// MLP: next_h_amax {{.*}} equals the reference, bit for bit
// MLP: hazards none (strict check)
// UNKNOWN: mlp: passed
// UNKNOWN: kernels 10 launched
// FEW: mlp: passed
// FEW: kernels 9 launched

// Blocks of rows and of columns in one kernel, of ragged columns; scales of MXFP4 are parts of words.
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_90a --check=strict --policy=delay --sms=2 | FileCheck %s
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_120a --check=strict --policy=random | FileCheck %s
// If a CTA has several tiles, the lane that adds an amax is back before the next one.
// RUN: env FP4_PTXAS= fp4-runner %s --device=sim --target=sm_120a --check=strict --sms=2 | FileCheck %s
// CHECK: product: passed
// CHECK: matmul_0 {{.*}} registers, {{[0-9]+}} bytes shared,
// CHECK: kernels 3 launched
// CHECK-COUNT-5: equals the reference, bit for bit
// CHECK: hazards none (strict check)
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
!lhs = !fp4.scaled<mxfp4, tensor<160x320xf4E2M1FN>,
                   tensor<160x10xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<288x320xf4E2M1FN>,
                   tensor<288x10xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @product(%qx: tensor<160x320xf4E2M1FN>, %sx: tensor<160x10xf8E8M0FNU>, %bias: tensor<288xf32>, %given: tensor<f32>, %qw: tensor<288x320xf4E2M1FN>, %sw: tensor<288x10xf8E8M0FNU>) -> (tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<288x160xf4E2M1FN>, tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) {
  %tx = fp4.swizzle_scales %sx : tensor<160x10xf8E8M0FNU> -> tensor<160x10xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw : tensor<288x10xf8E8M0FNU> -> tensor<288x10xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %p0 = fp4.matmul %qx_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<160x288xf32>
  %empty = tensor.empty() : tensor<160x288xbf16>
  %h = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p0, %bias : tensor<160x288xf32>, tensor<288xf32>) outs(%empty : tensor<160x288xbf16>) {
  ^bb0(%x0: f32, %x1: f32, %o: bf16):
    %e = arith.addf %x0, %x1 : f32
    %r = arith.truncf %e : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<160x288xbf16>
  %z:4 = fp4.quantize %h {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>, outputs = #fp4.outputs<both>}
      : (tensor<160x288xbf16>) -> (tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<288x160xf4E2M1FN>, tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  %amax = fp4.amax %h : tensor<160x288xbf16> -> tensor<f32>
  return %z#0, %z#1, %z#2, %z#3, %amax : tensor<160x288xf4E2M1FN>, tensor<160x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<288x160xf4E2M1FN>, tensor<288x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}
