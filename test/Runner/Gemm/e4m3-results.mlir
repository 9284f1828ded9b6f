// A GEMM whose result is e4m3 under a scale of the tensor: with more rows and with few, with split-K, with TMA
// stores, by threads, and where accumulators are in registers. Sums beyond 448 saturate.
// RUN: fp4-runner %s --device=sim --seed=3 --check=strict --policy=delay --output few=%t.npy | FileCheck %s
// RUN: %python -c "import numpy, sys; y = numpy.load(sys.argv[1]); assert 0x7E in y and 0xFE in y" %t.npy
// RUN: sed 's/work = #fp4.work<split_k = 2>//; s/fp4.plan = #fp4.plan<tile_gemm, store = tma>//' %s > %t.mlir
// RUN: fp4-runner %t.mlir --device=sim --seed=3 --check=strict --target=sm_90a | FileCheck %s --check-prefix=HOPPER
// RUN: fp4-runner %t.mlir --device=sim --seed=3 --check=strict --target=sm_120a | FileCheck %s --check-prefix=WARPS
// Tiles of 96 columns leave in three parts, whose rows of 32 bytes have a swizzle of their own.
// RUN: sed 's/store = tma/tile = [128, 96, 256], store = tma/' %s > %t.narrow.mlir
// RUN: fp4-runner %t.narrow.mlir --device=sim --seed=3 --check=strict | FileCheck %s
// RUN: fp4-runner %t.narrow.mlir --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=NARROW
// NARROW: !pipe.tensor_map<128x32xf8E4M3FN, swizzle_32B>
// CHECK-DAG: many {{.*}} equals the tcgen05 model, bit for bit
// CHECK-DAG: staged {{.*}} equals the tcgen05 model, bit for bit
// CHECK-DAG: few {{.*}} equals the tcgen05 model, bit for bit
// CHECK-DAG: split {{.*}} equals the tcgen05 model, bit for bit
// CHECK-DAG: dots {{.*}} equals the {{.*}} model, bit for bit
// HOPPER-COUNT-5: equals the {{.*}} model, bit for bit
// WARPS-COUNT-5: equals the {{.*}} model, bit for bit

#tiled = #fp4.scale_layout<tiled_128x4>
!x = tensor<130x512xf4E2M1FN>
!sx = tensor<130x32xf8E4M3FN>
!tx = tensor<130x32xf8E4M3FN, #tiled>
!v = tensor<5x512xf4E2M1FN>
!sv = tensor<5x32xf8E4M3FN>
!tv = tensor<5x32xf8E4M3FN, #tiled>
!w = tensor<80x512xf4E2M1FN>
!sw = tensor<80x32xf8E4M3FN>
!tw = tensor<80x32xf8E4M3FN, #tiled>

!lhs = !fp4.scaled<nvfp4, !x, !tx>
!rhs = !fp4.scaled<nvfp4, !w, !tw>
!lhs2 = !fp4.scaled<nvfp4, !v, !tv>
func.func @products(%qx: !x {fp4.name = "qx"}, %sx: !sx {fp4.name = "sx"}, %qv: !v {fp4.name = "qv"}, %sv: !sv {fp4.name = "sv"},
    %qw: !w {fp4.name = "qw"}, %sw: !sw {fp4.name = "sw"}, %scale: tensor<f32> {fp4.name = "scale"})
    -> (tensor<130x80xf8E4M3FN> {fp4.name = "many"}, tensor<130x80xf8E4M3FN> {fp4.name = "staged"},
        tensor<5x80xf8E4M3FN> {fp4.name = "few"}, tensor<130x80xf8E4M3FN> {fp4.name = "split"},
        tensor<5x80xf8E4M3FN> {fp4.name = "dots"}) {
  %tx = fp4.swizzle_scales %sx : !sx -> !tx
  %tv = fp4.swizzle_scales %sv : !sv -> !tv
  %tw = fp4.swizzle_scales %sw : !sw -> !tw
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %many = fp4.matmul %qx_scaled, %qw_scaled alpha %scale
      : (!lhs, !rhs, tensor<f32>) -> tensor<130x80xf8E4M3FN>
  %staged = fp4.matmul %qx_scaled, %qw_scaled alpha %scale
      {fp4.plan = #fp4.plan<tile_gemm, store = tma>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<130x80xf8E4M3FN>
  %qv_scaled = fp4.scaled %qv, %tv : !lhs2
  %few = fp4.matmul %qv_scaled, %qw_scaled : (!lhs2, !rhs) -> tensor<5x80xf8E4M3FN>
  %split = fp4.matmul %qx_scaled, %qw_scaled alpha %scale {work = #fp4.work<split_k = 2>}
      : (!lhs, !rhs, tensor<f32>) -> tensor<130x80xf8E4M3FN>
  %dots = fp4.matmul %qv_scaled, %qw_scaled alpha %scale {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs2, !rhs, tensor<f32>) -> tensor<5x80xf8E4M3FN>
  return %many, %staged, %few, %split, %dots : tensor<130x80xf8E4M3FN>, tensor<130x80xf8E4M3FN>,
      tensor<5x80xf8E4M3FN>, tensor<130x80xf8E4M3FN>, tensor<5x80xf8E4M3FN>
}
