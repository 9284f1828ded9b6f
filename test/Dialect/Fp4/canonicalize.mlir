// RUN: fp4-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func @unswizzle_of_swizzle
// CHECK-SAME: (%[[S:.*]]: tensor<?x64xf8E4M3FN>)
// CHECK-NEXT: return %[[S]]
func.func @unswizzle_of_swizzle(%s: tensor<?x64xf8E4M3FN>) -> tensor<?x64xf8E4M3FN> {
  %0 = fp4.swizzle_scales %s : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %1 = fp4.unswizzle_scales %0 : tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<?x64xf8E4M3FN>
  return %1 : tensor<?x64xf8E4M3FN>
}

// -----

// CHECK-LABEL: func @swizzle_of_unswizzle
// CHECK-SAME: (%[[S:.*]]: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT: return %[[S]]
func.func @swizzle_of_unswizzle(%s: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {
  %0 = fp4.unswizzle_scales %s : tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> -> tensor<8x4xf8E8M0FNU>
  %1 = fp4.swizzle_scales %0 : tensor<8x4xf8E8M0FNU> -> tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %1 : tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

// A static function called with forgetful types becomes static again, and so do its kernels.
// CHECK-LABEL: func @absorb_casts
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]] = fp4.quantize %{{.*}} : (tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU>)
// CHECK-NEXT:    %[[SW:.*]] = fp4.swizzle_scales %[[S]] : tensor<64x2xf8E8M0FNU>
// CHECK-NEXT:    %[[Y:.*]] = fp4.blockscaled_matmul %[[Q]] scaled %[[SW]], {{.*}} -> tensor<64x64xbf16>
// CHECK-NEXT:    %[[D:.*]] = fp4.dequantize {{.*}} -> tensor<64x64xf32>
// CHECK-NEXT:    return %[[Y]], %[[D]]
func.func @absorb_casts(%x: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xf32>) {
  %d = tensor.cast %x : tensor<64x64xbf16> to tensor<?x64xbf16>
  %q, %s = fp4.quantize %d {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  %sw = fp4.swizzle_scales %s : tensor<?x2xf8E8M0FNU> -> tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %qs = tensor.cast %q : tensor<?x64xf4E2M1FN> to tensor<64x64xf4E2M1FN>
  %ss = tensor.cast %sw : tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> to tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %y = fp4.blockscaled_matmul %q scaled %sw, %qs scaled %ss {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x64xbf16>
  %z = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>) -> tensor<?x64xf32>
  %0 = tensor.cast %y : tensor<?x64xbf16> to tensor<64x64xbf16>
  %1 = tensor.cast %z : tensor<?x64xf32> to tensor<64x64xf32>
  return %0, %1 : tensor<64x64xbf16>, tensor<64x64xf32>
}

// -----

// Scales that are written in a layout stay in it.
// CHECK-LABEL: func @absorb_cast_tiled
// CHECK-NEXT:    %{{.*}}, %[[S:.*]] = fp4.quantize %{{.*}} -> (tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    return %[[S]]
func.func @absorb_cast_tiled(%x: tensor<64x64xbf16>) -> tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {
  %d = tensor.cast %x : tensor<64x64xbf16> to tensor<?x64xbf16>
  %q, %s = fp4.quantize %d {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  %0 = tensor.cast %s : tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> to tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %0 : tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Only the data is cast: its scales stay dynamic, and so must the data.
// CHECK-LABEL: func @half_cast
// CHECK:         tensor.cast
// CHECK:         fp4.dequantize {{.*}} (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32>
func.func @half_cast(%q: tensor<4x32xf4E2M1FN>, %s: tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32> {
  %d = tensor.cast %q : tensor<4x32xf4E2M1FN> to tensor<?x32xf4E2M1FN>
  %0 = fp4.dequantize %d scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x32xf4E2M1FN>, tensor<?x1xf8E8M0FNU>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func @alpha
// CHECK:         fp4.blockscaled_matmul %{{.*}} scaled %{{.*}}, %{{.*}} scaled %{{.*}} {format = #fp4.format<mxfp4>}
// CHECK:         fp4.blockscaled_matmul %{{.*}} scaled %{{.*}}, %{{.*}} scaled %{{.*}} alpha %{{.*}} {format
func.func @alpha(%q: tensor<8x32xf4E2M1FN>, %s: tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %0 = fp4.blockscaled_matmul %q scaled %s, %q scaled %s alpha %one {format = #fp4.format<mxfp4>}
      : (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) -> tensor<8x8xf32>
  %1 = fp4.blockscaled_matmul %q scaled %s, %q scaled %s alpha %two {format = #fp4.format<mxfp4>}
      : (tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         tensor<8x32xf4E2M1FN>, tensor<8x1xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// One shard is the whole.
// CHECK-LABEL: func @one_shard
// CHECK-SAME:    (%[[S:.*]]: tensor<4x2xf8E4M3FN>, %[[Q:.*]]: tensor<8x2xf4E2M1FN>)
// CHECK-NEXT:    return %[[S]], %[[Q]]
func.func @one_shard(%s: tensor<4x2xf8E4M3FN>, %q: tensor<8x2xf4E2M1FN>) -> (tensor<4x2xf8E4M3FN>, tensor<8x2xf4E2M1FN>) {
  %0 = fp4.stack_scales %s : (tensor<4x2xf8E4M3FN>) -> tensor<4x2xf8E4M3FN>
  %1 = fp4.interleave_shards %q {shards = 1 : i64} : tensor<8x2xf4E2M1FN> -> tensor<8x2xf4E2M1FN>
  return %0, %1 : tensor<4x2xf8E4M3FN>, tensor<8x2xf4E2M1FN>
}
