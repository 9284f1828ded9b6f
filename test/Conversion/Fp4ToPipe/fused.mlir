// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s
// A dual GEMM: one load of A for two matrix instructions, and codes that leave the kernel.

!e = tensor<256x1024xf4E2M1FN>
!s = tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// CHECK-LABEL: func.func @gate
// CHECK: gpu.func @kernel
// CHECK: %[[TENSOR:.*]] = pipe.load_entry %{{.*}} : !pipe.global<f32> -> f32
// CHECK: pipe.for_each_work
// CHECK:   %[[UP:.*]] = pipe.accumulator : !pipe.tmem<128x128xf32>
// CHECK:   %[[GATE:.*]] = pipe.accumulator : !pipe.tmem<128x128xf32>
// CHECK:   scf.for
// CHECK:     %[[A:.*]] = pipe.load %
// CHECK-COUNT-2: pipe.load %
// CHECK:     pipe.load
// CHECK-NEXT: pipe.copy_scales
// CHECK:     pipe.load
// CHECK-NEXT: pipe.copy_scales
// CHECK:     pipe.load
// CHECK-NEXT: pipe.copy_scales
// CHECK:     pipe.mma %[[UP]], %[[A]] scaled %[[SA:.*]], %
// CHECK:     pipe.mma %[[GATE]], %[[A]] scaled %[[SA]], %
// CHECK-NOT: pipe.mma
// The tile has no second pair of accumulators: all of it is read before codes are stored.
// CHECK:   pipe.read %[[UP]][%c0_i32]
// CHECK:   pipe.read %[[GATE]][%c0_i32]
// CHECK:   pipe.quantize_blocks %{{.*}} amax %[[TENSOR]] {recipe = #fp4.recipe<transformer_engine>, resident} : tensor<128x64xbf16, #pipe.distribution<lanes>>
// CHECK:   pipe.read %[[UP]][%c64_i32]
// CHECK:   pipe.quantize_blocks
// CHECK-NOT: pipe.quantize_blocks
// CHECK-COUNT-2: pipe.store %{{.*}} : tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>
// CHECK-NOT: tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global
func.func @gate(%a: !e, %b: !e, %c: !e, %s: !s, %amax: tensor<f32>)
    -> (tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %s : !operand
  %c_scaled = fp4.scaled %c, %s : !operand
  %q, %t = fp4.matmul %a_scaled, %b_scaled with %c_scaled epilogue(%amax) {
  ^bb0(%x: f32, %y: f32, %amax_in: f32):
    %product = arith.mulf %x, %y : f32
    %rounded = arith.truncf %product : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %rounded amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], epilogue_warps = 4>}
      : (!operand, !operand, !operand, tensor<f32>)
      -> (tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %t : tensor<256x256xf4E2M1FN>, tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

!e = tensor<160x256xf4E2M1FN>
!s = tensor<160x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
// The host sets the amax to zero, and scales of columns whose rows are padded; the maxima of a tile go into one.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-2: gpu.memset
// CHECK: gpu.func @kernel
// CHECK: %[[FIRST:.*]] = pipe.amax %{{.*}} rows %c160_i32 of %c160_i32{{.*}} : tensor<128x32xf32, #pipe.distribution<lanes>>
// CHECK: %[[TURNED:.*]] = pipe.transpose %{{.*}} : tensor<128x32xf32, #pipe.distribution<lanes>> -> tensor<128x32xf32, #pipe.distribution<columns>>
// CHECK: pipe.quantize_blocks %[[TURNED]] {columnwise, recipe = #fp4.recipe<ocp_floor>, resident} : tensor<128x32xf32, #pipe.distribution<columns>>
// CHECK: %[[SECOND:.*]] = pipe.amax %{{.*}} of %c160_i32{{.*}} and %[[FIRST]] : tensor<128x32xf32, #pipe.distribution<lanes>>
// CHECK: pipe.store %{{.*}} : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<160x160xf4E2M1FN>
// CHECK: pipe.fold_amax %{{.*}}, %{{.*}} : !pipe.global<f32>
func.func @columns(%a: !e, %s: !s) -> (tensor<160x160xf4E2M1FN>, tensor<160x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %q, %t, %m = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    %amax_out = fp4.epilogue_amax %x : f32 -> f32
    fp4.yield %code, %scale, %amax_out : f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, epilogue_warps = 4>}
      : (!operand, !operand)
      -> (tensor<160x160xf4E2M1FN>, tensor<160x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
          tensor<f32>)
  return %q, %t, %m : tensor<160x160xf4E2M1FN>, tensor<160x5xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}
