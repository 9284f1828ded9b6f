// The warp that copies scales, if a plan leaves it open. A copy takes 168 cycles, of which one MMA hides: with 64 columns 32
// cycles, with 128 64, and of a pair with 256 columns 128. The rest is hidden where loads take longer than both.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s

// 1024 tiles of 128 x 128 for 148 SMs, by which L2 delivers 88 bytes a cycle at 1.3 GHz: 36864 bytes of a k tile take 421
// cycles, and its MMAs 256. One warp hides the other 104.
// CHECK-LABEL: @many
// CHECK: mma_warps = 1, {{.*}}mma warps 4 to 5 drives [tensor, scale_copy]
!s = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>, !s>
func.func @many(%a: tensor<4096x4096xf4E2M1FN>, %sa: !s, %b: tensor<4096x4096xf4E2M1FN>, %sb: !s) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!operand, !operand) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

// -----

// A pair loads less: 38912 bytes take 444 cycles, the MMAs 512, and 40 cycles are left.
// CHECK-LABEL: @pairs
// CHECK-NOT: mma_warps
// CHECK: mma warps 4 to 6 drives [tensor, scale_copy]
!s = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>, !s>
func.func @pairs(%a: tensor<4096x4096xf4E2M1FN>, %sa: !s, %b: tensor<4096x4096xf4E2M1FN>, %sb: !s) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256]>}
      : (!operand, !operand) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

// -----

// 32 tiles get 122 bytes a cycle each: loads take 302 cycles, and the MMAs of one warp 360.
// CHECK-LABEL: @few
// CHECK-NOT: mma_warps
// CHECK: mma warps 4 to 6 drives [tensor, scale_copy]
!s = tensor<128x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<128x4096xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>, !t>
func.func @few(%a: tensor<128x4096xf4E2M1FN>, %sa: !s, %b: tensor<4096x4096xf4E2M1FN>, %sb: !t) -> tensor<128x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}

// -----

// Nobody knows how many tiles there are.
// CHECK-LABEL: @dynamic
// CHECK-NOT: mma_warps
// CHECK: mma warps 4 to 6 drives [tensor, scale_copy]
!s = tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<?x4096xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>, !t>
func.func @dynamic(%a: tensor<?x4096xf4E2M1FN>, %sa: !s, %b: tensor<4096x4096xf4E2M1FN>, %sb: !t) -> tensor<?x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

// -----

// Rows that do not exist are not loaded: 22528 bytes for 16 rows of A and 128 of B, with their scales, take 257 cycles.
// CHECK-LABEL: @rows
// CHECK-NOT: mma_warps
// CHECK: mma warps 4 to 6 drives [tensor, scale_copy]
!s = tensor<16x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<65536x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<16x4096xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<65536x4096xf4E2M1FN>, !t>
func.func @rows(%a: tensor<16x4096xf4E2M1FN>, %sa: !s, %b: tensor<65536x4096xf4E2M1FN>, %sb: !t) -> tensor<16x65536xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<16x65536xbf16>
  return %y : tensor<16x65536xbf16>
}

// -----

// The last wave of 512 tiles has 68, which get more bytes.
// CHECK-LABEL: @last
// CHECK-NOT: mma_warps
// CHECK: mma warps 4 to 6 drives [tensor, scale_copy]
!s = tensor<2048x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<2048x4096xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>, !t>
func.func @last(%a: tensor<2048x4096xf4E2M1FN>, %sa: !s, %b: tensor<4096x4096xf4E2M1FN>, %sb: !t) -> tensor<2048x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<2048x4096xbf16>
  return %y : tensor<2048x4096xbf16>
}

// -----

// One wave of 148 tiles of 256 columns: loads take 631 cycles, MMAs 512, and one MMA hides 128 cycles of a copy.
// CHECK-LABEL: @hidden
// CHECK: mma_warps = 1, {{.*}}mma warps 4 to 5 drives [tensor, scale_copy]
!s = tensor<4736x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<1024x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<4736x4096xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<1024x4096xf4E2M1FN>, !t>
func.func @hidden(%a: tensor<4736x4096xf4E2M1FN>, %sa: !s, %b: tensor<1024x4096xf4E2M1FN>, %sb: !t) -> tensor<4736x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 256]>}
      : (!lhs, !rhs) -> tensor<4736x1024xbf16>
  return %y : tensor<4736x1024xbf16>
}
