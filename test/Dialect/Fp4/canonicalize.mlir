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
