// ptxas accepts GEMMs of 16-bit floats and fp4 weights for sm_100a and sm_103a without spills: of small M, and of a
// tile whose columns a thread holds in registers. K of the prepacked ones ends within a k tile. A bias, GELU and a
// residual of any number of rows need the registers that other roles give away. Beside e4m3 a thread reads 64 sums at a
// time, for which a launch of 768 threads has too few registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s

// CHECK-DAG: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: many_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: ones_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: packed_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: packed_powers_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: body_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: tall_body_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: promoted_matmul_0 kernel: registers 128, spill 0, stack 0
// CHECK-DAG: promoted_few_matmul_0 kernel: registers 80, spill 0, stack 0

!w = tensor<8192x8192xf4E2M1FN>
!t = tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!m = tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<nvfp4, !w, !t>
func.func @few(%x: tensor<?x8192xf16>, %w: !w, %t: !t) -> tensor<?x8192xf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [16, 128, 128]>}
      : (tensor<?x8192xf16>, !rhs) -> tensor<?x8192xf16>
  return %y : tensor<?x8192xf16>
}
!rhs2 = !fp4.scaled<mxfp4, !w, !m>
func.func @many(%x: tensor<4096x8192xbf16>, %w: !w, %t: !m, %a: tensor<4096x1xf32>) -> tensor<4096x8192xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %a {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<4096x8192xbf16>, !rhs2, tensor<4096x1xf32>) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}
func.func @ones(%x: tensor<4096x8192xf8E4M3FN>, %w: !w, %t: !m, %a: tensor<4096x1xf32>) -> tensor<4096x8192xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs2
  %y = fp4.matmul %x, %w_scaled alpha %a
      : (tensor<4096x8192xf8E4M3FN>, !rhs2, tensor<4096x1xf32>) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}
func.func @packed(%x: tensor<?x2880xbf16>, %p: tensor<45x45x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x5760xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x2880xbf16>, tensor<45x45x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<?x5760xbf16>
  return %y : tensor<?x5760xbf16>
}
func.func @packed_powers(%x: tensor<?x2880xbf16>, %p: tensor<45x45x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x5760xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<?x2880xbf16>, tensor<45x45x4352xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<?x5760xbf16>
  return %y : tensor<?x5760xbf16>
}
func.func @body(%x: tensor<?x8192xbf16>, %w: !w, %t: !t, %bias: tensor<1x8192xf32>, %more: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled epilogue(%bias, %more) {
  ^bb0(%s: f32, %b: f32, %r: bf16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %z = arith.addf %s, %b : f32
    %square = arith.mulf %z, %z : f32
    %slope = arith.mulf %square, %cube : f32
    %sum = arith.addf %slope, %root : f32
    %inner = arith.mulf %sum, %z : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %z, %half : f32
    %act = arith.mulf %above, %halved : f32
    %wide = arith.extf %r : bf16 to f32
    %e = arith.addf %act, %wide : f32
    %narrow = arith.truncf %e : f32 to bf16
    fp4.yield %narrow : bf16
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (tensor<?x8192xbf16>, !rhs, tensor<1x8192xf32>, tensor<?x8192xbf16>) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}
func.func @tall_body(%x: tensor<?x8192xbf16>, %w: !w, %t: !m, %bias: tensor<1x8192xf32>, %more: tensor<?x8192xbf16>) -> tensor<?x8192xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs2
  %y = fp4.matmul %x, %w_scaled epilogue(%bias, %more) {
  ^bb0(%s: f32, %b: f32, %r: bf16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %z = arith.addf %s, %b : f32
    %square = arith.mulf %z, %z : f32
    %slope = arith.mulf %square, %cube : f32
    %sum = arith.addf %slope, %root : f32
    %inner = arith.mulf %sum, %z : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %z, %half : f32
    %act = arith.mulf %above, %halved : f32
    %wide = arith.extf %r : bf16 to f32
    %e = arith.addf %act, %wide : f32
    %narrow = arith.truncf %e : f32 to bf16
    fp4.yield %narrow : bf16
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x8192xbf16>, !rhs2, tensor<1x8192xf32>, tensor<?x8192xbf16>) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}
func.func @promoted(%x: tensor<?x4096xf8E4M3FN>, %p: tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>}
      : (tensor<?x4096xf8E4M3FN>, tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @promoted_few(%x: tensor<?x4096xf8E4M3FN>, %p: tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x4096xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<?x4096xf8E4M3FN>, tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
