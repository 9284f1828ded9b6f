// Scales are read in a loop and once more in the loop around: the inner loop is unrolled, and the outer one stays.
// RUN: fp4-opt %s --pipe-expand-work --pipe-unroll | FileCheck %s
// CHECK: pipe.mma
module attributes {fp4.target = #fp4.target<sm_90a>, gpu.container_module} {
  gpu.module @staged_matmul_1 {
    gpu.func @kernel(%arg0: !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B, residue>, %arg1: !pipe.tensor_map<16x128xf8E4M3FN, swizzle_128B>, %arg2: !pipe.tensor_map<128x4xf32, residue>, %arg3: !pipe.tensor_map<1x4xf32>, %arg4: !pipe.global<?x264xbf16>, %arg5: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>, pipe.shared_bytes = 165128 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 165120 : i64} {
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c4_i32 = arith.constant 4 : i32
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c17_i32 = arith.constant 17 : i32
      %c128_i32 = arith.constant 128 : i32
      %c127_i32 = arith.constant 127 : i32
      %0 = arith.addi %arg5, %c127_i32 : i32
      %1 = arith.divui %0, %c128_i32 : i32
      %tiles = pipe.channel from tma to threads(256) depth 8 payload [147456, 163840] barriers 164864 : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
      %tiles_0 = pipe.channel from tma to threads(256) depth 8 payload [0, 131072] barriers 164992 : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
      pipe.role load warps 8 to 9 drives [tma] registers 40 {
        %2:2 = pipe.for_each_work %m, %n in (%1, %c17_i32) schedule #pipe.static_persistent<along_m> iter_args(%arg6 = %c0_i32, %arg7 = %c0_i32) -> (i32, i32) {
          %3 = arith.muli %m, %c128_i32 : i32
          %4 = pipe.existing_rows %arg5 from %3 of 128
          %5 = arith.muli %n, %c16_i32 : i32
          %6:2 = scf.for %arg8 = %c0_i32 to %c8_i32 step %c4_i32 iter_args(%arg9 = %arg6, %arg10 = %arg7) -> (i32, i32)  : i32 {
            %7 = arith.divui %5, %c128_i32 : i32
            %tile, %tile_1 = pipe.producer_acquire %tiles[%arg9] : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            %8 = arith.muli %4, %c16_i32 : i32
            %9 = arith.addi %8, %c16_i32 : i32
            pipe.expect_tx %tiles[%arg9], %9 : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            pipe.load %arg2[%3, %arg8] existing %4 into %tile signals %tiles[%arg9] : !pipe.tensor_map<128x4xf32, residue>, !pipe.shared<128x4xf32>, !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            pipe.load %arg3[%7, %arg8] into %tile_1 signals %tiles[%arg9] : !pipe.tensor_map<1x4xf32>, !pipe.shared<1x4xf32>, !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            pipe.producer_commit %tiles[%arg9] : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            %10 = arith.addi %arg9, %c1_i32 : i32
            %11 = scf.for %arg11 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg12 = %arg10) -> (i32)  : i32 {
              %12 = arith.addi %arg8, %arg11 : i32
              %13 = arith.muli %12, %c128_i32 : i32
              %tile_2, %tile_3 = pipe.producer_acquire %tiles_0[%arg12] : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              %c2048_i32 = arith.constant 2048 : i32
              %14 = arith.muli %4, %c128_i32 : i32
              %15 = arith.addi %14, %c2048_i32 : i32
              pipe.expect_tx %tiles_0[%arg12], %15 : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              pipe.load %arg0[%3, %13] existing %4 into %tile_2 signals %tiles_0[%arg12] : !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B, residue>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              pipe.load %arg1[%5, %13] into %tile_3 signals %tiles_0[%arg12] : !pipe.tensor_map<16x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>, !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              pipe.producer_commit %tiles_0[%arg12] : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              %16 = arith.addi %arg12, %c1_i32 : i32
              scf.yield %16 : i32
            }
            scf.yield %10, %11 : i32, i32
          }
          pipe.yield %6#0, %6#1 : i32, i32
        }
      }
      pipe.role math warps 0 to 8 drives [tensor, threads] registers 232 {
        %2:2 = pipe.for_each_work %m, %n in (%1, %c17_i32) schedule #pipe.static_persistent<along_m> iter_args(%arg6 = %c0_i32, %arg7 = %c0_i32) -> (i32, i32) {
          %3 = arith.muli %m, %c128_i32 : i32
          %4 = arith.muli %n, %c16_i32 : i32
          %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
          %5:2 = scf.for %arg8 = %c0_i32 to %c8_i32 step %c4_i32 iter_args(%arg9 = %arg6, %arg10 = %arg7) -> (i32, i32)  : i32 {
            %tile, %tile_1 = pipe.consumer_wait %tiles[%arg9] : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            %8 = scf.for %arg11 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg12 = %arg10) -> (i32)  : i32 {
              %acc_2 = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
              %10 = pipe.scales %tile[0], %tile_1 block %arg11 : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
              %tile_3, %tile_4 = pipe.consumer_wait %tiles_0[%arg12] : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              pipe.mma %acc_2, %tile_3, %tile_4 : !pipe.fragment<64x16xf32, wgmma>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>
              pipe.consumer_release %tiles_0[%arg12] : !pipe.channel<!pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<16x128xf8E4M3FN, swizzle_128B>>
              %11 = arith.addi %arg12, %c1_i32 : i32
              pipe.promote %acc, %acc_2 scaled %10 at %4 : !pipe.fragment<64x16xf32, wgmma>, !pipe.fragment<64x16xf32, wgmma>, vector<3xf32>
              scf.yield %11 : i32
            }
%zz = pipe.scales %tile[0], %tile_1 block %c0_i32 : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
            pipe.consumer_release %tiles[%arg9] : !pipe.channel<!pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>>
            %9 = arith.addi %arg9, %c1_i32 : i32
            scf.yield %9, %8 : i32, i32
          }
          %6 = pipe.read %acc[0] : !pipe.fragment<64x16xf32, wgmma> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
          %7 = arith.truncf %6 : tensor<64x16xf32, #pipe.distribution<wgmma>> to tensor<64x16xbf16, #pipe.distribution<wgmma>>
          pipe.store %7, %arg4[%3, %4] rows %arg5 : tensor<64x16xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x264xbf16>
          pipe.yield %5#0, %5#1 : i32, i32
        }
      }
      pipe.role spare warps 9 to 12 drives [threads] registers 40 auxiliary {
      }
      gpu.return
    }
  }
}