// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Rows of the fragments of all warps (PipeConstraints.td). Every error has a twin above it that differs in one place
// and verifies.

func.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %i: i32) {
  %m = pipe.amax %v[%i, %i] of %i : tensor<64x32xbf16, #pipe.distribution<wgmma>>
  return
}
func.func @bad(%v: tensor<128x32xbf16, #pipe.distribution<columns>>, %i: i32) {
  // (C570)
  // expected-error @+2 {{value must be lanes, or of wgmma or mma_sync where it is transposed, but got 'tensor<128x32xbf16, #pipe.distribution<columns>>'}}
  // expected-note @+1 {{take the maximum of what the threads read, in their own rows}}
  %m = pipe.amax %v[%i, %i] of %i : tensor<128x32xbf16, #pipe.distribution<columns>>
  return
}

// -----

gpu.module @m {
gpu.func @twin(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %i: i32) kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %s, %first = pipe.gather_rows %v, %v[%i, %i] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, tensor<64x32xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  }
  gpu.return
}
gpu.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %i: i32) kernel {
  pipe.role math warps 2 to 6 drives [tensor, threads] {
    // (C571)
    // expected-error @+2 {{role must have whole warpgroups, but is}}
    // expected-note @+1 {{write a multiple of 4 warps, from a multiple of 4 on}}
    %s, %first = pipe.gather_rows %v, %v[%i, %i] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, tensor<64x32xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  }
  gpu.return
}
}

// -----

func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %w: tensor<64x32xf16, #pipe.distribution<wgmma>>, %i: i32) {
  // (C571)
  // expected-error @+2 {{values must be tiles of one type}}
  // expected-note @+1 {{pass at least one tile, and convert the others to its type}}
  %s, %first = pipe.gather_rows %v, %w[%i, %i] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, tensor<64x32xf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  return
}

// -----

func.func @bad(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %i: i32) {
  // (C571)
  // expected-error @+2 {{segment must be lanes of 32 or 64 columns, as many as a thread has elements of all values, which have multiples of 32 columns, but got 'tensor<128x64xbf16, #pipe.distribution<lanes>>' from 32 elements}}
  // expected-note @+1 {{gather as many parts as a segment of 32 or 64 columns has}}
  %s, %first = pipe.gather_rows %v, %v[%i, %i] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, tensor<64x32xbf16, #pipe.distribution<wgmma>> -> tensor<128x64xbf16, #pipe.distribution<lanes>>
  return
}

// -----

func.func @twin(%v: tensor<64x16xbf16, #pipe.distribution<wgmma>>, %i: i32) {
  %s, %first = pipe.gather_rows %v[%i, %i] transposed : tensor<64x16xbf16, #pipe.distribution<wgmma>> -> tensor<128x64xbf16, #pipe.distribution<lanes>>
  return
}
func.func @bad(%v: tensor<64x16xbf16, #pipe.distribution<wgmma>>, %i: i32) {
  // (C581)
  // expected-error @+2 {{transposed segment must be lanes of 32 or 64 columns, and one value of its type have 8, 16, 32, 64 or 128, but got 'tensor<128x64xbf16, #pipe.distribution<lanes>>' from 2 of}}
  // expected-note @+1 {{transpose 32 or 64 elements of a row at a time}}
  %s, %first = pipe.gather_rows %v, %v[%i, %i] transposed : tensor<64x16xbf16, #pipe.distribution<wgmma>>, tensor<64x16xbf16, #pipe.distribution<wgmma>> -> tensor<128x64xbf16, #pipe.distribution<lanes>>
  return
}

// -----

func.func @bad(%v: tensor<64x48xbf16, #pipe.distribution<wgmma>>, %i: i32) {
  // (C581)
  // expected-error @+2 {{transposed segment must be lanes of 32 or 64 columns, and one value of its type have 8, 16, 32, 64 or 128, but got 'tensor<128x32xbf16, #pipe.distribution<lanes>>' from 1 of}}
  // expected-note @+1 {{transpose 32 or 64 elements of a row at a time}}
  %s, %first = pipe.gather_rows %v[%i, %i] transposed : tensor<64x48xbf16, #pipe.distribution<wgmma>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  return
}

// -----

func.func @bad(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %i: i32) {
  // (C571)
  // expected-error @+2 {{segment must be lanes of 32 or 64 columns, as many as a thread has elements of all values, which have multiples of 32 columns, but got}}
  // expected-note @+1 {{gather as many parts as a segment of 32 or 64 columns has}}
  %s, %first = pipe.gather_rows %v[%i, %i] : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xbf16, #pipe.distribution<lanes>>
  return
}

// -----

!d = !pipe.global<?x8xf8E8M0FNU, tiled_128x4>
func.func @twin(%v: tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, %d: !d, %i: i32) {
  pipe.store %v, %d[%i, %i] rows %i : tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, !d
  return
}
func.func @bad(%v: tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, %d: !d, %i: i32) {
  // (C118)
  // expected-error @+2 {{must bound the rows of a destination with dynamic rows}}
  // expected-note @+1 {{add 'rows %m'}}
  pipe.store %v, %d[%i, %i] : tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, !d
  return
}
