// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize -cse \
// RUN:     -pipe-specialize-warps -pipe-verify-sync -canonicalize -cse -pipe-verify-sync \
// RUN:     -pipe-pipeline -canonicalize -cse -pipe-verify-sync -pipe-verify-capacity | FileCheck %s

// Every tile width, format and ragged edge goes through all forms and satisfies the verifiers, before and
// after simplification. The depths are what 232448 bytes of shared memory and 512 columns of tensor
// memory allow: two accumulators fit beside the scales for up to 192 columns. With one k tile, no loop
// fills an accumulator, and the accumulators get up to four stages. Scales have a set of columns per
// stage; beside two accumulators of 192 columns there is room for two sets. If results leave through
// shared memory, two tiles of 16 KB of them take the place of a stage.

!lhs = !fp4.scaled<nvfp4, tensor<300x1024xf4E2M1FN>,
                   tensor<300x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x1024xf4E2M1FN>,
                   tensor<64x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @n64_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0]
// CHECK: pipe.channel from tma to tensor depth 8
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK-NOT: pipe.await_release
// CHECK: pipe.copy_scales {{.*}} at 128 sets 8
// CHECK: pipe.copy_scales {{.*}} at 256 sets 8
// CHECK: pipe.role epilogue
func.func @n64(%a: tensor<300x1024xf4E2M1FN>, %sa: tensor<300x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<64x1024xf4E2M1FN>, %sb: tensor<64x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<300x64xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<300x64xbf16>
  return %y : tensor<300x64xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                    tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                    tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @n128_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0]
// CHECK: pipe.channel from tma to tensor depth 6
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
func.func @n128(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<512x1024xf4E2M1FN>, %sb: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs2, !rhs2) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<129x272xf4E2M1FN>,
                    tensor<129x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<384x272xf4E2M1FN>,
                    tensor<384x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @n192_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0]
// CHECK: pipe.channel from tma to tensor depth 4
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.await_release {{.*}} distance 2
// CHECK: pipe.copy_scales {{.*}} at 384 sets 2
// CHECK: pipe.copy_scales {{.*}} at 416 sets 2
// CHECK: pipe.role epilogue
func.func @n192(%a: tensor<129x272xf4E2M1FN>, %sa: tensor<129x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x272xf4E2M1FN>, %sb: tensor<384x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<129x384xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 192, 256]>}
      : (!lhs3, !rhs3) -> tensor<129x384xf32>
  return %y : tensor<129x384xf32>
}

!lhs4 = !fp4.scaled<nvfp4, tensor<128x1024xf4E2M1FN>,
                    tensor<128x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @n256_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 1 payload [0]
// CHECK: pipe.channel from tma to tensor depth 3
// CHECK: pipe.channel from threads(128) to bulk_store depth 2
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
// The accumulator is given back before any of its elements is staged; four tiles of the result are
// successive stages of one channel.
// CHECK-COUNT-4: pipe.read
// CHECK-NOT: pipe.stage
// CHECK: pipe.consumer_release %accs
// CHECK-COUNT-4: pipe.stage
// CHECK: pipe.role store
// CHECK-COUNT-4: pipe.store
func.func @n256(%a: tensor<128x1024xf4E2M1FN>, %sa: tensor<128x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<512x1024xf4E2M1FN>, %sb: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<128x512xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256]>}
      : (!lhs4, !rhs2) -> tensor<128x512xf16>
  return %y : tensor<128x512xf16>
}

!lhs5 = !fp4.scaled<nvfp4, tensor<1x64xf4E2M1FN>,
                    tensor<1x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<nvfp4, tensor<8x64xf4E2M1FN>,
                    tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @m1n8k64_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 4 payload [0]
// CHECK: pipe.channel from tma to tensor depth 8
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
func.func @m1n8k64(%a: tensor<1x64xf4E2M1FN>, %sa: tensor<1x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<1x8xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs5, !rhs4) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

!lhs6 = !fp4.scaled<mxfp4, tensor<?x352xf4E2M1FN>,
                    tensor<?x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<mxfp4, tensor<200x352xf4E2M1FN>,
                    tensor<200x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @mx200_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0]
// CHECK: pipe.channel from tma to tensor depth 4
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
func.func @mx200(%a: tensor<?x352xf4E2M1FN>, %sa: tensor<?x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<200x352xf4E2M1FN>, %sb: tensor<200x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 192, 256]>}
      : (!lhs6, !rhs5) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!lhs7 = !fp4.scaled<mxfp4, tensor<128x32xf4E2M1FN>,
                    tensor<128x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs6 = !fp4.scaled<mxfp4, tensor<1x32xf4E2M1FN>,
                    tensor<1x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @mxodd_matmul_0
// CHECK: pipe.tmem_columns = 512 : i64
// CHECK: pipe.channel from tensor to threads(128) depth 3 payload [0]
// CHECK: pipe.channel from tma to tensor depth 6
// CHECK: pipe.role load
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
func.func @mxodd(%a: tensor<128x32xf4E2M1FN>, %sa: tensor<128x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<1x32xf4E2M1FN>, %sb: tensor<1x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<128x1xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs7, !rhs6) -> tensor<128x1xf32>
  return %y : tensor<128x1xf32>
}

!lhs8 = !fp4.scaled<mxfp4, tensor<129x160xf4E2M1FN>,
                    tensor<129x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs7 = !fp4.scaled<mxfp4, tensor<1x160xf4E2M1FN>,
                    tensor<1x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// K = 160 has 5 scale columns: the second block of 4 is mostly padding, but exists, so the tile's two
// blocks are copied whole; of its 4 matrix steps, 3 run.
// CHECK-LABEL: gpu.module @mxk160_matmul_0
// CHECK: pipe.role mma
// CHECK-NOT: blocks
// CHECK: pipe.mma {{.*}} existing %c3_i32
func.func @mxk160(%a: tensor<129x160xf4E2M1FN>, %sa: tensor<129x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<1x160xf4E2M1FN>, %sb: tensor<1x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<129x1xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs7
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs8, !rhs7) -> tensor<129x1xbf16>
  return %y : tensor<129x1xbf16>
}
