// ptxas accepts the GEMMs of mma.sync for sm_120a, of every shape of fragment and both formats: no spills,
// no stack, and at most the 168 registers that 288 threads leave to each.
// REQUIRES: ptxas
// RUN: fp4-opt %s --compile-to=cubin --target=sm_120a | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | tee %t | FileCheck %s
// RUN: fp4-opt %s --compile-to=ptx --target=sm_121a | FileCheck %s --check-prefix=PTX

// CHECK: chosen_matmul_0 kernel: registers {{[1-9][0-9]+}}, spill 0, stack 0
// CHECK: wide_matmul_0 kernel: registers {{[1-9][0-9]+}}, spill 0, stack 0
// CHECK: deep_matmul_0 kernel: registers {{[1-9][0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[1-9][0-9]}}, spill 0, stack 0
// CHECK: mxfp4_matmul_0 kernel: registers {{[1-9][0-9]+}}, spill 0, stack 0

// Two steps of a k tile: a warp with 32 x 64 reads A with two instructions and B with four, and
// multiplies 16 times. The reads are fenced before the MMAs of the last step.
// PTX: .target sm_121a
// PTX: .minnctapersm 1
// PTX-COUNT-12: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: fence.proxy.async
// PTX-NOT: ldmatrix
// PTX: mbarrier.arrive

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<384x1024xf4E2M1FN>,
                   tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @chosen(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x1024xf4E2M1FN>, %sb: tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<?x384xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}
func.func @wide(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x1024xf4E2M1FN>, %sb: tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<?x384xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 128]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xf32>
  return %y : tensor<?x384xf32>
}
func.func @deep(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x1024xf4E2M1FN>, %sb: tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<?x384xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xf16>
  return %y : tensor<?x384xf16>
}
func.func @few(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x1024xf4E2M1FN>, %sb: tensor<384x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<?x384xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [16, 64, 128]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}
!lhs2 = !fp4.scaled<mxfp4, tensor<?x1024xf4E2M1FN>,
                    tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<384x1024xf4E2M1FN>,
                    tensor<384x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @mxfp4(%a: tensor<?x1024xf4E2M1FN>, %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<384x1024xf4E2M1FN>, %sb: tensor<384x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<?x384xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs2, !rhs2, tensor<f32>) -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}
