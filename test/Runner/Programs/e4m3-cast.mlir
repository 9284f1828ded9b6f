// Plain operations that end in e4m3 go into the GEMM, or into a kernel that streams: a cast of MLIR, which has NaN
// beyond 464: behind a clamp, so that it saturates, without one, and behind a clamp that is too wide.
// RUN: fp4-runner %s --device=sim --seed=3 --check=strict --policy=random --output clamped=%t.c.npy --output cast=%t.n.npy | FileCheck %s
// CHECK-DAG: clamped {{.*}} equals the reference, bit for bit
// CHECK-DAG: cast {{.*}} equals the reference, bit for bit
// CHECK-DAG: alone {{.*}} equals the reference, bit for bit
// RUN: %python -c "import numpy, sys; c, n = map(numpy.load, sys.argv[1:]); assert 0x7E in c and (c != 0x7F).all(); assert ((n & 0x7F) == 0x7F).any()" %t.c.npy %t.n.npy
// RUN: fp4-runner %s --device=sim --seed=3 --target=sm_90a | FileCheck %s
// RUN: fp4-runner %s --device=sim --seed=3 --target=sm_120a | FileCheck %s

// The GEMM takes what follows it, and the cast behind a clamp costs one conversion for two elements.
// RUN: fp4-runner %s --emit=mlir --compile-to=fused | FileCheck %s --check-prefix=FUSED
// FUSED-COUNT-2: fp4.matmul {{.*}} epilogue(
// FUSED: linalg.generic
// FUSED-NOT: linalg.generic

#tiled = #fp4.scale_layout<tiled_128x4>
!x = tensor<70x256xf4E2M1FN>
!sx = tensor<70x16xf8E4M3FN>
!w = tensor<72x256xf4E2M1FN>
!sw = tensor<72x16xf8E4M3FN>
!tx = tensor<70x16xf8E4M3FN, #tiled>
!tw = tensor<72x16xf8E4M3FN, #tiled>
!lhs = !fp4.scaled<nvfp4, !x, !tx>
!rhs = !fp4.scaled<nvfp4, !w, !tw>
func.func @cast(%qx: !x {fp4.name = "qx"}, %sx: !sx {fp4.name = "sx"}, %qw: !w {fp4.name = "qw"}, %sw: !sw {fp4.name = "sw"},
    %scale: tensor<70x72xf32> {fp4.name = "scale"}, %z: tensor<33x40xbf16> {fp4.name = "z"})
    -> (tensor<70x72xf8E4M3FN> {fp4.name = "clamped"}, tensor<70x72xf8E4M3FN> {fp4.name = "cast"},
        tensor<33x40xf8E4M3FN> {fp4.name = "alone"}) {
  %tx = fp4.swizzle_scales %sx : !sx -> !tx
  %tw = fp4.swizzle_scales %sw : !sw -> !tw
  %low = arith.constant dense<-448.0> : tensor<70x72xf32>
  %high = arith.constant dense<448.0> : tensor<70x72xf32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %p = fp4.matmul %qx_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<70x72xf32>
  %ps = arith.mulf %p, %scale : tensor<70x72xf32>
  %pl = arith.maximumf %ps, %low : tensor<70x72xf32>
  %pc = arith.minimumf %pl, %high : tensor<70x72xf32>
  %clamped = arith.truncf %pc : tensor<70x72xf32> to tensor<70x72xf8E4M3FN>
  %r = fp4.matmul %qx_scaled, %qw_scaled {epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs) -> tensor<70x72xf32>
  %rs = arith.mulf %r, %scale : tensor<70x72xf32>
  %cast = arith.truncf %rs : tensor<70x72xf32> to tensor<70x72xf8E4M3FN>
  %thousand = arith.constant dense<1000.0> : tensor<33x40xf32>
  %least = arith.constant dense<-464.0> : tensor<33x40xf32>
  %most = arith.constant dense<480.0> : tensor<33x40xf32>
  %zw = arith.extf %z : tensor<33x40xbf16> to tensor<33x40xf32>
  %zs = arith.mulf %zw, %thousand : tensor<33x40xf32>
  %zl = arith.maximumf %zs, %least : tensor<33x40xf32>
  %zc = arith.minimumf %zl, %most : tensor<33x40xf32>
  %alone = arith.truncf %zc : tensor<33x40xf32> to tensor<33x40xf8E4M3FN>
  return %clamped, %cast, %alone : tensor<70x72xf8E4M3FN>, tensor<70x72xf8E4M3FN>, tensor<33x40xf8E4M3FN>
}
