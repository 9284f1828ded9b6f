// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target="target=sm_90a" -fp4-plan-kernels -convert-fp4-to-gpu
// Elementwise operations on matrices that read other rows and columns than their own, or the numbers of these.

// The verifier of the dialect looks at the first and the last column, and a kernel at all others.
func.func @behind_the_last(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+1 {{'linalg.generic' op inferred input/output operand #0 has shape's dimension #1 to be greater than or equal to 65, but found 64}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j + 1)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @between(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: column 22 of the result reads column 66 of an operand with 64}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, (j * 3) mod 70)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Remainders of negative numbers differ from one language to the next: there is no kernel for them.
func.func @before_the_first(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the column of an operand divides a negative number, or rounds up}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, (j - 1) mod 64)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @rounded_up(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the column of an operand divides a negative number, or rounds up}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j ceildiv 2)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Rows are those of the result, or these divided or multiplied.
func.func @next_row(%x: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the row of an operand is not d0, d0 divided by a number, or d0 * n + c}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + 1, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<16x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @rows_from_behind(%x: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the row of an operand is not d0, d0 divided by a number, or d0 * n + c}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * -2 + 15, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<16x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @rows_in_order_twice(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the row of an operand is not d0, d0 divided by a number, or d0 * n + c}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> ((i floordiv 2) mod 2, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @diagonal(%x: tensor<8x128xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: a dimension of an operand is indexed by several loops}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, (i + j) mod 128)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x128xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @turned(%x: tensor<8x64xf32>, %w: tensor<8x8xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: an operand is transposed}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j floordiv 8, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<8x8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %n = arith.addf %v, %u : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @row_of_another(%x: tensor<8x64xf32>, %w: tensor<3x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: an operand is read in part}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (1, (j + 32) mod 64)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<3x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %n = arith.addf %v, %u : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @dynamic_columns(%x: tensor<8x?xf32>, %e: tensor<8x?xf32>) -> tensor<8x?xf32> {
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the columns are dynamic}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j floordiv 2)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x?xf32>) outs(%e : tensor<8x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x?xf32>
  return %y : tensor<8x?xf32>
}

// -----

func.func @index_of_dynamic_columns(%x: tensor<8x?xf32>, %e: tensor<8x?xf32>) -> tensor<8x?xf32> {
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the columns are dynamic}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x?xf32>) outs(%e : tensor<8x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i32
    %k = arith.constant 3 : i32
    %p = arith.cmpi ult, %c, %k : i32
    %m = arith.negf %v : f32
    %n = arith.select %p, %m, %v : f32
    linalg.yield %n : f32
  } -> tensor<8x?xf32>
  return %y : tensor<8x?xf32>
}

// -----

// The last of nine rows reads row 0, and the fourth reads row 3, which is not there.
func.func @few_rows(%x: tensor<9x64xf32>, %w: tensor<3x64xf32>) -> tensor<9x64xf32> {
  %e = tensor.empty() : tensor<9x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: an operand has fewer rows than the 4 that are read}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i mod 4, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<9x64xf32>, tensor<3x64xf32>) outs(%e : tensor<9x64xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %n = arith.addf %v, %u : f32
    linalg.yield %n : f32
  } -> tensor<9x64xf32>
  return %y : tensor<9x64xf32>
}

// -----

// A call may have fewer.
func.func @dynamic_rows(%x: tensor<?x64xf32>, %w: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: an operand has fewer rows than the 4 that are read}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i mod 4, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<?x64xf32>) outs(%x : tensor<?x64xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %n = arith.addf %v, %u : f32
    linalg.yield %n : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// The rows of the result are those of no operand.
func.func @no_rows(%x: tensor<4x64xf32>) -> tensor<16x64xf32> {
  %e = tensor.empty() : tensor<16x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: no operand of the reader has an element for each result}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i floordiv 4, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x64xf32>) outs(%e : tensor<16x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// -----

// Regions compute integers of 32 bits.
func.func @as_i64(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: 'linalg.index' is read by more than arith.index_cast to i32}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i64
    %k = arith.constant 3 : i64
    %p = arith.cmpi ult, %c, %k : i64
    %m = arith.negf %v : f32
    %n = arith.select %p, %m, %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

func.func @as_index(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: 'linalg.index' is read by more than arith.index_cast to i32}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 1 : index
    %k = arith.constant 3 : index
    %p = arith.cmpi ult, %i, %k : index
    %m = arith.negf %v : f32
    %n = arith.select %p, %m, %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Rows and columns are those of matrices.
func.func @index_of_batches(%x: tensor<2x8x64xf32>) -> tensor<2x8x64xf32> {
  %e = tensor.empty() : tensor<2x8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the reader is no operation on a matrix}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x8x64xf32>) outs(%e : tensor<2x8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 2 : index
    %c = arith.index_cast %i : index to i32
    %k = arith.constant 3 : i32
    %p = arith.cmpi ult, %c, %k : i32
    %m = arith.negf %v : f32
    %n = arith.select %p, %m, %v : f32
    linalg.yield %n : f32
  } -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// -----

func.func @batches(%x: tensor<2x8x64xf32>) -> tensor<2x8x64xf32> {
  %e = tensor.empty() : tensor<2x8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the reader is no operation on a matrix}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i floordiv 2, j)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x8x64xf32>) outs(%e : tensor<2x8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// -----

// The columns of a row are found without a matrix, but a row kernel has one.
func.func @one_loop(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the reader is no operation on a matrix}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(j) -> ((j + 32) mod 64)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

func.func @bytes(%x: tensor<8x64xf8E4M3FN>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the elements are not f32, bf16 or f16}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, (j + 32) mod 64)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf8E4M3FN>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f8E4M3FN, %o: f32):
    %n = arith.extf %v : f8E4M3FN to f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// A reduction of rows reads its columns in their order: the definition of a sum says which elements it adds first.
func.func @reduced(%x: tensor<8x64xf32>, %w: tensor<8x64xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: an operand is indexed by more than loops}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, (j + 32) mod 64)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<8x64xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%v: f32, %u: f32, %acc: f32):
    %p = arith.mulf %v, %u : f32
    %n = arith.addf %acc, %p : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}
