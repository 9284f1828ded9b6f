// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Rows of the fragments of all warps (PipeConstraints.td). Every error has a twin above it that differs in one place
// and verifies.

func.func @twin(%v: vector<16xbf16>, %i: i32) {
  %m = pipe.fragment_amax %v[%i, %i] of %i : vector<16xbf16>
  return
}
func.func @bad(%v: vector<6xbf16>, %i: i32) {
  // (C570)
  // expected-error @+2 {{vector must have a multiple of 4 elements, but got 'vector<6xbf16>'}}
  // expected-note @+1 {{read whole pairs of rows}}
  %m = pipe.fragment_amax %v[%i, %i] of %i : vector<6xbf16>
  return
}

// -----

gpu.module @m {
gpu.func @twin(%v: vector<16xbf16>, %i: i32) kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %s, %first = pipe.gather_rows %v, %v[%i, %i] : vector<16xbf16>, vector<16xbf16> -> vector<32xbf16>
  }
  gpu.return
}
gpu.func @bad(%v: vector<16xbf16>, %i: i32) kernel {
  pipe.role math warps 2 to 6 drives [tensor, threads] {
    // (C571)
    // expected-error @+2 {{role must have whole warpgroups, but is}}
    // expected-note @+1 {{write a multiple of 4 warps, from a multiple of 4 on}}
    %s, %first = pipe.gather_rows %v, %v[%i, %i] : vector<16xbf16>, vector<16xbf16> -> vector<32xbf16>
  }
  gpu.return
}
}

// -----

func.func @bad(%v: vector<16xbf16>, %w: vector<16xf16>, %i: i32) {
  // (C571)
  // expected-error @+2 {{values must be vectors of one type}}
  // expected-note @+1 {{pass at least one vector, and convert the others to its type}}
  %s, %first = pipe.gather_rows %v, %w[%i, %i] : vector<16xbf16>, vector<16xf16> -> vector<32xbf16>
  return
}

// -----

func.func @bad(%v: vector<16xbf16>, %i: i32) {
  // (C571)
  // expected-error @+2 {{segment must have 32 or 64 elements, as many as all values, which have multiples of 16, but got 'vector<64xbf16>' from 32 elements in parts of 'vector<16xbf16>'}}
  // expected-note @+1 {{gather as many parts as a segment of 32 or 64 elements has}}
  %s, %first = pipe.gather_rows %v, %v[%i, %i] : vector<16xbf16>, vector<16xbf16> -> vector<64xbf16>
  return
}

// -----

func.func @twin(%v: vector<8xbf16>, %i: i32) {
  %s, %first = pipe.gather_rows %v[%i, %i] transposed : vector<8xbf16> -> vector<64xbf16>
  return
}
func.func @bad(%v: vector<8xbf16>, %i: i32) {
  // (C581)
  // expected-error @+2 {{transposed segment must have 32 or 64 elements, and one vector of its type have 4, 8, 16, 32 or 64, but got 'vector<64xbf16>' from 2 of 'vector<8xbf16>'}}
  // expected-note @+1 {{transpose 32 or 64 elements of a row at a time}}
  %s, %first = pipe.gather_rows %v, %v[%i, %i] transposed : vector<8xbf16>, vector<8xbf16> -> vector<64xbf16>
  return
}

// -----

func.func @bad(%v: vector<24xbf16>, %i: i32) {
  // (C581)
  // expected-error @+2 {{transposed segment must have 32 or 64 elements, and one vector of its type have 4, 8, 16, 32 or 64, but got 'vector<32xbf16>' from 1 of 'vector<24xbf16>'}}
  // expected-note @+1 {{transpose 32 or 64 elements of a row at a time}}
  %s, %first = pipe.gather_rows %v[%i, %i] transposed : vector<24xbf16> -> vector<32xbf16>
  return
}

// -----

!d = !pipe.global<512x8xf8E8M0FNU, tiled_128x4>
func.func @twin(%v: vector<2xf8E8M0FNU>, %d: !d, %i: i32) {
  pipe.store_few_scales %v, %d[%i, %i] : vector<2xf8E8M0FNU>, !d
  return
}
func.func @bad(%v: vector<4xf8E8M0FNU>, %d: !d, %i: i32) {
  // (C573)
  // expected-error @+2 {{vector must have 1 or 2 scales of a buffer of layout tiled_128x4, but got}}
  // expected-note @+1 {{store the scales of one or two blocks of a row; pipe.store takes four}}
  pipe.store_few_scales %v, %d[%i, %i] : vector<4xf8E8M0FNU>, !d
  return
}

// -----

!d = !pipe.global<?x8xf8E8M0FNU, tiled_128x4>
func.func @bad(%v: vector<2xf8E8M0FNU>, %d: !d, %i: i32) {
  // (C573)
  // expected-error @+2 {{expects operand 'rows' for dynamic rows, but got none}}
  // expected-note @+1 {{='rows' is the number of rows that exist, which only a dynamic buffer leaves open}}
  pipe.store_few_scales %v, %d[%i, %i] : vector<2xf8E8M0FNU>, !d
  return
}
