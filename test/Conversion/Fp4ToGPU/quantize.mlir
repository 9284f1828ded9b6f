// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu -split-input-file | FileCheck %s
// The order of the fp32 operations is the recipe: these tests pin it.

// CHECK-LABEL: gpu.module @te_quantize_0
// CHECK:       gpu.func @kernel(%{{.*}}: !pipe.global<?x1024xbf16>, %{{.*}}: !pipe.global<f32>,
// CHECK-SAME:    %{{.*}}: !pipe.global<?x1024xf4E2M1FN>, %{{.*}}: !pipe.global<?x64xf8E4M3FN>, %{{.*}}: i32)
// A grid that covers every block once: no loop. All that is read is asked for before the first operation on it.
// CHECK-NOT:     scf.for
// CHECK:         llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// CHECK:         %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK:         %[[RANGE:.*]] = arith.constant 2.688000e+03
// CHECK:         %[[Q:.*]] = arith.divf %[[RANGE]], %[[A]]
// CHECK:         %[[MAX:.*]] = arith.constant 3.40282347E+38
// CHECK:         %[[S0:.*]] = llvm.intr.minnum(%[[Q]], %[[MAX]])
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         %[[HUGE:.*]] = arith.cmpf oeq, %[[S0]], %[[ZERO]]
// CHECK:         %[[S1:.*]] = arith.select %[[HUGE]], %{{.*}}, %[[S0]]
// CHECK:         %[[EMPTY:.*]] = arith.cmpf oeq, %[[A]], %[[ZERO]]
// CHECK:         %[[S:.*]] = arith.select %[[EMPTY]], %{{.*}}, %[[S1]]
// CHECK:         %[[SDEC:.*]] = arith.divf %{{.*}}, %[[S]]
// CHECK:         %[[SIXTH:.*]] = arith.constant 0.166666672
// CHECK:         %[[S6:.*]] = arith.mulf %[[S]], %[[SIXTH]]
// Two magnitudes at once; NaN is dropped, also where nothing else is left.
// CHECK-COUNT-7: llvm.call_intrinsic "llvm.nvvm.fmax.xorsign.abs.bf16x2"
// CHECK:         %[[AMAX:.*]] = llvm.intr.maxnum(%{{.*}}, %cst{{.*}})
// CHECK:         %[[RAW:.*]] = arith.mulf %[[AMAX]], %[[S6]]
// CHECK:         nvvm.convert.f32x2.to.f8x2 %{{.*}}, %[[RAW]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
// CHECK:         %[[F:.*]] = arith.extf
// CHECK:         %[[FS:.*]] = arith.mulf %[[F]], %[[SDEC]]
// CHECK:         %[[E0:.*]] = arith.divf %{{.*}}, %[[FS]]
// CHECK:         %[[E:.*]] = llvm.intr.minnum(%[[E0]]
// CHECK:         %[[X0:.*]] = arith.mulf %{{.*}}, %[[E]]
// CHECK:         %[[X1:.*]] = arith.mulf %{{.*}}, %[[E]]
// The even element is the low nibble: the second operand.
// CHECK:         nvvm.convert.f32x2.to.f4x2 %[[X1]], %[[X0]] : i8(f4E2M1FN)
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 1 : i64} : i8, !llvm.ptr<1>
func.func @te(%x: tensor<?x1024xbf16>, %ax: tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  return %q, %s : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>
}

// -----

// The older spelling divides the amax by 6 and multiplies by S afterwards.
// CHECK-LABEL: gpu.module @te213_quantize_0
// K = 80 has 40 dense bytes per row and a pitch of 48: row and column are separate.
// CHECK:         %[[ROW:.*]] = arith.divui
// CHECK:         arith.select
// CHECK:         %[[S:.*]] = arith.select
// CHECK-NEXT:    arith.divf %{{.*}}, %[[S]]
// CHECK:         %[[SIXTH:.*]] = arith.divf %{{.*}}, %{{.*}}
// CHECK:         arith.mulf %[[SIXTH]], %[[S]]
// 500 blocks are no whole number of CTAs: the last threads store nothing.
// CHECK:         scf.if
// CHECK:           arith.extui %[[ROW]]
// CHECK:           arith.constant 48 : i64
// CHECK-LABEL: func.func @te213
// CHECK:         gpu.alloc () : memref<100x48xi8>
// CHECK:         gpu.alloc () : memref<100x5xi8>
func.func @te213(%x: tensor<100x80xf16>, %ax: tensor<f32>) -> (tensor<100x80xf4E2M1FN>, tensor<100x5xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine_2_13>}
      : (tensor<100x80xf16>, tensor<f32>) -> (tensor<100x80xf4E2M1FN>, tensor<100x5xf8E4M3FN>)
  return %q, %s : tensor<100x80xf4E2M1FN>, tensor<100x5xf8E4M3FN>
}

