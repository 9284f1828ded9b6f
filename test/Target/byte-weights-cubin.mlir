// ptxas accepts GEMMs of e4m3 activations and prepacked MXFP4 weights for sm_90a without spills, with
// every tile that has many registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: t8x128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t32x128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t64x128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t96x128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t128x128_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: held_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: ranges_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: ahead_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: ahead_convert_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: ahead_ranges_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: ahead_ranges_convert_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: t64x256_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: fast_deep_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: fast_tall_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: fast_joined_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

!w = tensor<32x16x8704xi8, #fp4.weight_layout<wgmma>>

func.func @t8x128(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [8, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t32x128(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t64x128(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t96x128(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [96, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t128x128(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @held(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @ranges(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @ahead(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], route = <a = pre>>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @ahead_ranges(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s
      {work = #fp4.work<split_k = 3>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], route = <a = pre>>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @t64x256(%x: tensor<?x2048xf8E4M3FN>, %w: !w, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !w, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

!r = tensor<32x16x8704xi8, #fp4.weight_layout<wgmma_rows>>

func.func @fast_deep(%x: tensor<?x2048xf8E4M3FN>, %w: !r, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s
      {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (tensor<?x2048xf8E4M3FN>, !r, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @fast_tall(%x: tensor<?x2048xf8E4M3FN>, %w: !r, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s
      {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x2048xf8E4M3FN>, !r, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @fast_joined(%x: tensor<?x2048xf8E4M3FN>, %w: !r, %s: tensor<?x1xf32>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %w alpha %s
      {work = #fp4.work<split_k = 2>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], cluster = [2, 1]>}
      : (tensor<?x2048xf8E4M3FN>, !r, tensor<?x1xf32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
