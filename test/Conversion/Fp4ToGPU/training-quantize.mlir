// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu | FileCheck %s
// RUN: fp4-opt "%s" -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu=no-arithmetic | FileCheck %s --check-prefix=TWIN
// RUN: fp4-runner %s --check=strict --json | FileCheck %s --check-prefix=JSON
// RUN: fp4-runner %s --target=sm_90a --json | FileCheck %s --check-prefix=JSON
// A gradient as TransformerEngine trains with it: both orientations stochastic, the columns transformed, each with its amax.

// The rows: one Philox block each, and no transform.
// CHECK-COUNT-4:  llvm.load %{{.*}} -> vector<8xi32>
// CHECK-NOT:      arith.negf
// CHECK-COUNT-20: arith.muli %{{.*}} : i64
// CHECK:          nvvm.convert.f32x4.to.f4x4
// CHECK:          nvvm.barrier
// The columns: 16 words of rows are 16 elements of two columns; signs, four stages, the round trip through bf16, random words.
// CHECK-COUNT-16: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-COUNT-10: arith.negf
// CHECK-COUNT-8:  nvvm.convert.f32x2.to.bf16x2
// CHECK:          arith.ori %{{.*}}, %c-9223372036854775808_i64
// CHECK-COUNT-4:  nvvm.convert.f32x4.to.f4x4

// The twin without arithmetic loads, shares and stores the same.
// TWIN-NOT:       f4x4
// TWIN-NOT:       arith.divf
// TWIN-COUNT-4:   llvm.load %{{.*}} -> vector<8xi32>
// TWIN-COUNT-2:   llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// TWIN:           nvvm.barrier
// TWIN-COUNT-16:  llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// TWIN:           llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>

// JSON:     "passed": true
// JSON:     "spill_bytes": 0
// JSON-NOT: "spill_bytes": {{[1-9]}}
func.func @f(%x: tensor<128x256xbf16>, %rng: tensor<2xi64>)
    -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>) {
  %ax, %ay = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<128x256xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %ax columnwise_amax %ay rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>,
       rounding = #fp4.rounding<stochastic>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<128x256xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>,
      tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>
}
