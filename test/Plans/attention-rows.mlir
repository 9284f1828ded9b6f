// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s

// A plan that names 128 rows has the roles of them.
// CHECK-LABEL: func.func @named
// CHECK: tile = [128, 128, 1], {{.*}}math warps 0 to 8 drives [tensor, threads] registers 240
!t = tensor<1x1024x8x64xbf16>
func.func @named(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [128, 128, 1]>} : !t, !t, !t -> !t
  return %o : !t
}

// Three warpgroups have registers for the sums of 64 elements of e4m3, too; beside them three warps
// transpose values. With a causal mask a third tile of 192 rows costs more than it saves.
// CHECK-LABEL: func.func @bytes
// CHECK: tile = [192, 128, 1], {{.*}}transpose warps 13 to 16 drives [threads] registers 32 auxiliary, math warps 0 to 12 drives [tensor, threads] registers 160
// CHECK: tile = [128, 128, 1], {{.*}}transpose warps 9 to 12
!e = tensor<1x512x8x64xf8E4M3FN>
!o = tensor<1x512x8x64xbf16>
func.func @bytes(%q: !e, %k: !e, %v: !e) -> (!o, !o) {
  %o = fp4.attention %q, %k, %v scale 1.0 : !e, !e, !e -> !o
  %c = fp4.attention %q, %k, %v scale 1.0 causal : !e, !e, !e -> !o
  return %o, %c : !o, !o
}
