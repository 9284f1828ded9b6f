// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// A kernel for each plan, and one result. A workspace, which only one of the kernels needs, belongs
// to that one.
// CHECK-LABEL: func.func @chosen
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[Y:.*]] = gpu.alloc (%[[ROWS]]) : memref<?x256xbf16>
// CHECK: arith.cmpi ule, %[[ROWS]], %c16
// CHECK: scf.if
// CHECK-NOT: gpu.alloc
// CHECK:   pipe.view %[[Y]]
// CHECK:   gpu.launch_func @chosen_matmul_0::@kernel {{.*}}fp4.pdl = #fp4.launch_dependents<at_end>
// CHECK: } else {
// CHECK:   arith.cmpi ule, %[[ROWS]], %c100
// CHECK:   scf.if
// CHECK:     pipe.view %[[Y]]
// CHECK:     gpu.alloc {{.*}}memref<?x16384xf32>
// CHECK:     gpu.launch_func @chosen_matmul_1::@kernel {{.*}}fp4.pdl = #fp4.launch_dependents<before_wait>
// CHECK:   } else {
// CHECK-NOT: gpu.alloc
// CHECK:     pipe.view %[[Y]]
// CHECK:     gpu.launch_func @chosen_matmul_2::@kernel
// CHECK-NOT: gpu.launch_func
// CHECK: pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
// CHECK: pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
// CHECK: pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
func.func @chosen(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16> {
  %y = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 16], split_k = 2 : tile_gemm, tile = [16, 128, 256], pdl = at_end>, #fp4.case<m = [17, 100], split_k = 2 : tile_gemm, tile = [128, 128, 128], cluster = [1, 1]>,
       #fp4.case<m = [101, ?] : tile_gemm, tile = [64, 128, 256], pdl = none>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return %y : tensor<?x256xbf16>
}
