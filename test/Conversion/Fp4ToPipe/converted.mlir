// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// A target with wgmma multiplies what fp4 is converted to: B through shared memory, A on its way to
// the tensor core. The conversion of NVFP4 multiplies each operand by 2^-7, which is undone.
// CHECK-LABEL: func.func @linear
// CHECK: pipe.make_tensor_map %{{.*}} columns 1024 : memref<?x512xi8> -> !pipe.tensor_map<128x128xf4E2M1FN, swizzle_64B, residue>
// CHECK: gpu.launch_func @linear_matmul_0::@kernel blocks in (%{{.*}}, %c1, %c1) threads in (%c512, %c1, %c1)
// CHECK: gpu.func @kernel({{.*}}%[[MARG:[a-z0-9]+]]: i32) kernel attributes {pipe.role_plan = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 48, convert warps 9 to 16 drives [threads] registers 48 auxiliary, math warps 0 to 8 drives [tensor, threads] registers 208>}
// CHECK: %[[POWER:.*]] = arith.constant dense<1.638400e+04> : tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: pipe.for_each_work
// CHECK:   %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
// CHECK:   scf.for
// CHECK-COUNT-2: pipe.load {{.*}}] : !pipe.global
// CHECK:     %[[MORE:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i32
// CHECK:     %[[B:.*]] = pipe.dequantize {{.*}} -> !pipe.shared<128x128xf16, swizzle_128B>
// CHECK:     pipe.mma %[[ACC]], {{.*}}, %[[B]] accumulate %[[MORE]] : !pipe.fragment
// CHECK:   }
// CHECK:   %[[V:.*]] = pipe.read %[[ACC]][0]
// CHECK:   %[[RESTORED:.*]] = arith.mulf %[[V]], %[[POWER]]
// CHECK:   %[[SCALED:.*]] = arith.mulf %[[RESTORED]], %{{.*}}
// CHECK:   arith.truncf %[[SCALED]]
// CHECK:   pipe.store {{.*}} rows %[[MARG]] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<?x512xbf16>
// CHECK:   pipe.read %[[ACC]][96]
func.func @linear(%q: tensor<?x1024xf4E2M1FN>, %s: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<512x1024xf4E2M1FN>, %sw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %alpha: tensor<f32>) -> tensor<?x512xbf16> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled alpha %alpha
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<100x288xf4E2M1FN>,
                   tensor<100x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<40x288xf4E2M1FN>,
                   tensor<40x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Up to 64 columns have a tile of 64. The conversion of MXFP4 to bf16 multiplies each operand by 2^-4. A k
// tile has one block of 4 scale columns, so that no k tile has a part of its blocks.
// CHECK-LABEL: func.func @narrow
// CHECK: gpu.func @kernel
// CHECK: %[[POWER:.*]] = arith.constant dense<2.560000e+02> : tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: pipe.dequantize {{.*}} -> !pipe.shared<64x128xbf16, swizzle_128B>
// CHECK: pipe.mma {{.*}} accumulate %{{[0-9]+}} : !pipe.fragment<64x64xf32, wgmma>
// CHECK: %[[R:.*]] = pipe.read
// CHECK: %[[RESTORED:.*]] = arith.mulf %[[R]], %[[POWER]]
// CHECK: pipe.store %[[RESTORED]], {{.*}} : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<100x40xf32>
func.func @narrow(%q: tensor<100x288xf4E2M1FN>, %s: tensor<100x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<40x288xf4E2M1FN>, %sw: tensor<40x9xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<100x40xf32> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled : (!lhs, !rhs) -> tensor<100x40xf32>
  return %y : tensor<100x40xf32>
}

// -----

!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Tall tiles have two accumulators and two tiles of A for each tile of B. The rows of the second may
// not exist; then their scales do not either, and those of the last block of rows are loaded.
// CHECK-LABEL: func.func @tall
// CHECK: gpu.func @kernel({{.*}}%[[MARG:[a-z0-9]+]]: i32)
// CHECK:   %[[ACC0:.*]] = pipe.accumulator
// CHECK:   %[[ACC1:.*]] = pipe.accumulator
// CHECK:   scf.for
// CHECK:     %[[A0:.*]] = pipe.load %
// CHECK:     %[[S0:.*]] = pipe.load
// CHECK:     %[[A1:.*]] = pipe.load %
// CHECK:     %[[LAST:.*]] = arith.subi %[[MARG]], %c1_i32
// CHECK:     %[[LASTBLOCK:.*]] = arith.divui %[[LAST]], %c128_i32
// CHECK:     %[[BLOCK:.*]] = arith.minui %{{.*}}, %[[LASTBLOCK]]
// CHECK:     %[[S1:.*]] = pipe.load %{{.*}}[%[[BLOCK]], %
// CHECK:     %[[B:.*]] = pipe.dequantize
// CHECK:     pipe.mma %[[ACC0]], %[[A0]] scaled %[[S0]], %[[B]]
// CHECK:     pipe.mma %[[ACC1]], %[[A1]] scaled %[[S1]], %[[B]]
// CHECK:   pipe.read %[[ACC0]][0]
// CHECK:   pipe.read %[[ACC1]][0]
func.func @tall(%q: tensor<?x1024xf4E2M1FN>, %s: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %w: tensor<512x1024xf4E2M1FN>, %sw: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

// If the lhs is pre-dequantized, threads exchange what they store.
// CHECK-LABEL: func.func @ahead
// CHECK: pipe.mma
// CHECK-COUNT-8: pipe.store {{.*}} transposed staged
!a = tensor<300x512xf4E2M1FN>
!sa = tensor<300x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<512x512xf4E2M1FN>
!sb = tensor<512x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !sa>
!rhs = !fp4.scaled<nvfp4, !b, !sb>
func.func @ahead(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> tensor<300x512xbf16> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], route = <orientation = swapped>>}
      : (!lhs, !rhs) -> tensor<300x512xbf16>
  return %y : tensor<300x512xbf16>
}

