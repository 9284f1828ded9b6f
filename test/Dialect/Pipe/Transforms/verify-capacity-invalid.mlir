// RUN: fp4-opt %s -fp4-set-target -pipe-verify-capacity -verify-diagnostics -split-input-file

// The first kernel is correct; each of the others differs from it in the place marked.

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C140) The scales of stage 0 lie in the data of stage 1.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  // expected-error @+2 {{tile 1 at bytes 16384 to 20480 must be disjoint from tile 0 at 0 to 32768}}
  // expected-note @+1 {{the other is here}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 16384] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C140) The barriers of the second channel lie in those of the first.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  // expected-note @+1 {{the other is here}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  // expected-error @+1 {{barriers at bytes 36888 to 36920 must be disjoint from barriers at 36864 to 36896}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36888 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C140) A third stage does not fit in what the kernel asks for.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36920 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  // expected-error @+2 {{barriers at bytes 36896 to 36928 must end within pipe.shared_bytes, 36920}}
  // expected-note @+1 {{let pipe-pipeline choose the places, or enlarge the attribute up to what the target has}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C140) More than a CTA can have.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// expected-error @+2 {{pipe.shared_bytes must be at most 232448 on sm_100a, but got 232456}}
// expected-note @+1 {{take fewer stages or smaller tiles}}
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 232456 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141) The scale tile lies in the second accumulator.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  // expected-note @+1 {{the other is here}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-error @+1 {{scale tile at columns 240 to 256 must be disjoint from tile 0 at 0 to 256}}
    %t = pipe.copy_scales %s at 240 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141) The scale tile lies behind the allocation.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-error @+2 {{scale tile at columns 256 to 272 must end within pipe.tmem_columns, 256}}
    // expected-note @+1 {{let pipe-pipeline choose the places, or enlarge the attribute up to what the target has}}
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// Two sets of a scale tile, and another tile behind them.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 sets 2 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    %u = pipe.copy_scales %s at 288 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141) The other tile lies in the second set.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-note @+1 {{the other is here}}
    %t = pipe.copy_scales %s at 256 sets 2 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    // expected-error @+1 {{scale tile at columns 272 to 288 must be disjoint from scale tile at 256 to 288}}
    %u = pipe.copy_scales %s at 272 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141) Only powers of two can be allocated.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// expected-error @+2 {{pipe.tmem_columns must be 0 or a power of two from 32 to 512, but got 288}}
// expected-note @+1 {{tensor memory is allocated in powers of two; round the number up}}
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 288 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141) A scale tile needs a place.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-error @+2 {{must have a place in tensor memory in the pipelined form}}
    // expected-note @+1 {{add 'at <column>'}}
    %t = pipe.copy_scales %s : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// Without the attribute nobody allocates.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// expected-error @+2 {{pipelined kernel must have the attribute pipe.tmem_slot}}
