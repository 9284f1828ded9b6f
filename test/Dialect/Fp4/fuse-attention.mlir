// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise -fp4-fuse -canonicalize | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-generalize-elementwise -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS
// An attention's epilogue computes what follows it, as that of a matmul does.

!q = tensor<1x128x4x64xbf16>
!o = tensor<1x128x4x64xf8E4M3FN>
#all = affine_map<(b, i, h, e) -> (b, i, h, e)>
#one = affine_map<(b, i, h, e) -> ()>
// CHECK-LABEL: @bytes
// CHECK: fp4.attention {{.*}} scale 1.250000e-01 inputs(%{{.*}} : tensor<f32>) epilogue {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[F:.*]]: f32):
// CHECK: %[[R:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK: fp4.yield %{{.*}} : f8E4M3FN
// CHECK: } : {{.*}} -> tensor<1x128x4x64xf8E4M3FN>
// CHECK-NEXT: return
// REMARKS: the attention's epilogue computes what follows it
func.func @bytes(%q: !q, %f: tensor<f32>) -> !o {
  %a = fp4.attention %q, %q, %q scale 0.125 : !q, !q, !q -> !q
  %e = tensor.empty() : !o
  %o = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a, %f : !q, tensor<f32>) outs(%e : !o) {
  ^bb0(%x: bf16, %g: f32, %old: f8E4M3FN):
    %w = arith.extf %x : bf16 to f32
    %y = arith.mulf %w, %g : f32
    %z = arith.truncf %y : f32 to f8E4M3FN
    linalg.yield %z : f8E4M3FN
  } -> !o
  return %o : !o
}

// -----

!q = tensor<1x200x4x64xbf16>
// CHECK-LABEL: @codes
// CHECK: %lse, %quantized:2 = fp4.attention {{.*}} causal epilogue {
// CHECK: %[[N:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[C:.*]]:2 = fp4.epilogue_quantize %[[N]]
// CHECK: fp4.yield %[[C]]#0, %[[C]]#1 : f4E2M1FN, f8E8M0FNU
// CHECK: -> , tensor<1x200x4xf32> quantized(tensor<200x256xf4E2M1FN>, tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// REMARKS: the attention gives codes and scales, and its elements are not stored
func.func @codes(%q: !q) -> (tensor<200x256xf4E2M1FN>, tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<1x200x4xf32>) {
  %a, %l = fp4.attention %q, %q, %q scale 0.125 causal : !q, !q, !q -> !q, tensor<1x200x4xf32>
  %m = tensor.collapse_shape %a [[0, 1], [2, 3]] : !q into tensor<200x256xbf16>
  %c, %s = fp4.quantize %m {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<200x256xbf16>) -> (tensor<200x256xf4E2M1FN>, tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  return %c, %s, %l : tensor<200x256xf4E2M1FN>, tensor<200x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<1x200x4xf32>
}

// -----

!q = tensor<2x200x4x64xbf16>
!s = tensor<400x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!t = tensor<4x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
// CHECK-LABEL: @apart
// CHECK-COUNT-2: fp4.quantize
// REMARKS: sequences have parts of one tile of 128 rows of scales
// REMARKS: kernels of few queries leave scales row-major, and nobody clears what pads tiles
func.func @apart(%q: !q, %d: tensor<1x4x8x64xbf16>) -> (tensor<400x256xf4E2M1FN>, !s, tensor<4x512xf4E2M1FN>, !t) {
  %a = fp4.attention %q, %q, %q scale 0.125 causal : !q, !q, !q -> !q
  %m = tensor.collapse_shape %a [[0, 1], [2, 3]] : !q into tensor<400x256xbf16>
  %c, %s = fp4.quantize %m {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<400x256xbf16>) -> (tensor<400x256xf4E2M1FN>, !s)
  %b = fp4.attention %d, %d, %d scale 0.125 causal : tensor<1x4x8x64xbf16>, tensor<1x4x8x64xbf16>, tensor<1x4x8x64xbf16> -> tensor<1x4x8x64xbf16>
  %n = tensor.collapse_shape %b [[0, 1], [2, 3]] : tensor<1x4x8x64xbf16> into tensor<4x512xbf16>
  %e, %t = fp4.quantize %n {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<4x512xbf16>) -> (tensor<4x512xf4E2M1FN>, !t)
  return %c, %s, %e, %t : tensor<400x256xf4E2M1FN>, !s, tensor<4x512xf4E2M1FN>, !t
}

// -----

// Kernels of few queries quantize too, with row-major scales.
// CHECK-LABEL: @few
// CHECK: fp4.epilogue_quantize
// CHECK-NOT: fp4.quantize
// REMARKS: the attention gives codes and scales, and its elements are not stored
func.func @few(%d: tensor<1x4x8x64xbf16>) -> (tensor<4x512xf4E2M1FN>, tensor<4x16xf8E8M0FNU>) {
  %b = fp4.attention %d, %d, %d scale 0.125 causal : tensor<1x4x8x64xbf16>, tensor<1x4x8x64xbf16>, tensor<1x4x8x64xbf16> -> tensor<1x4x8x64xbf16>
  %n = tensor.collapse_shape %b [[0, 1], [2, 3]] : tensor<1x4x8x64xbf16> into tensor<4x512xbf16>
  %e, %t = fp4.quantize %n {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<4x512xbf16>) -> (tensor<4x512xf4E2M1FN>, tensor<4x16xf8E8M0FNU>)
  return %e, %t : tensor<4x512xf4E2M1FN>, tensor<4x16xf8E8M0FNU>
}
