// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-gpu=no-arithmetic | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={stream_blocks, threads = 128, blocks_per_thread = 2}" -convert-fp4-to-gpu | FileCheck %s --check-prefix=TUNED
// The kernel that benchmarks time beside another: all its loads and stores, and every loaded bit in what is stored.

// CHECK-LABEL: gpu.module @f_quantize_0
// CHECK:         llvm.load {{.*}} -> vector<8xi32>
// CHECK:         llvm.load {{.*}} -> f32
// CHECK-NOT:     f8x2
// CHECK-COUNT-7: arith.xori
// CHECK-NOT:     arith.xori
// CHECK:         llvm.store {{.*}} : vector<2xi32>
// CHECK:         llvm.store {{.*}} : i8

// Two blocks of a thread are as far apart as there are threads, and both are loaded before the first is used.
// TUNED-LABEL:   gpu.module @f_quantize_0
// TUNED:         known_block_size = array<i32: 128, 1, 1>
// TUNED:         arith.constant 128 : i32
// TUNED-COUNT-2: llvm.load {{.*}} -> vector<8xi32>
// TUNED:         llvm.load {{.*}} -> f32
// TUNED-COUNT-2: llvm.store {{.*}} : i8
func.func @f(%x: tensor<?x4096xbf16>, %a: tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}

// An elementwise operation: four loads of 16 bytes, and two stores.
// CHECK-LABEL: gpu.module @g_elementwise_0
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xbf16>
// CHECK-NOT:     {{math|mulf}}
// CHECK:         arith.xori
// CHECK-COUNT-2: llvm.store {{.*}} : vector<8xbf16>
// CHECK-NOT:     {{math|mulf}}
#all = affine_map<(i, j) -> (i, j)>
func.func @g(%x: tensor<8x4096xbf16>, %y: tensor<8x4096xbf16>) -> tensor<8x4096xbf16> {
  %e = tensor.empty() : tensor<8x4096xbf16>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<8x4096xbf16>, tensor<8x4096xbf16>) outs(%e : tensor<8x4096xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %p = arith.mulf %a, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<8x4096xbf16>
  return %z : tensor<8x4096xbf16>
}
