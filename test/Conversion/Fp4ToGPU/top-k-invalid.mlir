// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target="target=sm_90a" -fp4-plan-kernels -convert-fp4-to-gpu

#id = affine_map<(r, c) -> (r, c)>

// The attribute that fp4-fuse writes, where a kernel behind computes the values.
func.func @legal(%x: tensor<8x64xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %v, %i = fp4.top_k %x {fp4.prologue, k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.absf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}

// -----

func.func @nobody(%x: tensor<8x64xf32>) -> tensor<8x4xf32> {
  // expected-error @+2 {{'fp4.top_k' op must have readers that compute it, but no 'linalg.generic' behind it needs its values first}}
  // expected-note @+1 {{remove the attribute fp4.prologue, and the operation becomes a kernel of its own}}
  %v, %i = fp4.top_k %x {fp4.prologue, k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  return %v : tensor<8x4xf32>
}

// -----

// A quantizer of the k best does not choose them.
func.func @quantizer(%x: tensor<8x64xf32>) -> tensor<8x16xf8E4M3FN> {
  // expected-error @+2 {{'fp4.top_k' op must have readers that compute it, but no 'linalg.generic' behind it needs its values first}}
  // expected-note @+1 {{remove the attribute fp4.prologue}}
  %v, %i = fp4.top_k %x {fp4.prologue, k = 16 : i64} : tensor<8x64xf32> -> tensor<8x16xf32>, tensor<8x16xi32>
  %q, %s = fp4.quantize %v {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 16>} : (tensor<8x16xf32>) -> (tensor<8x16xf8E4M3FN>, tensor<8x1xf32>)
  return %q : tensor<8x16xf8E4M3FN>
}

// -----

#id = affine_map<(r, c) -> (r, c)>

func.func @before(%x: tensor<8x64xf32>) -> (tensor<8x2xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  // expected-error @+2 {{'fp4.top_k' op must have readers that compute it, but no 'linalg.generic' behind it needs its values first}}
  // expected-note @+1 {{remove the attribute fp4.prologue}}
  %v, %i = fp4.top_k %x {fp4.prologue, k = 4 : i64} : tensor<8x64xf32> -> tensor<8x4xf32>, tensor<8x4xi32>
  %u, %j = fp4.top_k %v {k = 2 : i64} : tensor<8x4xf32> -> tensor<8x2xf32>, tensor<8x2xi32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.absf %a : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %u, %w : tensor<8x2xf32>, tensor<8x4xf32>
}
