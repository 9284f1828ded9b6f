// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s

// A plan that names 128 rows has the roles of them.
// CHECK-LABEL: func.func @named
// CHECK: tile = [128, 128, 1], {{.*}}math warps 0 to 8 drives [tensor, threads] registers 240
!t = tensor<1x1024x8x64xbf16>
func.func @named(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 128, 1]>} : !t, !t, !t -> !t
  return %o : !t
}
