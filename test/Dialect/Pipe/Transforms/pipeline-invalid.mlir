// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline -verify-diagnostics -split-input-file

// Two tiles of 128 KB each leave no room for a single stage.
!big = !pipe.shared<1024x256xf4E2M1FN, swizzle_128B>
!tiles = !pipe.channel<!big, !big>
gpu.module @kernels {
// expected-error @+2 {{one stage of every channel must fit in 232448 bytes of shared memory of sm_100a, but takes 262168}}
// expected-note @+1 {{take smaller tiles in the kernel's plan}}
gpu.func @shared() kernel {
  %ab = pipe.channel from tma to tensor : !tiles
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %a, %b = pipe.consumer_wait %ab : !tiles
    pipe.consumer_release %ab : !tiles
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x256xf32>>
gpu.module @kernels {
// expected-error @+2 {{tiles must fit in the 512 tensor memory columns of sm_100a, but take 768}}
// expected-note @+1 {{take narrower tiles, or fewer stages of accumulators}}
gpu.func @tmem() kernel {
  %x = pipe.channel from tensor to threads(128) : !accs
  %y = pipe.channel from tensor to threads(128) : !accs
  %z = pipe.channel from tensor to threads(128) : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
  }
  gpu.return
}
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x256xf32>>
gpu.module @kernels {
gpu.func @branch(%p: i1) kernel {
  %x = pipe.channel from tensor to threads(128) : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    // expected-error @+2 {{channel ops must be in straight-line code, scf.for or pipe.for_each_work}}
    // expected-note @+1 {{other control flow has no number of iterations: use arith.select inside of a loop}}
    scf.if %p {
      %acc = pipe.producer_acquire %x : !accs
      pipe.producer_commit %x : !accs
    }
  }
  gpu.return
}
}

// -----

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
gpu.module @kernels {
gpu.func @empty() kernel {
  %x = pipe.channel from tma to tensor : !tiles
  pipe.role load warps 5 to 6 drives [tma] {
    // expected-error @+2 {{stage must be filled by loads in the block that acquires it}}
    // expected-note @+1 {{move the loads of a stage directly behind its pipe.producer_acquire}}
    %s = pipe.producer_acquire %x : !tiles
    pipe.producer_commit %x : !tiles
  }
  gpu.return
}
}

// -----

// (C156)
gpu.module @kernels {
// expected-error @+2 {{attribute pipe.max_stages must be a positive i64, but got 0 : i64}}
// expected-note @+1 {{write the number of bytes, such as 65536 : i64, or leave the attribute out}}
gpu.func @stages() kernel attributes {pipe.max_stages = 0 : i64} {
  pipe.role load warps 5 to 6 drives [tma] {
  }
  gpu.return
}
}

// -----

// (C156)
gpu.module @kernels {
// expected-error @+2 {{attribute pipe.max_accumulators must be a positive i64, but got "two"}}
// expected-note @+1 {{write the number of bytes, such as 65536 : i64, or leave the attribute out}}
gpu.func @accumulators() kernel attributes {pipe.max_stages = 1 : i64, pipe.max_accumulators = "two"} {
  pipe.role load warps 5 to 6 drives [tma] {
  }
  gpu.return
}
}
