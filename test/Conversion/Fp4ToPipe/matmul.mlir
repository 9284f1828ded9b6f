// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s
// RUN: fp4-opt %s -split-input-file -fp4-set-target=sms=3 -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s --check-prefix=FEWER

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// The host makes the arguments, launches one CTA per tile and at most one per SM; the
// kernel is the textbook algorithm. K and N are whole tiles, so no count is dynamic.
// CHECK-LABEL: func.func @linear
// CHECK-DAG: %[[SMS:.*]] = arith.constant 148 : index
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[Y:.*]] = gpu.alloc (%[[ROWS]]) : memref<?x512xbf16>
// CHECK: pipe.make_tensor_map %{{.*}} columns 1024 : memref<?x512xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
// CHECK: pipe.make_tensor_map %{{.*}} columns 1024 : memref<512x512xi8>
// CHECK: pipe.view %{{.*}} : memref<?x16x512xi8> -> !pipe.global<?x64xf8E4M3FN, tiled_128x4>
// CHECK: pipe.view %[[Y]] : memref<?x512xbf16> -> !pipe.global<?x512xbf16>
// CHECK: %[[M:.*]] = arith.index_cast %[[ROWS]] : index to i32
// CHECK: arith.minui %{{.*}}, %[[SMS]]
// FEWER: arith.minui %{{.*}}, %c3
// CHECK: gpu.launch_func @linear_matmul_0::@kernel blocks in (%{{.*}}, %c1, %c1) threads in (%c224, %c1, %c1)
// CHECK: gpu.module @linear_matmul_0
// CHECK: gpu.func @kernel({{.*}}%[[MARG:[a-z0-9]+]]: i32) kernel attributes {pipe.role_plan = #pipe.role_plan<load warps 6 to 7 drives [tma], mma warps 4 to 6 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>}
// CHECK: %[[ALPHA:.*]] = tensor.splat
// CHECK: pipe.for_each_work %{{.*}}, %{{.*}} in (%{{.*}}, %{{.*}}) schedule #pipe.static_persistent<along_m> {
// CHECK:   %[[ACC:.*]] = pipe.accumulator : !pipe.tmem<128x128xf32>
// CHECK:   scf.for
// CHECK-COUNT-2: pipe.load %
// CHECK:     pipe.load {{.*}}] : !pipe.global
// CHECK-NEXT: pipe.copy_scales %{{[^ ]*}} : !pipe.shared
// CHECK:     pipe.load {{.*}}] : !pipe.global
// CHECK-NEXT: pipe.copy_scales %{{[^ ]*}} : !pipe.shared
// CHECK:     %[[MORE:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i32
// CHECK:     pipe.mma %[[ACC]], {{.*}} accumulate %[[MORE]] : !pipe.tmem
// CHECK:   }
// CHECK:   scf.for %[[C:.*]] = %c0_i32 to %c128_i32 step %c32_i32
// CHECK:     %[[V:.*]] = pipe.read %[[ACC]][%[[C]]]
// CHECK:     %[[SCALED:.*]] = arith.mulf %[[V]], %[[ALPHA]]
// CHECK:     arith.truncf %[[SCALED]]
// CHECK:     pipe.store {{.*}} rows %[[MARG]] : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
func.func @linear(%q: tensor<?x1024xf4E2M1FN>, %s: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<512x1024xf4E2M1FN>, %sw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %alpha: tensor<f32>) -> tensor<?x512xbf16> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

!lhs = !fp4.scaled<nvfp4, tensor<1x272xf4E2M1FN>,
                   tensor<1x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<200x272xf4E2M1FN>,
                   tensor<200x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// M = 1, N = 200 and K = 272 leave ragged edges everywhere: two 256-wide k tiles of which the second
