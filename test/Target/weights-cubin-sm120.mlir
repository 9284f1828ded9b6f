// ptxas accepts GEMMs of floats and weights for sm_120a without spills, with every tile: no more than the 168
// registers that 288 threads leave to each. The widest of plain weights have 64 sums in a thread, of prepacked ones 128.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_120a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: half16_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: powers32_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t64_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: powers128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: half128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: split32_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: packed8_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: packed32_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: packed128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: half_packed128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: packed256_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: wide64_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: bytes_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!w = tensor<4096x2048xf4E2M1FN>
!s = tensor<4096x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<4096x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!p = tensor<32x32x4608xi8, #fp4.weight_layout<wgmma>>
!q = tensor<32x32x4352xi8, #fp4.weight_layout<wgmma>>

!rhs = !fp4.scaled<nvfp4, !w, !s>
func.func @few(%x: tensor<?x2048xbf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [8, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @half16(%x: tensor<?x2048xf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [16, 128, 128]>}
      : (tensor<?x2048xf16>, !rhs, tensor<f32>) -> tensor<?x4096xf16>
  return %y : tensor<?x4096xf16>
}
!rhs2 = !fp4.scaled<mxfp4, !w, !t>
func.func @powers32(%x: tensor<?x2048xbf16>, %w: !w, %s: !t, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs2, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t64(%x: tensor<?x2048xbf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t128(%x: tensor<?x2048xbf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @powers128(%x: tensor<?x2048xbf16>, %w: !w, %s: !t, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs2, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @half128(%x: tensor<?x2048xf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xf16>, !rhs, tensor<f32>) -> tensor<?x4096xf16>
  return %y : tensor<?x4096xf16>
}
func.func @split32(%x: tensor<?x2048xbf16>, %w: !w, %s: !s, %a: tensor<f32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled alpha %a
      {work = #fp4.work<split_k = 4>, fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<?x2048xbf16>, !rhs, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @packed8(%x: tensor<?x2048xbf16>, %w: !p) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [8, 128, 128]>}
      : (tensor<?x2048xbf16>, !p) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @packed32(%x: tensor<?x2048xbf16>, %w: !q) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<?x2048xbf16>, !q) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @packed128(%x: tensor<?x2048xbf16>, %w: !p) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xbf16>, !p) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @half_packed128(%x: tensor<?x2048xf16>, %w: !p) -> tensor<?x4096xf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xf16>, !p) -> tensor<?x4096xf16>
  return %y : tensor<?x4096xf16>
}
func.func @packed256(%x: tensor<?x2048xbf16>, %w: !q) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 64]>}
      : (tensor<?x2048xbf16>, !q) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @wide64(%x: tensor<?x2048xbf16>, %w: !p) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 128]>}
      : (tensor<?x2048xbf16>, !p) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @bytes(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: !t, %a: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2048xf8E4M3FN>, !rhs2, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
