// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=sms=2 -fp4-plan-kernels | FileCheck %s --check-prefix=FEW
// RUN: fp4-opt %s -fp4-set-target=target=sm_110a -fp4-plan-kernels | FileCheck %s --check-prefix=THOR
// GEMMs on the tensor core: the cost model follows the SMs.

!s = tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>, !s>
// CHECK-LABEL: func @product
// CHECK: fp4.matmul {{.*}}#fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [256, 64, 256], cluster = [2, 1], pair, schedule = #pipe.static_persistent<along_m>,
// CHECK-SAME: roles = #pipe.role_plan<load warps 6 to 7 drives [tma], mma warps 4 to 6 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>, ctas_per_sm = 1>
// FEW-LABEL: func @product
// FEW: fp4.matmul {{.*}}tile = [256, 256, 256]
// THOR-LABEL: func @product
// THOR: fp4.matmul {{.*}}tile = [256, 256, 256]
func.func @product(%a: tensor<1024x1024xf4E2M1FN>, %sa: !s, %b: tensor<1024x1024xf4E2M1FN>, %sb: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}

// A quantizer of both orientations with a transform on the tensor core is two kernels. A strip is
// longer where fewer CTAs take them.
// CHECK-LABEL: func @transform
// CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
// CHECK: fp4.quantize {{.*}}#fp4.plan<tile_transform, tile = [64, 128], strip = 1, schedule = #pipe.static_persistent<along_m>,
// CHECK-SAME: ctas_per_sm = 2>
// CHECK-SAME: outputs = #fp4.outputs<columnwise>
// FEW-LABEL: func @transform
// FEW: fp4.quantize {{.*}}strip = 64
// THOR-LABEL: func @transform
// THOR: fp4.quantize {{.*}}strip = 7
func.func @transform(%x: tensor<4096x512xbf16>, %a: tensor<f32>)
    -> (tensor<4096x512xf4E2M1FN>, tensor<4096x32xf8E4M3FN>, tensor<512x4096xf4E2M1FN>, tensor<512x256xf8E4M3FN>) {
  %q, %s, %qt, %st = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<4096x512xbf16>, tensor<f32>)
      -> (tensor<4096x512xf4E2M1FN>, tensor<4096x32xf8E4M3FN>, tensor<512x4096xf4E2M1FN>, tensor<512x256xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<4096x512xf4E2M1FN>, tensor<4096x32xf8E4M3FN>, tensor<512x4096xf4E2M1FN>, tensor<512x256xf8E4M3FN>
}

// A plan goes with the half that has a kernel of its family.
// CHECK-LABEL: func @halves
// CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
// CHECK: fp4.quantize {{.*}}#fp4.plan<tile_transform, tile = [64, 128], strip = 5,
// CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 64, blocks_per_thread = 1>
// CHECK: fp4.quantize {{.*}}#fp4.plan<tile_transform, tile = [64, 128], strip = 1,
func.func @halves(%x: tensor<4096x512xbf16>, %a: tensor<f32>) {
  %0:4 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, fp4.plan = #fp4.plan<tile_transform, strip = 5>}
      : (tensor<4096x512xbf16>, tensor<f32>)
      -> (tensor<4096x512xf4E2M1FN>, tensor<4096x32xf8E4M3FN>, tensor<512x4096xf4E2M1FN>, tensor<512x256xf8E4M3FN>)
  %1:4 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, fp4.plan = #fp4.plan<stream_blocks, threads = 64>}
      : (tensor<4096x512xbf16>, tensor<f32>)
      -> (tensor<4096x512xf4E2M1FN>, tensor<4096x32xf8E4M3FN>, tensor<512x4096xf4E2M1FN>, tensor<512x256xf8E4M3FN>)
  return
}
