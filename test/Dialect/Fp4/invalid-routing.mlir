// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// top_k (C1)
func.func @elements(%x: tensor<4x64xf32>, %bad: tensor<4x64xf8E4M3FN>) {
  %0:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{operand 'scores' must have elements of type bf16, f16 or f32, but got 'tensor<4x64xf8E4M3FN>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
  %1:2 = fp4.top_k %bad {k = 2 : i64} : tensor<4x64xf8E4M3FN> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C1)
func.func @weight_elements(%x: tensor<4x64xf32>, %bad: tensor<4x64xi32>) {
  %0:2 = fp4.top_k %x weights %x {k = 2 : i64} : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{operand 'weights' must have elements of type bf16, f16 or f32, but got 'tensor<4x64xi32>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
  %1:2 = fp4.top_k %x weights %bad {k = 2 : i64} : tensor<4x64xf32>, tensor<4x64xi32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C2)
func.func @dynamic(%x: tensor<4x64xf32>, %bad: tensor<4x?xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{operand 'scores' must have a static number of columns, but got 'tensor<4x?xf32>'}}
  // expected-note @+1 {{only the rows, dimension 0, may be dynamic}}
  %1:2 = fp4.top_k %bad {k = 2 : i64} : tensor<4x?xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C2)
func.func @columns(%x: tensor<4x512xf32>, %bad: tensor<4x513xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x512xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{operand 'scores' must have 1 to 512 columns, but got 'tensor<4x513xf32>'}}
  // expected-note @+1 {{take the best of parts of a row, and then the best of these}}
  %1:2 = fp4.top_k %bad {k = 2 : i64} : tensor<4x513xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C2)
func.func @weight_shape(%x: tensor<4x64xf32>, %bad: tensor<4x32xf32>) {
  %0:2 = fp4.top_k %x weights %x {k = 2 : i64} : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{operand 'weights' must be 'tensor<4x64xf32>', but got 'tensor<4x32xf32>'}}
  // expected-note @+1 {{each score has a weight}}
  %1:2 = fp4.top_k %x weights %bad {k = 2 : i64} : tensor<4x64xf32>, tensor<4x32xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C3)
func.func @most(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 16 : i64} : tensor<4x64xf32> -> tensor<4x16xf32>, tensor<4x16xi32>
  // expected-error @+2 {{attribute 'k' must be 1 to 16, but got 17}}
  // expected-note @+1 {{a thread has the results of a row, up to 16 columns}}
  %1:2 = fp4.top_k %x {k = 17 : i64} : tensor<4x64xf32> -> tensor<4x17xf32>, tensor<4x17xi32>
  return
}

// -----

// top_k (C3)
func.func @none(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 1 : i64} : tensor<4x64xf32> -> tensor<4x1xf32>, tensor<4x1xi32>
  // expected-error @+2 {{attribute 'k' must be 1 to 16, but got 0}}
  // expected-note @+1 {{a thread has the results of a row}}
  %1:2 = fp4.top_k %x {k = 0 : i64} : tensor<4x64xf32> -> tensor<4x0xf32>, tensor<4x0xi32>
  return
}

// -----

// top_k (C3)
func.func @more_than_columns(%x: tensor<4x3xf32>) {
  %0:2 = fp4.top_k %x {k = 3 : i64} : tensor<4x3xf32> -> tensor<4x3xf32>, tensor<4x3xi32>
  // expected-error @+2 {{attribute 'k' must be 1 to 3, but got 4}}
  // expected-note @+1 {{a thread has the results of a row}}
  %1:2 = fp4.top_k %x {k = 4 : i64} : tensor<4x3xf32> -> tensor<4x4xf32>, tensor<4x4xi32>
  return
}

// -----

// top_k (C4)
func.func @groups(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64, num_groups = 32 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{attribute 'num_groups' must be 1 to 32, but got 64}}
  // expected-note @+1 {{leave it out where scores have no groups}}
  %1:2 = fp4.top_k %x {k = 2 : i64, num_groups = 64 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C4)
func.func @size_of_groups(%x: tensor<4x96xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64, num_groups = 3 : i64} : tensor<4x96xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{attribute 'num_groups' must make groups of a power of two of columns, at least 2, but got 4 of 96 columns}}
  // expected-note @+1 {{choose groups by operations before, and set scores of others to -inf}}
  %1:2 = fp4.top_k %x {k = 2 : i64, num_groups = 4 : i64} : tensor<4x96xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C5)
