// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// amax (C1)
func.func @amax_elements(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xi32>) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+2 {{operand 'input' must have elements of type bf16, f16 or f32, but got 'tensor<4x16xi32>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
  %1 = fp4.amax %bad : tensor<4x16xi32> -> tensor<f32>
  return
}

// -----

// amax (C2)
func.func @amax_encoding(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xbf16, "csr">) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+2 {{operand 'input' must have no encoding but #fp4.scale_layout, but got 'tensor<4x16xbf16, "csr">'}}
  // expected-note @+1 {{fp4 reads matrices in MLIR's own order: remove the encoding}}
  %1 = fp4.amax %bad : tensor<4x16xbf16, "csr"> -> tensor<f32>
  return
}

// -----

// amax (C2)
func.func @amax_rank(%ok: tensor<4x16xbf16>, %bad: tensor<64xbf16>) {
  %0 = fp4.amax %ok : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+1 {{operand 'input' must have 2 dimensions, but got 'tensor<64xbf16>'}}
  %1 = fp4.amax %bad : tensor<64xbf16> -> tensor<f32>
  return
}

// -----

// amax (C496)
func.func @amax_of_groups(%x: tensor<4x?xbf16>) {
  %0 = fp4.amax %x : tensor<4x?xbf16> -> tensor<f32>
  // expected-error @+2 {{operand 'input' must have a static number of columns beside attribute 'groups', but got 'tensor<4x?xbf16>'}}
  // expected-note @+1 {{give the columns a static size}}
  %1 = fp4.amax %x {groups = array<i64: 2, 2>} : tensor<4x?xbf16> -> tensor<2xf32>
  return
}

// -----

// hadamard_amax (C496)
func.func @hadamard_amax_of_groups(%x: tensor<32x?xbf16>) {
  %0:2 = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<32x?xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{operand 'input' must have a static number of columns beside attribute 'groups', but got 'tensor<32x?xbf16>'}}
  // expected-note @+1 {{give the columns a static size}}
  %1:2 = fp4.hadamard_amax %x {dimension = 0 : i64, groups = array<i64: 16, 16>} : tensor<32x?xbf16> -> tensor<2xf32>, tensor<2xf32>
  return
}

// -----

// amax (C3)
func.func @amax_result(%x: tensor<4x16xbf16>) {
  %0 = fp4.amax %x : tensor<4x16xbf16> -> tensor<f32>
  // expected-error @+2 {{result 'amax' must be a tensor<f32>, but got 'tensor<bf16>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.amax %x : tensor<4x16xbf16> -> tensor<bf16>
  return
}

// -----

// hadamard (C1)
func.func @hadamard_elements(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xf32>) {
  %0 = fp4.hadamard %ok : tensor<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @+2 {{operand 'input' must have elements of type bf16, but got 'tensor<4x16xf32>'}}
  // expected-note @+1 {{convert the tensor to bf16 first: transforms are of bf16}}
  %1 = fp4.hadamard %bad : tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// hadamard (C2)
func.func @hadamard_rank(%ok: tensor<4x16xbf16>, %bad: tensor<1x4x16xbf16>) {
  %0 = fp4.hadamard %ok : tensor<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @+2 {{operand 'input' must have 2 dimensions}}
  // expected-note @+1 {{tensor.collapse_shape makes a matrix of a batch, and tensor.extract_slice takes one out of several}}
  %1 = fp4.hadamard %bad : tensor<1x4x16xbf16> -> tensor<1x4x16xbf16>
  return
}

// -----

// hadamard (C3)
func.func @hadamard_size(%x: tensor<4x96xbf16>) {
  %0 = fp4.hadamard %x {size = 32 : i64} : tensor<4x96xbf16> -> tensor<4x96xbf16>
  // expected-error @+2 {{attribute 'size' must be 16, 32, 64 or 128, but got 48}}
  // expected-note @+1 {{the transforms of TransformerEngine have 16}}
  %1 = fp4.hadamard %x {size = 48 : i64} : tensor<4x96xbf16> -> tensor<4x96xbf16>
  return
}

// -----

// hadamard (C4)
func.func @hadamard_dimension(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x {dimension = 0 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // expected-error @+2 {{attribute 'dimension' must be 0 or 1, but got 2}}
  // expected-note @+1 {{a matrix has rows, dimension 0, and columns, dimension 1}}
  %1 = fp4.hadamard %x {dimension = 2 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  return
}

// -----

// hadamard (C5)
func.func @hadamard_multiple(%x: tensor<24x16xbf16>) {
  %0 = fp4.hadamard %x : tensor<24x16xbf16> -> tensor<24x16xbf16>
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 16, but got 24}}
  // expected-note @+1 {{groups do not cross the edge; pad the dimension with zeros}}
  %1 = fp4.hadamard %x {dimension = 0 : i64} : tensor<24x16xbf16> -> tensor<24x16xbf16>
  return
}

// -----

// hadamard (C6)
func.func @hadamard_signs(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x {sign_mask = 65535 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // A mask has 16 bits for every size: larger groups repeat it.
  // expected-error @+2 {{attribute 'sign_mask' must have no bit set at or above 16, but got 65536}}
  // expected-note @+1 {{bit i negates elements i, i + 16, ... of each group}}
  %1 = fp4.hadamard %x {sign_mask = 65536 : i64} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  return
}

// -----

// hadamard (C7)
func.func @hadamard_result(%x: tensor<16x16xbf16>) {
  %0 = fp4.hadamard %x : tensor<16x16xbf16> -> tensor<16x16xbf16>
  // expected-error @+1 {{result 'result' must be 'tensor<16x16xbf16>', but got 'tensor<16x16xf32>'}}
  %1 = fp4.hadamard %x : tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// hadamard_amax (C1)
func.func @hadamard_amax_elements(%ok: tensor<4x16xbf16>, %bad: tensor<4x16xf16>) {
  %0:2 = fp4.hadamard_amax %ok : tensor<4x16xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{operand 'input' must have elements of type bf16, but got 'tensor<4x16xf16>'}}
  // expected-note @+1 {{convert the tensor to bf16 first: transforms are of bf16}}
  %1:2 = fp4.hadamard_amax %bad : tensor<4x16xf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C2)
func.func @hadamard_amax_rank(%ok: tensor<4x16xbf16>, %bad: tensor<16xbf16>) {
  %0:2 = fp4.hadamard_amax %ok : tensor<4x16xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+1 {{operand 'input' must have 2 dimensions}}
  %1:2 = fp4.hadamard_amax %bad : tensor<16xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C3)
func.func @hadamard_amax_size(%x: tensor<16x96xbf16>) {
  %0:2 = fp4.hadamard_amax %x {size = 32 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{attribute 'size' must be 16, 32, 64 or 128, but got 256}}
  // expected-note @+1 {{the transforms of TransformerEngine have 16}}
  %1:2 = fp4.hadamard_amax %x {size = 256 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C4)
func.func @hadamard_amax_dimension(%x: tensor<16x96xbf16>) {
  %0:2 = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{attribute 'dimension' must be 0 or 1, but got 2}}
  // expected-note @+1 {{a matrix has rows, dimension 0, and columns, dimension 1}}
  %1:2 = fp4.hadamard_amax %x {dimension = 2 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C5)
func.func @hadamard_amax_multiple(%x: tensor<16x96xbf16>) {
  %0:2 = fp4.hadamard_amax %x {size = 32 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{operand 'input' must have a dimension 1 that is a multiple of 64, but got 96}}
  // expected-note @+1 {{groups do not cross the edge}}
  %1:2 = fp4.hadamard_amax %x {size = 64 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C6)
func.func @hadamard_amax_signs(%x: tensor<16x96xbf16>) {
  %0:2 = fp4.hadamard_amax %x {sign_mask = 1 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{attribute 'sign_mask' must have no bit set at or above 16, but got -1}}
  // expected-note @+1 {{bit i negates elements i, i + 16}}
  %1:2 = fp4.hadamard_amax %x {sign_mask = -1 : i64} : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  return
}

// -----

// hadamard_amax (C7)
func.func @hadamard_amax_results(%x: tensor<16x96xbf16>) {
  %0:2 = fp4.hadamard_amax %x : tensor<16x96xbf16> -> tensor<f32>, tensor<f32>
  // expected-error @+2 {{result 'after' must be a tensor<f32>, but got 'tensor<2xf32>'}}
  // expected-note @+1 {{one number in device memory}}
  %1:2 = fp4.hadamard_amax %x : tensor<16x96xbf16> -> tensor<f32>, tensor<2xf32>
  return
}

// -----

// amax (C3)
func.func @amax_groups_result(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {groups = array<i64: 32, 16>} : tensor<48x16xbf16> -> tensor<2xf32>
  // expected-error @+1 {{result 'amax' must be 'tensor<2xf32>', but got 'tensor<f32>'}}
  %1 = fp4.amax %x {groups = array<i64: 32, 16>} : tensor<48x16xbf16> -> tensor<f32>
  return
}

// -----

// amax (C4)
func.func @amax_groups(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {groups = array<i64: 0, 48>} : tensor<48x16xbf16> -> tensor<2xf32>
  // expected-error @+2 {{attribute 'groups' must be at least one number of rows, none negative, but got [-1, 49]}}
  // expected-note @+1 {{a group without rows has the number 0}}
  %1 = fp4.amax %x {groups = array<i64: -1, 49>} : tensor<48x16xbf16> -> tensor<2xf32>
  return
}

// -----

// amax (C4)
func.func @amax_groups_overflow(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {groups = array<i64: 40, 8, 0>} : tensor<48x16xbf16> -> tensor<3xf32>
  // expected-error @+2 {{attribute 'groups' must add up to the rows of operand 'input', but got [9223372036854775807, 9223372036854775807, 50]}}
  // expected-note @+1 {{the operand holds the groups one after the other}}
  %1 = fp4.amax %x {groups = array<i64: 9223372036854775807, 9223372036854775807, 50>} : tensor<48x16xbf16> -> tensor<3xf32>
  return
}

// -----

// amax (C4)
func.func @amax_groups_rows(%ok: tensor<48x16xbf16>, %bad: tensor<?x16xbf16>) {
  %0 = fp4.amax %ok {groups = array<i64: 48>} : tensor<48x16xbf16> -> tensor<1xf32>
  // expected-error @+2 {{attribute 'groups' must add up to the rows of operand 'input', but got [48]}}
  // expected-note @+1 {{operand 'input' is 'tensor<?x16xbf16>'; the operand holds the groups one after the other}}
  %1 = fp4.amax %bad {groups = array<i64: 48>} : tensor<?x16xbf16> -> tensor<1xf32>
  return
}

// -----

// amax (C5)
func.func @amax_per_row_groups(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {per_row} : tensor<48x16xbf16> -> tensor<48xf32>
  // expected-error @+2 {{expects no attribute 'groups' beside 'per_row', but got one}}
  // expected-note @+1 {{rows and columns have amaxes of their own already: leave 'groups' out}}
  %1 = fp4.amax %x {per_row, groups = array<i64: 48>} : tensor<48x16xbf16> -> tensor<48xf32>
  return
}

// -----

// amax (C5)
func.func @amax_per_row_column(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {per_column} : tensor<48x16xbf16> -> tensor<16xf32>
  // expected-error @+2 {{expects no attribute 'per_column' beside 'per_row', but got one}}
  // expected-note @+1 {{use two operations}}
  %1 = fp4.amax %x {per_row, per_column} : tensor<48x16xbf16> -> tensor<16xf32>
  return
}

// -----

// amax (C5)
func.func @amax_per_column_groups(%x: tensor<48x16xbf16>) {
  %0 = fp4.amax %x {per_column} : tensor<48x16xbf16> -> tensor<16xf32>
  // expected-error @+2 {{expects no attribute 'groups' beside 'per_column', but got one}}
  // expected-note @+1 {{rows and columns have amaxes of their own already: leave 'groups' out}}
  %1 = fp4.amax %x {per_column, groups = array<i64: 48>} : tensor<48x16xbf16> -> tensor<16xf32>
  return
}

// -----

// amax (C3)
func.func @amax_per_row_type(%x: tensor<?x16xbf16>) {
  %0 = fp4.amax %x {per_row} : tensor<?x16xbf16> -> tensor<?xf32>
  // expected-error @+1 {{result 'amax' must be 'tensor<?xf32>', but got 'tensor<f32>'}}
  %1 = fp4.amax %x {per_row} : tensor<?x16xbf16> -> tensor<f32>
  return
}

// -----

// hadamard_amax (C8)
func.func @hadamard_amax_groups(%x: tensor<64x16xbf16>) {
  // Along the columns a transform stays within a row.
  %0:2 = fp4.hadamard_amax %x {groups = array<i64: 24, 40>} : tensor<64x16xbf16> -> tensor<2xf32>, tensor<2xf32>
  // expected-error @+2 {{attribute 'groups' must be multiples of 16, but got [24, 40]}}
  // expected-note @+1 {{the transform of a group does not cross its edge; pad the groups with zeros}}
  %1:2 = fp4.hadamard_amax %x {dimension = 0 : i64, groups = array<i64: 24, 40>} : tensor<64x16xbf16> -> tensor<2xf32>, tensor<2xf32>
  return
}