// expected-note @+1 {{pipe-pipeline sets it}}
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36936 : i64, pipe.tmem_columns = 512 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 256 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// All of shared memory, and the last columns of tensor memory.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 232448 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 496 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// The slot ends where the shared memory does.
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36932 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 496 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C140)
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
// expected-error @+2 {{tensor memory slot at bytes 36928 to 36932 must end within pipe.shared_bytes, 36931}}
// expected-note @+1 {{let pipe-pipeline choose the places, or enlarge the attribute up to what the target has}}
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 36931 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 496 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C141)
!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 232448 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 36928 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 36864 : !tiles
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 36896 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-error @+2 {{scale tile at columns 500 to 516 must end within pipe.tmem_columns, 512}}
    // expected-note @+1 {{let pipe-pipeline choose the places, or enlarge the attribute up to what the target has}}
    %t = pipe.copy_scales %s at 500 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// Two CTAs to an SM have half of its memories each.
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
gpu.func @kernel() kernel attributes {nvvm.minctasm = 2 : i32,
    pipe.shared_bytes = 115712 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 64 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 4 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

// (C140)
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
// expected-error @+2 {{pipe.shared_bytes must be at most 115712 on sm_100a, but got 115713}}
// expected-note @+1 {{take fewer stages or smaller tiles}}
gpu.func @kernel() kernel attributes {nvvm.minctasm = 2 : i32,
    pipe.shared_bytes = 115713 : i64, pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 64 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 4 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

// (C141)
!accs = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
// expected-error @+2 {{pipe.tmem_columns must be 0 or a power of two from 32 to 256, but got 512}}
// expected-note @+1 {{tensor memory is allocated in powers of two; round the number up}}
gpu.func @kernel() kernel attributes {nvvm.minctasm = 2 : i32,
    pipe.shared_bytes = 4096 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 64 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 4 payload [0] barriers 0 : !accs
  gpu.return
}
}

// -----

// (C141) Two accumulators that overlap end 64 columns before the scales; a tile within is refused.
!accs = !pipe.channel<!pipe.tmem<128x256xf32>>
gpu.module @kernels {
gpu.func @kernel(%s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>) kernel attributes {
    pipe.shared_bytes = 40 : i64, pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 32 : i64} {
  // expected-note @+1 {{the other is here}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [192] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %t = pipe.copy_scales %s at 448 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    // expected-error @+1 {{scale tile at columns 432 to 448 must be disjoint from tile 0 at 0 to 448}}
    %u = pipe.copy_scales %s at 432 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}

// -----

// (C262) Memory for what the CTAs of a cluster send to each other needs a place, a multiple of 16.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @join() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 8400 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 8392 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 8376 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<64x8xf32, wgmma>
    pipe.reduce %acc by 8 at 128 : !pipe.fragment<64x8xf32, wgmma>
    // expected-error @+2 {{must have a place in shared memory in the pipelined form, a multiple of 16}}
    // expected-note @+1 {{add 'at <byte>'}}
    pipe.reduce %acc by 8 at 136 : !pipe.fragment<64x8xf32, wgmma>
  }
  gpu.return
}
}

// -----

// (C140) The other CTA sends 4096 bytes to the one that adds them, and there are two barriers.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @join() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>,
    pipe.shared_bytes = 4304 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 4256 : i64} {
  // expected-error @+1 {{barriers at bytes 4232 to 4248 must be disjoint from join at 128 to 4240}}
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 4232 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<64x8xf32, wgmma>
    // expected-note @+1 {{the other is here}}
    pipe.reduce %acc by 8 at 128 : !pipe.fragment<64x8xf32, wgmma>
  }
  gpu.return
}
}

// -----

// (C334) All staged stores of a kernel have one place, a multiple of 1024.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @staged(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %i: i32) kernel attributes {
    pipe.shared_bytes = 20000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 19992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 19976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    pipe.store %v, %d[%i, %i] transposed staged at 1024 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
    pipe.store %v, %d[%i, %i] transposed staged at 1024 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
    // expected-error @+2 {{must have the place of all staged stores, a multiple of 1024}}
    // expected-note @+1 {{add 'at <byte>'}}
    pipe.store %v, %d[%i, %i] transposed staged at 2048 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  gpu.return
}
}

// -----

// (C334) Staged stores have one size: a warpgroup would write to what another one has.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @staged(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %w: tensor<64x16xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %i: i32) kernel attributes {
    pipe.shared_bytes = 40000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 39992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 39976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    // expected-note @+1 {{the first is here}}
    pipe.store %v, %d[%i, %i] transposed staged at 1024 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
    // expected-error @+1 {{must have the role and the 8192 bytes of all staged stores, but has 4096}}
    pipe.store %w, %d[%i, %i] transposed staged at 1024 : tensor<64x16xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  gpu.return
}
}

// -----

// (C334) Staged stores have one role, whose barriers order them.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @staged(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %w: tensor<64x16xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %i: i32) kernel attributes {
    pipe.shared_bytes = 40000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 39992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 39976 : !line
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    // expected-note @+1 {{the first is here}}
    pipe.store %v, %d[%i, %i] transposed staged at 1024 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  pipe.role more warps 4 to 8 drives [threads] {
    // expected-error @+1 {{must have the role and the 4096 bytes of all staged stores, but has 4096 in another role}}
    pipe.store %v, %d[%i, %i] transposed staged at 1024 : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  gpu.return
}
}

// -----