func.func @top_groups(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64, num_groups = 4 : i64, top_groups = 4 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+2 {{attribute 'top_groups' must be 1 to 4, but got 5}}
  // expected-note @+1 {{it counts the groups that are chosen}}
  %1:2 = fp4.top_k %x {k = 2 : i64, num_groups = 4 : i64, top_groups = 5 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

// top_k (C5)
func.func @few_groups(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 8 : i64, num_groups = 16 : i64, top_groups = 2 : i64} : tensor<4x64xf32> -> tensor<4x8xf32>, tensor<4x8xi32>
  // expected-error @+2 {{attribute 'top_groups' must be of so many groups that they have 'k' columns, but got 1 of 4 columns for 8}}
  // expected-note @+1 {{choose more groups, or fewer columns}}
  %1:2 = fp4.top_k %x {k = 8 : i64, num_groups = 16 : i64, top_groups = 1 : i64} : tensor<4x64xf32> -> tensor<4x8xf32>, tensor<4x8xi32>
  return
}

// -----

// top_k (C6)
func.func @values(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+1 {{result 'values' must be 'tensor<4x2xf32>', but got 'tensor<4x2xbf16>'}}
  %1:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xbf16>, tensor<4x2xi32>
  return
}

// -----

// top_k (C6)
func.func @ids(%x: tensor<4x64xf32>) {
  %0:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  // expected-error @+1 {{result 'ids' must be 'tensor<4x2xi32>', but got 'tensor<4x2xi64>'}}
  %1:2 = fp4.top_k %x {k = 2 : i64} : tensor<4x64xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  return
}

// -----

// expert_order (C1)
func.func @id_elements(%i: tensor<4x2xi32>, %bad: tensor<4x2xi64>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+2 {{operand 'ids' must have elements of type i32, but got 'tensor<4x2xi64>'}}
  // expected-note @+1 {{fp4.top_k gives such ids}}
  %1:3 = fp4.expert_order %bad {experts = 8 : i64} : tensor<4x2xi64> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  return
}

// -----

// expert_order (C1)
func.func @id_rank(%i: tensor<4x2xi32>, %bad: tensor<8xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+1 {{operand 'ids' must have 2 dimensions, but got 'tensor<8xi32>'}}
  %1:3 = fp4.expert_order %bad {experts = 8 : i64} : tensor<8xi32> -> tensor<9xi64>, tensor<8xi64>, tensor<8xi64>
  return
}

// -----

// expert_order (C1)
func.func @no_ids(%i: tensor<4x1xi32>, %bad: tensor<4x0xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x1xi32> -> tensor<9xi64>, tensor<4x1xi64>, tensor<4xi64>
  // expected-error @+2 {{operand 'ids' must have a column, but got 'tensor<4x0xi32>'}}
  // expected-note @+1 {{each token has an expert or more}}
  %1:3 = fp4.expert_order %bad {experts = 8 : i64} : tensor<4x0xi32> -> tensor<9xi64>, tensor<4x0xi64>, tensor<0xi64>
  return
}

// -----

// expert_order (C2)
func.func @experts(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 512 : i64} : tensor<4x2xi32> -> tensor<513xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+2 {{attribute 'experts' must be 1 to 512, but got 513}}
  // expected-note @+1 {{a device has so many of them}}
  %1:3 = fp4.expert_order %i {experts = 513 : i64} : tensor<4x2xi32> -> tensor<514xi64>, tensor<4x2xi64>, tensor<8xi64>
  return
}

// -----

// expert_order (C2)
func.func @first(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64, first = 0 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+2 {{attribute 'first' must be 0 to 2147483647, but got -1}}
  // expected-note @+1 {{it is the id of the first expert of this device}}
  %1:3 = fp4.expert_order %i {experts = 8 : i64, first = -1 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  return
}

// -----

// expert_order (C2)
func.func @multiple(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64, multiple = 1024 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8192xi64>
  // expected-error @+2 {{attribute 'multiple' must be 1 to 1024, but got 1025}}
  // expected-note @+1 {{it is the unit in which experts have rows}}
  %1:3 = fp4.expert_order %i {experts = 8 : i64, multiple = 1025 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8200xi64>
  return
}

// -----

// expert_order (C3)
func.func @many(%i: tensor<524288x2xi32>, %bad: tensor<524289x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<524288x2xi32> -> tensor<9xi64>, tensor<524288x2xi64>, tensor<1048576xi64>
  // expected-error @+2 {{operand 'ids' must have at most 1048576 elements, but got 'tensor<524289x2xi32>'}}
  // expected-note @+1 {{order parts of the tokens}}
  %1:3 = fp4.expert_order %bad {experts = 8 : i64} : tensor<524289x2xi32> -> tensor<9xi64>, tensor<524289x2xi64>, tensor<1048578xi64>
  return
}

// -----

// expert_order (C4)
func.func @offsets(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+1 {{result 'offsets' must be 'tensor<9xi64>', but got 'tensor<8xi64>'}}
  %1:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<8xi64>, tensor<4x2xi64>, tensor<8xi64>
  return
}

// -----

// expert_order (C4)
func.func @rows(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  // expected-error @+1 {{result 'rows' must be 'tensor<4x2xi64>', but got 'tensor<4x2xi32>'}}
  %1:3 = fp4.expert_order %i {experts = 8 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi32>, tensor<8xi64>
  return
}

// -----

// expert_order (C4)
func.func @tokens(%i: tensor<4x2xi32>) {
  %0:3 = fp4.expert_order %i {experts = 8 : i64, multiple = 4 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<32xi64>
  // expected-error @+1 {{result 'tokens' must be 'tensor<32xi64>', but got 'tensor<8xi64>'}}
  %1:3 = fp4.expert_order %i {experts = 8 : i64, multiple = 4 : i64} : tensor<4x2xi32> -> tensor<9xi64>, tensor<4x2xi64>, tensor<8xi64>
  return
}
