// RUN: fp4-opt %s -pipe-specialize-warps -verify-diagnostics -split-input-file

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
// A copy of this store in every role would store four times.
gpu.module @kernels {
gpu.func @effect(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>, %p: !llvm.ptr<1>, %v: i32) kernel attributes {pipe.role_plan = #roles} {
  %t = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // expected-error @+2 {{has side effects but no engine}}
  // expected-note @+1 {{only ops without side effects may be executed by every role}}
  llvm.store %v, %p : i32, !llvm.ptr<1>
  gpu.return
}
}

// -----

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
// A value that the epilogue reads cannot steer the loads of the same tile.
!acc = !pipe.tmem<128x64xf32>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
gpu.module @kernels {
gpu.func @backwards(%a: !map) kernel attributes {pipe.role_plan = #roles} {
  %c0 = arith.constant 0 : i32
  %acc = pipe.accumulator : !acc
  %v = pipe.read %acc[%c0] : !acc -> tensor<128x1xf32, #pipe.distribution<lanes>>
  // expected-error @+2 {{value of pipe.read cannot cross from role epilogue to load}}
  // expected-note @+1 {{only tiles cross through channels: compute the value from arguments, so that both roles can}}
  %e = pipe.elements %v : tensor<128x1xf32, #pipe.distribution<lanes>> -> vector<1xf32>
  %x = vector.extract %e[0] : f32 from vector<1xf32>
  %k = arith.fptosi %x : f32 to i32
  %t = pipe.load %a[%c0, %k] : !map -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  gpu.return
}
}

// -----

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
gpu.module @kernels {
// expected-error @+2 {{expects a CTA of the 192 threads of its role plan, but got 128x1x1}}
// expected-note @+1 {{launch the threads of the plan, or change the warps of its roles}}
gpu.func @small() kernel attributes {pipe.role_plan = #roles, known_block_size = array<i32: 128, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  gpu.return
}
}

// -----

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
// Blocks of a control-flow graph have no place for a channel's ends.
gpu.module @kernels {
// expected-error @+2 {{expects structured control flow in one block}}
// expected-note @+1 {{write scf.for and scf.if instead of branches between blocks}}
gpu.func @graph() kernel attributes {pipe.role_plan = #roles} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  cf.br ^next
^next:
  gpu.return
}
}

// -----

gpu.module @kernels {
// expected-error @+2 {{must have a role plan, the attribute pipe.role_plan}}
// expected-note @+1 {{fp4-plan-kernels and convert-fp4-to-pipe write one; for example #pipe.role_plan<}}
gpu.func @unplanned() kernel {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  gpu.return
}
}

// -----

// A role plan that leaves an engine without a role.
gpu.module @kernels {
// expected-note @+1 {{the role plan is #pipe.role_plan<load warps 0 to 1 drives [tma]>}}
gpu.func @undriven() kernel attributes {pipe.role_plan = #pipe.role_plan<load warps 0 to 1 drives [tma]>} {
  // expected-error @+1 {{needs engine tensor, which no role of the plan drives}}
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  gpu.return
}
}