// -----

// Beside rows that are quantized there is no room for that.
// CHECK-LABEL: func.func @quantized
// CHECK: pipe.store {{.*}} transposed :
// CHECK: pipe.gather_rows
!a = tensor<300x512xf4E2M1FN>
!sa = tensor<300x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<512x512xf4E2M1FN>
!sb = tensor<512x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !a, !sa>
!rhs = !fp4.scaled<nvfp4, !b, !sb>
func.func @quantized(%x: !a, %sx: !sa, %w: !b, %sw: !sb, %amax: tensor<f32>)
    -> (tensor<300x512xbf16>, tensor<300x512xf4E2M1FN>, tensor<300x32xf8E4M3FN>) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y, %q, %s = fp4.matmul %x_scaled, %w_scaled epilogue(%amax) {
  ^bb0(%v: f32, %amax_in: f32):
    %z = arith.truncf %v : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %z, %code, %scale : bf16, f4E2M1FN, f8E4M3FN
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], route = <orientation = swapped>>}
      : (!lhs, !rhs, tensor<f32>)
      -> (tensor<300x512xbf16>, tensor<300x512xf4E2M1FN>, tensor<300x32xf8E4M3FN>)
  return %y, %q, %s : tensor<300x512xbf16>, tensor<300x512xf4E2M1FN>, tensor<300x32xf8E4M3FN>
}

// -----

// Beside an amax of the elements there are no registers for that, and elements of 32 bits and an odd number of columns
// have no such stores.
// CHECK-LABEL: func.func @amax
// CHECK: pipe.store {{.*}} transposed :
// CHECK: pipe.fold_amax
!a = tensor<300x512xf4E2M1FN>
!sa = tensor<300x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<512x512xf4E2M1FN>
!sb = tensor<512x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @amax(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> (tensor<300x512xbf16>, tensor<f32>) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y, %amax = fp4.matmul %x_scaled, %w_scaled epilogue() {
  ^bb0(%v: f32):
    %z = arith.truncf %v : f32 to bf16
    %amax_out = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %amax_out : bf16, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], route = <orientation = swapped>>}
      : (!lhs, !rhs) -> (tensor<300x512xbf16>, tensor<f32>)
  return %y, %amax : tensor<300x512xbf16>, tensor<f32>
}

// -----

// CHECK-LABEL: func.func @wide
// CHECK: pipe.store {{.*}} transposed : tensor<64x32xf32, #pipe.distribution<wgmma>>
!a = tensor<300x512xf4E2M1FN>
!sa = tensor<300x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<512x512xf4E2M1FN>
!sb = tensor<512x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @wide(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> tensor<300x512xf32> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], route = <orientation = swapped>>}
      : (!lhs, !rhs) -> tensor<300x512xf32>
  return %y : tensor<300x512xf32>
}

// -----

// CHECK-LABEL: func.func @odd
// CHECK: pipe.store {{.*}} transposed : tensor<64x32xbf16, #pipe.distribution<wgmma>>
!a = tensor<300x512xf4E2M1FN>
!sa = tensor<300x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<516x512xf4E2M1FN>
!sb = tensor<516x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @odd(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> tensor<300x516xbf16> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], route = <orientation = swapped>>}
      : (!lhs, !rhs) -> tensor<300x516xbf16>
  return %y : tensor<300x516xbf16>
}

// -----

// Small M: the CTAs of a cluster store their sums that way, and warps that reduce in a workspace do not.
// CHECK-LABEL: func.func @few
// CHECK: pipe.reduce
// CHECK: pipe.store {{.*}} transposed staged
!a = tensor<64x8192xf4E2M1FN>
!sa = tensor<64x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<256x8192xf4E2M1FN>
!sb = tensor<256x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @few(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> tensor<64x256xbf16> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs, !rhs) -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}

// -----

// CHECK-LABEL: func.func @workspace
// CHECK: pipe.count_partial %
// CHECK: pipe.store {{.*}} transposed :
!a = tensor<64x8192xf4E2M1FN>
!sa = tensor<64x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<256x8192xf4E2M1FN>
!sb = tensor<256x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @workspace(%x: !a, %sx: !sa, %w: !b, %sw: !sb) -> tensor<64x256xbf16> {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, cluster = [1, 1]>}
      : (!lhs, !rhs) -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}