// (C334) Two stores of one size and one role may.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @staged(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %w: tensor<64x16xbf16, #pipe.distribution<wgmma>>, %d: !pipe.global<64x512xbf16>, %i: i32) kernel attributes {
    pipe.shared_bytes = 40000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 39992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 39976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    pipe.store %w, %d[%i, %i] transposed staged at 1024 : tensor<64x16xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
    pipe.store %w, %d[%i, %i] transposed staged at 1024 : tensor<64x16xbf16, #pipe.distribution<wgmma>>, !pipe.global<64x512xbf16>
  }
  gpu.return
}
}

// -----

// (C572) Gathered rows of one role have one place and one size.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @gathered(%v: tensor<64x64xbf16, #pipe.distribution<wgmma>>, %i: i32) kernel attributes {
    known_block_size = array<i32: 288, 1, 1>,
    pipe.shared_bytes = 60000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 59992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 59976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %a, %x = pipe.gather_rows %v[%i, %i] at 1024 : tensor<64x64xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
    %b, %y = pipe.gather_rows %v[%i, %i] at 1024 : tensor<64x64xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
    // expected-error @+2 {{must have the role, the size and the place of all gathered rows, a multiple of 1024}}
    // expected-note @+1 {{add 'at <byte>'}}
    %d, %z = pipe.gather_rows %v[%i, %i] at 2048 : tensor<64x64xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  }
  gpu.return
}
}

// -----

// (C572) Maxima that threads exchange have the place of gathered rows.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @exchanged(%v: tensor<64x128xbf16, #pipe.distribution<wgmma>>, %i: i32) kernel attributes {
    known_block_size = array<i32: 288, 1, 1>,
    pipe.shared_bytes = 60000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 59992 : i64} {
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 59976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %a, %x = pipe.gather_rows %v[%i, %i] at 1024 : tensor<64x128xbf16, #pipe.distribution<wgmma>> -> tensor<128x64xbf16, #pipe.distribution<lanes>>
    %q, %s = pipe.quantize_blocks %a at 1024 {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
    // expected-error @+2 {{must have the role and the place of all exchanged maxima, that of gathered rows where there are some, a multiple of 1024}}
    // expected-note @+1 {{add 'at <byte>'}}
    %r, %t = pipe.quantize_blocks %a at 20480 {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf8E4M3FN, #pipe.distribution<lanes>>, tensor<128x1xf32, #pipe.distribution<lanes>>
  }
  gpu.return
}
}

// -----

// (C572), (C140) Maxima are in nobody else's place.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @maxima(%v: tensor<128x32xbf16, #pipe.distribution<columns>>) kernel attributes {
    known_block_size = array<i32: 160, 1, 1>,
    pipe.shared_bytes = 60000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 59992 : i64} {
  // expected-note @+1 {{the other is here}}
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 59976 : !line
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // expected-error @+1 {{exchanged maxima at bytes 0 to 512 must be disjoint from tile 0 at 0 to 128}}
    %q, %s = pipe.quantize_blocks %v at 0 {recipe = #fp4.recipe<fp8_deepgemm>} : tensor<128x32xbf16, #pipe.distribution<columns>> -> tensor<128x32xf8E4M3FN, #pipe.distribution<columns>>, tensor<4x32xf32, #pipe.distribution<columns>>
  }
  gpu.return
}
}

// -----

// (C572), (C140) Gathered rows are in nobody else's place.
!line = !pipe.channel<!pipe.shared<8x16xi8>>
gpu.module @m {
gpu.func @overlaps(%v: tensor<64x64xbf16, #pipe.distribution<wgmma>>, %i: i32) kernel attributes {
    known_block_size = array<i32: 288, 1, 1>,
    pipe.shared_bytes = 60000 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 59992 : i64} {
  // expected-note @+1 {{the other is here}}
  %c = pipe.channel from tma to threads(8) depth 1 payload [0] barriers 59976 : !line
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    // expected-error @+1 {{gathered rows at bytes 0 to 16384 must be disjoint from tile 0 at 0 to 128}}
    %a, %x = pipe.gather_rows %v[%i, %i] at 0 : tensor<64x64xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  }
  gpu.return
}
}
