// RUN: split-file %s %t
// RUN: fp4-opt %t/both.mlir -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s --check-prefix=BOTH
// RUN: fp4-opt %t/square.mlir -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s --check-prefix=SQUARE
// RUN: fp4-opt %t/ragged.mlir -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s --check-prefix=RAGGED
// RUN: fp4-runner %t/both.mlir --emit=ptx -o %t.ptx && FileCheck %s --check-prefix=PTX100 < %t.ptx
// RUN: fp4-runner %t/both.mlir --target=sm_90a --emit=ptx -o %t.ptx && FileCheck %s --check-prefix=PTX90 < %t.ptx
// RUN: fp4-runner %t/both.mlir --check=strict --json | FileCheck %s --check-prefix=JSON
// RUN: fp4-runner %t/both.mlir --target=sm_90a --json | FileCheck %s --check-prefix=JSON
// RUN: fp4-runner %t/square.mlir --check=strict --json | FileCheck %s --check-prefix=JSON
// RUN: fp4-runner %t/square.mlir --target=sm_90a --json | FileCheck %s --check-prefix=JSON
// Tiles of 128 x 128 go through shared memory: lib/Conversion/Fp4ToGPU/TileQuantize/TileQuantize.h has the plan.

// All loads come first. Each thread quantizes the row-wise blocks that it loaded and shares their elements.
// BOTH:         llvm.mlir.global internal @elements() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8192 x i32>
// BOTH:         gpu.func @kernel(%{{.*}}: !pipe.global<128x256xbf16>, %{{.*}}: !pipe.global<f32>,
// BOTH-SAME:      !pipe.global<128x256xf4E2M1FN>, %{{.*}}: !pipe.global<128x16xf8E4M3FN>,
// BOTH-SAME:      !pipe.global<256x128xf4E2M1FN>, %{{.*}}: !pipe.global<256x8xf8E4M3FN, tiled_128x4>)
// BOTH-COUNT-4:   llvm.load %{{.*}} invariant {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
// BOTH-NOT:       llvm.load
// BOTH-COUNT-2:   llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// BOTH:           llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
// BOTH:           llvm.store %{{.*}} {alignment = 1 : i64} : i8, !llvm.ptr<1>
// Whole tiles need no test.
// BOTH-NOT:       scf.if
// BOTH:           nvvm.barrier
// A word of 16 rows is a block of two columns, which are widened from its halves.
// BOTH-COUNT-16:  llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// BOTH-NOT:       nvvm.prmt
// BOTH-COUNT-15:  llvm.call_intrinsic "llvm.nvvm.fmax.xorsign.abs.bf16x2"
// BOTH:           llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
// Tiled scales gather in shared memory and leave in pieces of 16 bytes, by 64 threads.
// BOTH:           llvm.store %{{.*}} {alignment = 1 : i64} : i8, !llvm.ptr<3>
// BOTH-NOT:       scf.if
// BOTH:           nvvm.barrier
// BOTH:           arith.constant 64 : i32
// BOTH:           scf.if
// BOTH:             llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// BOTH:             llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// BOTH-NOT:       scf.if

// A thread has four rows of a square block, and lanes 8 and 16 apart the others; the columns take the codes of the rows.
// SQUARE:         llvm.mlir.global internal @codes() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<2080 x i32>
// SQUARE:         nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c16_i32{{[_0-9]*}}, %{{.*}} : f32 -> f32
// SQUARE:         nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c8_i32{{[_0-9]*}}, %{{.*}} : f32 -> f32
// SQUARE-NOT:     nvvm.shfl.sync bfly
// SQUARE:         nvvm.convert.f32x2.to.f4x2
// SQUARE:         nvvm.barrier
// SQUARE-NOT:     f4x2
// SQUARE:         llvm.inline_asm "lop3.b32 $0, $1, $2, $3, 228;"
// SQUARE-NOT:     f4x2
// SQUARE-COUNT-8: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>

// K = 40: two whole blocks and half a block, whose elements are tested word by word; M = 100 rows of a tile of 128.
// RAGGED:         arith.minui
// RAGGED:         scf.if %{{.*}} -> (i32)
// RAGGED:         llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// RAGGED:         scf.if
// RAGGED:           llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>

// PTX100:         .target sm_100a
// PTX100:         .minnctapersm 3
// PTX100-COUNT-4: ld.global.nc.v4.b64
// PTX100:         st.shared.v2.b64
// PTX100:         st.global.v2.b32
// PTX100:         bar.sync
// PTX100-COUNT-16: ld.shared.b32
// PTX100:         st.global.v2.b32
// PTX90:          .target sm_90a
// PTX90-COUNT-8:  ld.global.nc.v4.b32
// PTX90:          st.shared.v4.b32
// PTX90:          st.global.v2.b32
// PTX90:          bar.sync

// JSON:     "passed": true
// JSON:     "spill_bytes": 0
// JSON-NOT: "spill_bytes": {{[1-9]}}

//--- both.mlir
func.func @f(%x: tensor<128x256xbf16>, %ax: tensor<f32>)
    -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>,
        tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s, %qt, %st = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<128x256xbf16>, tensor<f32>)
      -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>,
          tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>,
      tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

//--- square.mlir
func.func @f(%x: tensor<128x256xbf16>, %ax: tensor<f32>)
    -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>) {
  %q, %s, %qt, %st = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       block = array<i64: 16, 16>}
      : (tensor<128x256xbf16>, tensor<f32>)
      -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>,
      tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>
}

//--- ragged.mlir
func.func @f(%x: tensor<100x40xbf16>, %ax: tensor<f32>) -> (tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<100x40xbf16>, tensor<f32>) -> (tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>)
  return %q, %s : tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>
}
