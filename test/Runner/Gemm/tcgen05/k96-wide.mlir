// GEMMs by instructions of K = 96 with 256 columns, on sm_103a: accumulators that overlap, and scales that have
// stages, barriers and columns of tensor memory of their own, in parts of a k tile. CTAs have several tiles on a
// machine of eight or sixteen SMs. K ends within an instruction, a part and a tile; columns end within a
// tile.
// RUN: fp4-runner %s --target=sm_103a --function=nv --shape=1100 --sms=8 --policy=lazy --check=strict --plan "tile_gemm, tile = [256, 256, 768], store = tma" | FileCheck %s
// RUN: fp4-runner %s --target=sm_103a --function=nv --shape=1100 --sms=16 --policy=random --seed=3 --check=strict --plan "tile_gemm, tile = [256, 256, 768], cluster = [4, 2], fallback = [2, 1]" | FileCheck %s
// RUN: fp4-runner %s --target=sm_103a --function=mx --shape=700 --sms=8 --policy=delay --check=strict --plan "tile_gemm, tile = [256, 256, 768], cluster = [2, 2], fallback = [2, 1]" | FileCheck %s
// RUN: fp4-runner %s --target=sm_103a --function=mx --shape=700 --sms=8 --policy=random --seed=5 --check=strict --plan "tile_gemm, tile = [256, 256, 768], accumulators = 1" | FileCheck %s
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none
// RUN: fp4-runner %s --target=sm_103a --function=nv --plan "tile_gemm, tile = [256, 256, 768], store = tma" --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=NV
// RUN: fp4-runner %s --target=sm_103a --function=mx --plan "tile_gemm, tile = [256, 256, 768], store = direct" --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=MX
// Two stages of operands, four of scales and two of results; 108 columns are in common, of which four reads give 128
// back before anything is converted.
// NV-LABEL: gpu.module @nv_matmul
// NV: pipe.channel from tensor {{.*}} depth 2 payload [0] stride [148]
// NV: pipe.channel from tma to tensor {{.*}} depth 2
// NV: pipe.channel from tma to tensor {{.*}} depth 4
// NV: pipe.channel from threads(128) to bulk_store depth 2
// NV-NOT: pipe.channel from
// NV: pipe.role mma
// NV: pipe.consumer_wait
// NV-NEXT: pipe.await_release {{.*}} distance 3
// NV-NEXT: pipe.copy_scales {{.*}} at 404 sets 3
// NV-NEXT: pipe.copy_scales {{.*}} at 440 sets 3
// NV: pipe.consumer_wait
// NV: pipe.mma {{.*}}part = array<i64: 0, 2>
// NV-NEXT: pipe.consumer_release
// NV: pipe.copy_scales {{.*}} at 404 sets 3
// NV: pipe.mma {{.*}}part = array<i64: 2, 2>
// NV: pipe.mma {{.*}}part = array<i64: 4, 2>
// NV: pipe.mma {{.*}}part = array<i64: 6, 2>
// NV: pipe.role epilogue
// NV-COUNT-4: pipe.read
// NV-NOT: arith.{{mulf|truncf}}
// NV: pipe.consumer_release {{.*}} partial
// MX-LABEL: gpu.module @mx_matmul
// MX: pipe.mma {{.*}}part = array<i64: 0, 4>
// MX: pipe.mma {{.*}}part = array<i64: 4, 4>
// MX-NOT: pipe.mma

!lhs = !fp4.scaled<nvfp4, tensor<?x1168xf4E2M1FN>,
                   tensor<?x73xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<520x1168xf4E2M1FN>,
                   tensor<520x73xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @nv(%a: tensor<?x1168xf4E2M1FN>, %la: tensor<?x73xf8E4M3FN>, %b: tensor<520x1168xf4E2M1FN>, %lb: tensor<520x73xf8E4M3FN>, %alpha: tensor<f32>) -> tensor<?x520xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<?x73xf8E4M3FN> -> tensor<?x73xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<520x73xf8E4M3FN> -> tensor<520x73xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x520xbf16>
  return %y : tensor<?x520xbf16>
}

!lhs2 = !fp4.scaled<mxfp4, tensor<?x800xf4E2M1FN>,
                    tensor<?x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<304x800xf4E2M1FN>,
                    tensor<304x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @mx(%a: tensor<?x800xf4E2M1FN>, %sa: tensor<?x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<304x800xf4E2M1FN>, %sb: tensor<304x25xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x304xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs2, !rhs2) -> tensor<?x304xf16>
  return %y : tensor<?x304xf16>
}
