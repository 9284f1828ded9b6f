// RUN: fp4-opt %s -pipe-specialize-warps -verify-diagnostics -split-input-file

// A copy of this store in every role would store four times.
gpu.module @kernels {
gpu.func @effect(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>, %p: !llvm.ptr<1>, %v: i32) kernel {
  %t = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  // expected-error @+2 {{has side effects but no role}}
  // expected-note @+1 {{only ops without side effects may be executed by every role}}
  llvm.store %v, %p : i32, !llvm.ptr<1>
  gpu.return
}
}

// -----

// What the epilogue reads cannot steer the loads of the same tile.
!acc = !pipe.tmem<128x64xf32>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
gpu.module @kernels {
gpu.func @backwards(%a: !map) kernel {
  %c0 = arith.constant 0 : i32
  %acc = pipe.accumulator : !acc
  %v = pipe.read %acc[%c0] : !acc -> vector<1xf32>
  // expected-error @+1 {{value of pipe.read cannot cross from role epilogue to load}}
  %x = vector.extract %v[0] : f32 from vector<1xf32>
  %k = arith.fptosi %x : f32 to i32
  %t = pipe.load %a[%c0, %k] : !map -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  gpu.return
}
}

// -----

gpu.module @kernels {
// expected-error @+1 {{expects a block of 192 threads, one warp per load and mma and four for the epilogue, but got 128x1x1}}
gpu.func @small() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  gpu.return
}
}

// -----

// Blocks of a control-flow graph have no place for a channel's ends.
gpu.module @kernels {
// expected-error @+1 {{expects structured control flow in one block}}
gpu.func @graph() kernel {
  %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
  cf.br ^next
^next:
  gpu.return
}
}
