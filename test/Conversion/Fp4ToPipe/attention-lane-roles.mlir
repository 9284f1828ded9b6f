// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -pipe-specialize-warps | FileCheck %s

// The second part of a tile has the role that the plan gives it, by its own name.
// CHECK: pipe.role other warps 4 to 8
// CHECK-NOT: softmax1
!q = tensor<2x256x8x64xbf16>
#roles = #pipe.role_plan<load warps 9 to 10 drives [tma] registers 24, mma warps 8 to 9 drives [tensor] registers 24, softmax warps 0 to 4 drives [threads] registers 240, other warps 4 to 8 drives [threads] registers 240 auxiliary, idle warps 10 to 12 drives [] registers 24>
func.func @attention(%q: !q) -> !q {
  %o = fp4.attention %q, %q, %q scale 1.0 {fp4.plan = #fp4.plan<tile_attention, tile = [256, 64, 1], roles = #roles>} : !q, !q, !q -> !q
  return %o : !q
}