// has 1 of 4 scale blocks and 1 of 4 matrix steps, two 192-wide column tiles of which the second
// begins 64 rows into a block of scale rows and has 8 columns. Rows are static, the grid is too.
// CHECK-LABEL: func.func @ragged
// CHECK: pipe.make_tensor_map %{{.*}} columns 272 : memref<1x144xi8>
// CHECK: gpu.launch_func @ragged_matmul_0::@kernel blocks in (%c2, %c1, %c1)
// CHECK: gpu.func @kernel
// CHECK-NOT: i32)
// CHECK: pipe.for_each_work
// CHECK:   %[[N0:.*]] = arith.muli %n, %c192_i32
// CHECK:   %[[ROW:.*]] = arith.remui %[[N0]], %c128_i32
// CHECK:   scf.for %[[K:.*]] = %c0_i32 to %c2_i32
// CHECK:     %[[KB:.*]] = arith.muli %[[K]], %c4_i32
// CHECK:     %[[LEFT:.*]] = arith.subi %c5_i32, %[[KB]]
// CHECK:     %[[BLOCKS:.*]] = arith.minsi %[[LEFT]], %c4_i32
// CHECK:     pipe.load %{{.*}} existing %[[BLOCKS]] : !pipe.global<1x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN
// CHECK:     pipe.load %{{.*}} existing %[[BLOCKS]] : !pipe.global<200x17xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN
// CHECK:     pipe.mma {{.*}} from %[[ROW]] accumulate %{{.*}} existing %{{.*}} :
// CHECK:   %[[REST:.*]] = arith.subi %c200_i32, %[[N0]]
// CHECK:   %[[COLUMNS:.*]] = arith.minsi %[[REST]], %c192_i32
// CHECK:   scf.for %{{.*}} = %c0_i32 to %[[COLUMNS]] step %c32_i32
// CHECK:     pipe.store {{.*}}] : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<1x200xf32>
func.func @ragged(%q: tensor<1x272xf4E2M1FN>, %s: tensor<1x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<200x272xf4E2M1FN>, %sw: tensor<200x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<1x200xf32> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 192, 256]>}
      : (!lhs, !rhs) -> tensor<1x200xf32>
  return %y : tensor<1x200xf32>
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<300x352xf4E2M1FN>,
                   tensor<300x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x352xf4E2M1FN>,
                   tensor<8x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// MXFP4: one 512-byte block of scales covers two matrix steps, so the last k tile of K = 352 has 1 of 2
// blocks and 2 of 4 steps. Two multiplications in one function have kernels of their own.
// CHECK-LABEL: func.func @mx
// CHECK: gpu.launch_func @mx_matmul_0::@kernel
// CHECK: gpu.launch_func @mx_matmul_1::@kernel
// CHECK: gpu.module @mx_matmul_0
// CHECK:   %[[KB:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK:   %[[LEFT:.*]] = arith.subi %c3_i32, %[[KB]]
// CHECK:   %[[BLOCKS:.*]] = arith.minsi %[[LEFT]], %c2_i32
// CHECK:   %[[KS:.*]] = arith.muli %{{.*}}, %c4_i32
// CHECK:   %[[STEPSLEFT:.*]] = arith.subi %c6_i32, %[[KS]]
// CHECK:   %[[STEPS:.*]] = arith.minsi %[[STEPSLEFT]], %c4_i32
// CHECK:   pipe.load %{{.*}} existing %[[BLOCKS]] : !pipe.global<300x11xf8E8M0FNU, tiled_128x4> -> !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>
// CHECK:   pipe.mma {{.*}} existing %[[STEPS]] : !pipe.tmem<128x64xf32>
// CHECK:   arith.truncf %{{.*}} : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xf16, #pipe.distribution<lanes>>
// CHECK: gpu.module @mx_matmul_1
func.func @mx(%q: tensor<300x352xf4E2M1FN>, %s: tensor<300x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<8x352xf4E2M1FN>, %sw: tensor<8x11xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<300x8xf16>, tensor<300x8xf16>) {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<300x8xf16>
  %z = fp4.matmul %q_scaled, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!lhs, !rhs) -> tensor<300x8xf16>
  return %y, %z : tensor<300x8xf16>, tensor<300x8xf16>
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                       tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// The named steps of an epilogue follow alpha, in fp32.
// CHECK-LABEL: gpu.module @activated_matmul_0
// CHECK: %[[V:.*]] = pipe.read
// CHECK: %[[SCALED:.*]] = arith.mulf %[[V]]
// CHECK: %[[RELU:.*]] = arith.maximumf %[[SCALED]], %{{.*}} : tensor<128x32xf32, #pipe.distribution<lanes>>
// CHECK: arith.truncf %[[RELU]]
func.func @activated(%q: tensor<128x256xf4E2M1FN>, %s: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<128x256xf4E2M1FN>, %sw: tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %alpha: tensor<f32>) -> tensor<128x128xbf16> {
  %q_scaled = fp4.scaled %q, %s : !operand
  %w_scaled = fp4.scaled %w, %sw : !operand
  %y = fp4.matmul %q_scaled, %w_scaled alpha %alpha {epilogue = #fp4.epilogue<relu>}
      : (!operand, !operand, tensor<f32>) -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}
