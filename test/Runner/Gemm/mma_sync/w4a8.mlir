// GEMMs of e4m3 activations without scales and mxfp4 weights with mma.sync: the instruction has scales, of which those of
// the activations are 1. The divisor of activations is alpha, one number or one for each row. Ragged M and N.
// RUN: fp4-runner %s --target=sm_120a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=rows --shape 70 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --function=rows --shape 3 --dist=adversarial --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --function=one --check=strict --policy=delay | FileCheck %s
// RUN: fp4-run %t.so --function=narrow --shape 40 --check=strict --policy=random --seed=2 | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the mma.sync model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'fp4.matmul' op must have a plan whose 'tile' is [256, 128, 128], [128, 128, 128]

// The kernel loads no scales of A.
// RUN: fp4-opt %s --fp4-set-target=target=sm_120a --compile-to=tiles | FileCheck %s --check-prefix=TILES
// TILES-LABEL: gpu.module @rows_matmul_0
// TILES-COUNT-1: pipe.load {{.*}} : !pipe.global
// TILES-NOT: pipe.load {{.*}} : !pipe.global
// TILES: pipe.mma %{{[^,]*}}, %{{[^ ,]*}}, %{{[^ ,]*}} scaled

// A k tile of two warps with 16 x 32 each: four instructions for each of four steps, with unit scales in a register.
// RUN: fp4-runner %s --target=sm_120a --emit=ptx --kernel=one_matmul_0 -o - | FileCheck %s --check-prefix=PTX
// PTX: mov.b32 [[ONES:%r[0-9]+]], 2139062143;
// PTX: mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0
// PTX: [[ONES]], {%rs{{[0-9]+}}, %rs{{[0-9]+}}},
// PTX-COUNT-15: mma.sync.aligned.m16n8k32
// PTX-NOT: mma.sync

!w = tensor<200x384xf4E2M1FN>
!s = tensor<200x12xf8E8M0FNU>
!t = tensor<200x12xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !w, !t>
func.func @rows(%x: tensor<?x384xf8E4M3FN>, %w: !w, %s: !s, %alpha: tensor<?x1xf32>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %t = fp4.swizzle_scales %s : !s -> !t
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %alpha
      : (tensor<?x384xf8E4M3FN>, !rhs, tensor<?x1xf32>) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}
func.func @one(%x: tensor<1x384xf8E4M3FN>, %w: !w, %s: !s, %alpha: tensor<f32>) -> (tensor<1x200xf32> {fp4.name = "y"}) {
  %t = fp4.swizzle_scales %s : !s -> !t
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %alpha {epilogue = #fp4.epilogue<relu>}
      : (tensor<1x384xf8E4M3FN>, !rhs, tensor<f32>) -> tensor<1x200xf32>
  return %y : tensor<1x200xf32>
}
func.func @narrow(%x: tensor<?x384xf8E4M3FN>, %w: !w, %s: !s) -> (tensor<?x200xf16> {fp4.name = "y"}) {
  %t = fp4.swizzle_scales %s : !s -> !t
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 64, 128]>}
      : (tensor<?x384xf8E4M3FN>, !rhs) -> tensor<?x200xf16>
  return %y : tensor<?x200xf16>
}
