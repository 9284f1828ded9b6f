// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=random --dim T=16 | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --device=sim --check=strict --policy=lazy --dim T=150 | FileCheck %s
// RUN: fp4-runner %s --target=sm_100a --device=sim --check=strict --policy=delay --dim T=1 | FileCheck %s
// RUN: fp4-runner %s --target=sm_120a --device=sim --check=strict --policy=random --dim T=40 | FileCheck %s

// A mixture of experts of FP8 in blocks, for any number of tokens, is one program of nine kernels. A kernel gathers rows
// of tokens and quantizes them, and another one activates and quantizes those between both GEMMs.
// CHECK: top_k_0
// CHECK-NEXT: expert_order_0
// CHECK-NEXT: row_quantize_0
// CHECK-NEXT: groups_
// CHECK-NEXT: matmul_
// CHECK-NEXT: row_quantize_
// CHECK-NEXT: groups_
// CHECK-NEXT: matmul_
// CHECK-NEXT: rows_
// CHECK-NEXT: 9 launched
// CHECK: y {{.*}}equals the reference, bit for bit
// CHECK: none (strict check)

#all = affine_map<(i, j) -> (i, j)>
!rows = tensor<?x256xbf16>
!codes = tensor<?x256xf8E4M3FN>
!scales = tensor<?x2xf32>
!up = tensor<2048x256xf8E4M3FN>
!up_scales = tensor<16x2xf32>
!down = tensor<1024x256xf8E4M3FN>
!down_scales = tensor<8x2xf32>
!lhs = !fp4.scaled<fp8_block128, !codes, !scales>
!rhs_up = !fp4.scaled<fp8_block128, !up, !up_scales>
!rhs_down = !fp4.scaled<fp8_block128, !down, !down_scales>
// The rows of the first weights of an expert are those of its gate and then those of its up projection.
func.func @mixture(%x: !rows {fp4.dims = ["T", ""]}, %logits: tensor<?x4xf32> {fp4.dims = ["T", ""]}, %up: !up, %up_scales: !up_scales,
    %down: !down, %down_scales: !down_scales) -> (!rows {fp4.name = "y"}) {
  %c0 = arith.constant 0 : index
  %weights, %ids = fp4.top_k %logits {k = 2 : i64} : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %offsets, %pairs, %tokens = fp4.expert_order %ids {experts = 4 : i64}
      : tensor<?x2xi32> -> tensor<5xi64>, tensor<?x2xi64>, tensor<?xi64>
  %count = tensor.dim %tokens, %c0 : tensor<?xi64>
  %from = tensor.expand_shape %tokens [[0, 1]] output_shape [%count, 1] : tensor<?xi64> into tensor<?x1xi64>
  %each = tensor.gather %x[%from] gather_dims([0]) : (!rows, tensor<?x1xi64>) -> !rows
  %q, %s = fp4.quantize %each {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (!rows) -> (!codes, !scales)
  %lhs = fp4.scaled %q, %s : !lhs
  %rhs = fp4.scaled %up, %up_scales : !rhs_up
  %both = fp4.matmul %lhs, %rhs offsets %offsets {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs_up, tensor<5xi64>) -> tensor<?x512xbf16>
  %empty = tensor.empty(%count) : !rows
  %hidden = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j mod 256)>, affine_map<(i, j) -> (i, j mod 256 + 256)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%both, %both : tensor<?x512xbf16>, tensor<?x512xbf16>) outs(%empty : !rows) {
  ^bb0(%g: bf16, %u: bf16, %out: bf16):
    %gate = arith.extf %g : bf16 to f32
    %sum = arith.extf %u : bf16 to f32
    %one = arith.constant 1.0 : f32
    %negated = arith.negf %gate : f32
    %exp = math.exp %negated : f32
    %below = arith.addf %exp, %one : f32
    %glu = arith.divf %gate, %below : f32
    %product = arith.mulf %glu, %sum : f32
    %rounded = arith.truncf %product : f32 to bf16
    linalg.yield %rounded : bf16
  } -> !rows
  %hq, %hs = fp4.quantize %hidden {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (!rows) -> (!codes, !scales)
  %hidden_lhs = fp4.scaled %hq, %hs : !lhs
  %hidden_rhs = fp4.scaled %down, %down_scales : !rhs_down
  %given = fp4.matmul %hidden_lhs, %hidden_rhs offsets %offsets {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs_down, tensor<5xi64>) -> !rows
  %numbers = tensor.collapse_shape %pairs [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %shares = tensor.collapse_shape %weights [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %back = tensor.expand_shape %numbers [[0, 1]] output_shape [%count, 1] : tensor<?xi64> into tensor<?x1xi64>
  %found = tensor.gather %given[%back] gather_dims([0]) : (!rows, tensor<?x1xi64>) -> !rows
  %height = tensor.dim %x, %c0 : !rows
  %place = tensor.empty(%height) : !rows
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i * 2, j)>, affine_map<(i, j) -> (i, j floordiv 256)>,
                       affine_map<(i, j) -> (i * 2 + 1, j)>, affine_map<(i, j) -> (i * 2 + 1)>, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%found, %weights, %found, %shares : !rows, tensor<?x2xf32>, !rows, tensor<?xf32>) outs(%place : !rows) {
  ^bb0(%a: bf16, %wa: f32, %b: bf16, %wb: f32, %out: bf16):
    %first = arith.extf %a : bf16 to f32
    %second = arith.extf %b : bf16 to f32
    %pa = arith.mulf %first, %wa : f32
    %pb = arith.mulf %second, %wb : f32
    %total = arith.addf %pa, %pb : f32
    %rounded = arith.truncf %total : f32 to bf16
    linalg.yield %rounded : bf16
  } -> !rows
  return %y : !rows
}