// -----

// A block of 32 fp32 elements is four loads; NaN reaches the scale; codes leave in one 16-byte store.
// CHECK-LABEL: gpu.module @floor_quantize_0
// CHECK-COUNT-4:   llvm.load %{{.*}} -> vector<8xi32>
// CHECK-COUNT-31:  llvm.intr.maximum
// CHECK-NOT:       llvm.intr.maxnum
// CHECK:           %[[E:.*]] = arith.shrui
// CHECK:           arith.subi %[[E]], %c2_i32
// CHECK:           arith.maxsi
// CHECK:           arith.minsi
// CHECK-NOT:       divf
// CHECK:           llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
func.func @floor(%x: tensor<8x64xf32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<8x64xf32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>)
  return %q, %s : tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>
}

// -----

// CHECK-LABEL: gpu.module @dequantize_dequantize_0
// CHECK:           %[[F:.*]] = arith.extf
// CHECK:           %[[FA:.*]] = arith.mulf %[[F]], %{{.*}}
// CHECK:           arith.mulf %[[FA]], %{{.*}}
// CHECK:           llvm.inline_asm {{.*}}cvt.rn.f16x2.e2m1x2
// CHECK:           arith.truncf %{{.*}} : f32 to bf16
// CHECK:           llvm.store %{{.*}} {alignment = 32 : i64} : vector<16xbf16>, !llvm.ptr<1>
func.func @dequantize(%q: tensor<?x64xf4E2M1FN>, %s: tensor<?x4xf8E4M3FN>, %ax: tensor<f32>) -> tensor<?x64xbf16> {
  %y = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// -----

// Rows of 24 elements: 48 bytes, so accesses of 16. The second block of a row has a half that does not exist: it is
// read from where the block begins and replaced by zeros, and its codes are zero whatever the recipe makes of zeros.
// CHECK-LABEL: gpu.module @remainder_quantize_0
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         arith.select %[[TAIL:.*]], %{{.*}}, %{{.*}} : !llvm.ptr<1>
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         arith.select %[[TAIL]], %{{.*}}, %{{.*}} : vector<4xi32>
// CHECK:         arith.andi %{{.*}}, %c0_i32
func.func @remainder(%x: tensor<32x24xbf16>, %ax: tensor<f32>) -> (tensor<32x24xf4E2M1FN>, tensor<32x2xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x24xbf16>, tensor<f32>) -> (tensor<32x24xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return %q, %s : tensor<32x24xf4E2M1FN>, tensor<32x2xf8E4M3FN>
}

// -----

// Tiled scales: threads for the padding of 130 x 6 scales, 256 x 8, which store zero and no codes.
// CHECK-LABEL: gpu.module @tiled_quantize_0
// CHECK:         %[[MATRIX:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK:         scf.if %{{.*}} {
// CHECK:           llvm.store %{{.*}} : vector<2xi32>
// CHECK:         %[[SCALE:.*]] = arith.select %[[MATRIX]], %{{.*}}, %c0_i8
// CHECK:         llvm.store %[[SCALE]]
// CHECK-LABEL: func.func @tiled
// CHECK:         gpu.alloc () : memref<2x2x512xi8>
func.func @tiled(%x: tensor<130x96xbf16>, %ax: tensor<f32>)
    -> (tensor<130x96xf4E2M1FN>, tensor<130x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<130x96xbf16>, tensor<f32>) -> (tensor<130x96xf4E2M1FN>, tensor<130x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<130x96xf4E2M1FN>, tensor<130x6xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Four over six: two candidate scales, the codes of each decoded again, and the smaller sum of errors chosen.
// CHECK-LABEL: gpu.module @adaptive_quantize_0
// CHECK-COUNT-2: nvvm.convert.f32x2.to.f8x2
// CHECK:         arith.cmpf olt, %[[SECOND:.*]], %[[FIRST:.*]] : f32
// CHECK:         arith.select
func.func @adaptive(%x: tensor<8x64xbf16>, %ax: tensor<f32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<8x64xbf16>, tensor<f32>) -> (tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>)
  return %q, %s : tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>
}
