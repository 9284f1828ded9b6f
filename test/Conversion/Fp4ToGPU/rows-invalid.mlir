// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target="target=sm_90a" -fp4-plan-kernels -convert-fp4-to-gpu

#mm = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @rows_of_columns(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel: it reduces the rows of each column, and a kernel reduces the columns of each row}}
  // expected-note @+1 {{kernels reduce the columns of each row of a matrix to one f32, and begin with a constant: transpose the matrix before, or convert its elements}}
  %s = linalg.generic {indexing_maps = [#mm, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<16x16xf32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %acc, %v : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// -----

#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @dynamic(%x: tensor<16x?xf32>) -> tensor<16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: the columns are dynamic}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %s = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16x?xf32>) outs(%zero : tensor<16xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %acc, %v : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// -----

#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @stored(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // expected-error @+2 {{must have readers that compute it, but no kernel computes and stores it}}
  // expected-note @+1 {{remove the attribute fp4.prologue, and the operation becomes a kernel of its own}}
  %s = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16x16xf32>) outs(%zero : tensor<16xf32>) attrs = {fp4.prologue = "stored"} {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %acc, %v : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// -----

#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @no_matrix(%g: tensor<64xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @+2 {{'linalg.generic' op has no kernel by rows: no operand has an element for each of the matrix}}
  // expected-note @+1 {{give it a matrix with static columns as an operand}}
  %s = linalg.generic {indexing_maps = [#column, #row], iterator_types = ["parallel", "reduction"]}
      ins(%g : tensor<64xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %n = arith.addf %acc, %v : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// A hadamard reads the residual before the kernel of the sum stores it.
#mm = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @early(%x: tensor<16x16xbf16>) -> (tensor<16x16xbf16>, tensor<16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %e = tensor.empty() : tensor<16x16xbf16>
  // expected-error @+2 {{must have readers that compute it, but 'fp4.hadamard' reads it before the kernel that stores it}}
  // expected-note @+1 {{remove the attribute fp4.prologue, and the operation becomes a kernel of its own}}
  %h = linalg.generic {indexing_maps = [#mm, #mm], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<16x16xbf16>) outs(%e : tensor<16x16xbf16>) attrs = {fp4.prologue = "stored"} {
  ^bb0(%v: bf16, %o: bf16):
    %n = arith.negf %v : bf16
    linalg.yield %n : bf16
  } -> tensor<16x16xbf16>
  %t = fp4.hadamard %h : tensor<16x16xbf16> -> tensor<16x16xbf16>
  %s = linalg.generic {indexing_maps = [#mm, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h : tensor<16x16xbf16>) outs(%zero : tensor<16xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %n = arith.addf %acc, %f : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %t, %s : tensor<16x16xbf16>, tensor<16xf32>
}

// -----

// The amax of rows of another matrix, or one that something before the quantizer reads, is no prologue.
func.func @amax_of_another(%x: tensor<16x32xbf16>, %y: tensor<16x32xbf16>) -> (tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>) {
  // expected-error @+2 {{'fp4.amax' op must have readers that compute it, but no quantizer along rows of the same input is the first of them}}
  // expected-note @+1 {{remove the attribute fp4.prologue, and the operation becomes a kernel of its own}}
  %a = fp4.amax %y {per_row, fp4.prologue} : tensor<16x32xbf16> -> tensor<16xf32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<16x32xbf16>, tensor<16xf32>) -> (tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>)
  return %q, %s : tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>
}

// -----

// A quantizer without a kernel by rows does not compute an amax of rows.
func.func @amax_of_adaptive(%x: tensor<16x32xbf16>) -> (tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>) {
  %a = fp4.amax %x {per_row, fp4.prologue} : tensor<16x32xbf16> -> tensor<16xf32>
  // expected-error @+2 {{'fp4.quantize' op has no kernel by rows: the recipe compares two scales of a block}}
  // expected-note @+1 {{remove the attribute fp4.prologue from what it reads}}
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>, per_row}
      : (tensor<16x32xbf16>, tensor<16xf32>) -> (tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>)
  return %q, %s : tensor<16x32xf4E2M1FN>, tensor<16x2xf8E4M3FN>
}
