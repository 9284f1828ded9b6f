// Results of GEMMs of FP8 with f32 scales through shared memory and TMA stores, on sm_90a: all of a tile at a
// time or parts of it, of one warpgroup and of two, columns of two widths of swizzles, M at run time, ragged M and N.
// Groups, whose last tiles reach into the next group, and rows of no group, store whole tiles that way.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=bf16 --shape=300 --check=strict --policy=random --plan "tile_gemm, tile = [256, 128, 128], store = tma" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=bf16 --shape=600 --check=strict --policy=lazy --plan "tile_gemm, tile = [256, 64, 128], store = tma, stages = 3" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=bf16 --shape=600 --check=strict --policy=delay --plan "tile_gemm, tile = [128, 192, 128], store = tma, stages = 4" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=f16 --check=strict --policy=random --plan "tile_gemm, tile = [64, 32, 128], store = tma" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=f16 --check=strict --policy=lazy --plan "tile_gemm, tile = [64, 96, 128], store = tma" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=groups --check=strict --policy=random --plan "tile_gemm, tile = [128, 64, 128], store = tma" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=ranges --check=strict --policy=delay --plan "tile_gemm, tile = [256, 32, 128], store = tma" | FileCheck %s
// CHECK: y {{.*}}equals the wgmma model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

// RUN: rm -rf %t && mkdir %t && fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [256, 128, 128], store = tma" -o %t/ && FileCheck %s --check-prefix=PTX < %t/bf16_matmul_0.ptx
// PTX-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: fence.proxy.async.shared::cta
// PTX-NEXT: bar.warp.sync
// PTX: mbarrier.arrive.shared.b64
// PTX: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// PTX-NOT: st.global

// With more than eight k tiles, all of a tile is one stage: one fence and one arrival.
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=deep --check=strict --policy=random --plan "tile_gemm, tile = [128, 192, 128], store = tma" --sms=2 | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=deep --check=strict --policy=lazy --plan "tile_gemm, tile = [256, 64, 128], store = tma" --sms=1 | FileCheck %s
// RUN: rm -rf %t && mkdir %t && fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_gemm, tile = [128, 192, 128], store = tma" -o %t/ && FileCheck %s --check-prefix=DEEP < %t/deep_matmul_0.ptx
// DEEP-COUNT-12: stmatrix.sync.aligned.m8n8.x4.shared.b16
// DEEP: fence.proxy.async.shared::cta
// DEEP-NOT: stmatrix
// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels="plans='tile_gemm, tile = [128, 56, 128], store = tma'" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: must have a plan whose 'store' is direct for elements of other than 16 bits and for tiles whose columns are no multiple of 32, but got tma

// One role that fills the tiles and stores them would need no channel, and nobody would wait for the copies.
// RUN: not fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels="plans='tile_gemm, tile = [128, 64, 128], store = tma, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads, bulk_store]>'" 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels="plans='tile_gemm, tile = [128, 64, 128], store = tma, roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads], store warps 9 to 10 drives [bulk_store]>'" > /dev/null
// ROLES: error: {{.*}}must have a plan whose 'roles' drive the engines threads and bulk_store from two roles

!lhs = !fp4.scaled<fp8_block128, tensor<?x1024xf8E4M3FN>, tensor<?x8xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<264x1024xf8E4M3FN>, tensor<3x8xf32>>
func.func @bf16(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x8xf32>, %b: tensor<264x1024xf8E4M3FN>, %sb: tensor<3x8xf32>)
    -> (tensor<?x264xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x264xbf16>
  return %y : tensor<?x264xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<640x1152xf8E4M3FN>, tensor<640x9xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<512x1152xf8E4M3FN>, tensor<4x9xf32>>
// Groups with gaps, of nine k tiles; the last tile of the second ends before its box.
func.func @deep(%a: tensor<640x1152xf8E4M3FN>, %sa: tensor<640x9xf32>, %b: tensor<512x1152xf8E4M3FN>, %sb: tensor<4x9xf32>)
    -> (tensor<640x256xbf16> {fp4.name = "y"}) {
  %o = arith.constant dense<[[0, 256], [300, 620]]> : tensor<2x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs2, !rhs2, tensor<2x2xi64>) -> tensor<640x256xbf16>
  return %y : tensor<640x256xbf16>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<70x512xf8E4M3FN>, tensor<70x4xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @f16(%a: tensor<70x512xf8E4M3FN>, %sa: tensor<70x4xf32>, %b: tensor<200x512xf8E4M3FN>, %sb: tensor<2x4xf32>, %alpha: tensor<1x200xf32>)
    -> (tensor<70x200xf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {epilogue = #fp4.epilogue<relu>}
      : (!lhs3, !rhs3, tensor<1x200xf32>) -> tensor<70x200xf16>
  return %y : tensor<70x200xf16>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<420x272xf8E4M3FN>, tensor<420x3xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<160x272xf8E4M3FN>, tensor<4x3xf32>>
func.func @groups(%a: tensor<420x272xf8E4M3FN>, %sa: tensor<420x3xf32>, %b: tensor<160x272xf8E4M3FN>, %sb: tensor<4x3xf32>)
    -> (tensor<420x40xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [270, 0, 1, 149]>}
      : (!lhs4, !rhs4) -> tensor<420x40xbf16>
  return %y : tensor<420x40xbf16>
}

!lhs5 = !fp4.scaled<fp8_block128, tensor<700x512xf8E4M3FN>, tensor<700x4xf32>>
!rhs5 = !fp4.scaled<fp8_block128, tensor<80x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @ranges(%a: tensor<700x512xf8E4M3FN>, %sa: tensor<700x4xf32>, %b: tensor<80x512xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> (tensor<700x40xbf16> {fp4.name = "y"}) {
  %o = arith.constant dense<[[3, 290], [310, 690]]> : tensor<2x2xi64>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs5, !rhs5, tensor<2x2xi64>) -> tensor<700x40xbf16>
  return %y : tensor<700x40xbf16>
}
