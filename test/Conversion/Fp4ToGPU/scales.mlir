// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s

// A thread writes 16 bytes: four words of rows that are 32 apart, zero where there is no row.
// CHECK-LABEL: gpu.module @swizzle_swizzle_scales_0
// CHECK:       gpu.func @kernel(%{{.*}}: !pipe.global<?x64xf8E4M3FN>, %{{.*}}: !pipe.global<?x64xf8E4M3FN, tiled_128x4>,
// CHECK-SAME:    %[[ROWS:.*]]: i32, %[[ITEMS:.*]]: i32)
// CHECK:         arith.cmpi ult, %{{.*}}, %[[ROWS]]
// CHECK:         llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-LABEL: func.func @swizzle
// CHECK:         %[[TILES:.*]] = arith.ceildivui %{{.*}}, %c128
// CHECK:         gpu.alloc (%{{.*}}) : memref<?x16x512xi8>
func.func @swizzle(%s: tensor<?x64xf8E4M3FN>) -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %0 = fp4.swizzle_scales %s : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %0 : tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Five blocks per row: bytes, and only those that exist. Block 0 is in both tiles, block 1 in the first.
// CHECK-LABEL: gpu.module @odd_swizzle_scales_0
// CHECK:         arith.cmpi ule, %[[T:.*]], %c1_i32
// CHECK:         llvm.load %{{.*}} invariant {alignment = 1 : i64} : !llvm.ptr<1> -> i8
// CHECK:         arith.cmpi ule, %[[T]], %c0_i32
func.func @odd(%s: tensor<9x5xf8E4M3FN>) -> tensor<9x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %0 = fp4.swizzle_scales %s : tensor<9x5xf8E4M3FN> -> tensor<9x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %0 : tensor<9x5xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// CHECK-LABEL: gpu.module @unswizzle_unswizzle_scales_0
// CHECK:         llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:         llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
func.func @unswizzle(%s: tensor<300x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<300x8xf8E8M0FNU> {
  %0 = fp4.unswizzle_scales %s : tensor<300x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> -> tensor<300x8xf8E8M0FNU>
  return %0 : tensor<300x8xf8E8M0FNU>
}
