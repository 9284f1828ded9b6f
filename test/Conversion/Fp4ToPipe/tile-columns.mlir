// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s

// The cost model's choices for NVFP4 on 148 SMs, K = 1024 or 4096. A change of the model
// that moves one of them should say why.

!lhs = !fp4.scaled<nvfp4, tensor<1x4096xf4E2M1FN>,
                   tensor<1x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<4096x4096xf4E2M1FN>,
                   tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @decode_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<128x64xf32>
func.func @decode(%a: tensor<1x4096xf4E2M1FN>, %sa: tensor<1x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<4096x4096xf4E2M1FN>, %sb: tensor<4096x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<1x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<1x4096xbf16>
  return %y : tensor<1x4096xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<4096x1024xf4E2M1FN>,
                    tensor<4096x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<8x1024xf4E2M1FN>,
                    tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Only 8 of the 64 rows of B exist, so there is nothing for a pair to share.
// CHECK-LABEL: gpu.module @narrow_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<128x64xf32>
func.func @narrow(%a: tensor<4096x1024xf4E2M1FN>, %sa: tensor<4096x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<8x1024xf4E2M1FN>, %sb: tensor<8x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<4096x8xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<4096x8xbf16>
  return %y : tensor<4096x8xbf16>
}

!operand = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>,
                       tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @square_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<256x64xf32, pair>
func.func @square(%a: tensor<1024x1024xf4E2M1FN>, %sa: tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<1024x1024xf4E2M1FN>, %sb: tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<2368x4096xf4E2M1FN>,
                    tensor<2368x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<2048x4096xf4E2M1FN>,
                    tensor<2048x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @wave_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<256x192xf32, pair>
func.func @wave(%a: tensor<2368x4096xf4E2M1FN>, %sa: tensor<2368x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<2048x4096xf4E2M1FN>, %sb: tensor<2048x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<2368x2048xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs3) -> tensor<2368x2048xbf16>
  return %y : tensor<2368x2048xbf16>
}

!operand2 = !fp4.scaled<nvfp4, tensor<8192x4096xf4E2M1FN>,
                        tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Registers hold all 256 columns of 16-bit results, so the one accumulator is given back before they
// are stored.
// CHECK-LABEL: gpu.module @large_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<256x256xf32, pair>
func.func @large(%a: tensor<8192x4096xf4E2M1FN>, %sa: tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<8192x4096xf4E2M1FN>, %sb: tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8192x8192xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand2
  %b_scaled = fp4.scaled %b, %sb : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<8192x8192xbf16>
  return %y : tensor<8192x8192xbf16>
}

!lhs4 = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                    tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                    tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: gpu.module @dynamic_matmul_0
// CHECK: pipe.accumulator : !pipe.tmem<256x128xf32, pair>
func.func @dynamic(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<512x1024xf4E2M1FN>, %sb: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs4, !rhs4) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

