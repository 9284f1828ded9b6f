// RUN: fp4-opt %s --compile-to=tiles | FileCheck %s

// A GEMM on quantized operands: one kernel, launched on user buffers directly (their
// dense pitch is one that TMA takes), and a check that data and scales agree on their rows.

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// CHECK-LABEL: func.func @gemm
// CHECK-SAME:    (%[[A:.*]]: memref<?x512xi8>, %[[SA:.*]]: memref<?x16x512xi8>,
// CHECK-SAME:     %{{.*}}: memref<512x512xi8>, %{{.*}}: memref<4x16x512xi8>) -> memref<?x512xbf16>
// CHECK:   %[[BLOCKS:.*]] = memref.dim %[[SA]]
// CHECK:   pipe.expect_size "scale tiles of 128 rows of lhs_scales" %[[BLOCKS]] is %{{.*}}
// CHECK:   %[[Y:.*]] = gpu.alloc
// CHECK:   pipe.make_tensor_map %[[A]] columns 1024
// CHECK:   gpu.launch_func @gemm_matmul_0::@kernel
// CHECK:   return %[[Y]]
// CHECK: gpu.module @gemm_matmul_0
func.func @gemm(%a: tensor<?x1024xf4E2M1FN>,
                %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                %b: tensor<512x1024xf4E2M1FN>,
                %sb: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// The later forms of the same kernel.
// RUN: fp4-opt %s --compile-to=roles | FileCheck %s --check-prefix=ROLES
// RUN: fp4-opt %s --compile-to=pipelined "--plan=tile_gemm, tile = [128, 128, 256]" | FileCheck %s --check-prefix=PIPELINED

// ROLES-LABEL: gpu.func @kernel
// ROLES: %[[TILES:.*]] = pipe.channel from tma to tensor
// ROLES: pipe.role load
// ROLES:   pipe.producer_acquire %[[TILES]]
// ROLES: pipe.role mma
// ROLES:   pipe.consumer_wait %[[TILES]]
// ROLES: pipe.role epilogue

// Two accumulators of 128 columns and six stages: a seventh would end at 258184 bytes, of 232448.
// PIPELINED-LABEL: gpu.func @kernel
// PIPELINED-SAME: pipe.shared_bytes = 221376 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 221368 : i64
// PIPELINED: pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 221184
// PIPELINED: pipe.channel from tma to tensor depth 6 payload [0, 98304, 196608, 208896] barriers 221216
// PIPELINED: pipe.producer_acquire %{{.*}}[%{{.*}}]
