//===- Fp4RoutingOps.td - Choice of experts -------------------------------===//
//
// A part of Fp4Ops.td.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4ROUTINGOPS_TD
#define FP4_DIALECT_FP4_IR_FP4ROUTINGOPS_TD

def Fp4_TopKOp : Fp4_Op<"top_k", [Fp4_InferTypes]> {
  let summary = "the k best columns of each row";
  let description = [{
    ```
    ids[i, :]    = the columns of the k largest scores of row i, largest first
    values[i, j] = f32(weights[i, ids[i, j]])
    ```

    The smaller column is the first of equal scores. NaN is larger than every number, and -0
    equals 0. Without `weights` the values are scores.

    With `num_groups` the columns are so many groups of one size. The score of a group is the f32
    sum of its two largest scores, and only columns of the `top_groups` best groups are chosen.

    A kernel by rows computes what elementwise operations and reductions of rows make of logits,
    and of `values`: a router is one kernel.

    | operand | element type   | shape                                |
    |---------|----------------|--------------------------------------|
    | scores, weights | bf16, f16, f32 | M x N, M may be dynamic, N up to 512 |
    | values  | f32            | M x k, k up to 16                    |
    | ids     | i32            | M x k                                |

    ```mlir
    %w, %ids = fp4.top_k %biased weights %s {k = 8 : i64, num_groups = 8 : i64, top_groups = 4 : i64}
        : tensor<?x256xf32>, tensor<?x256xf32> -> tensor<?x8xf32>, tensor<?x8xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$scores, Optional<AnyRankedTensor>:$weights, I64Attr:$k,
                   DefaultValuedAttr<I64Attr, "1">:$num_groups,
                   DefaultValuedAttr<I64Attr, "1">:$top_groups);
  let results = (outs AnyRankedTensor:$values, AnyRankedTensor:$ids);
  let assemblyFormat = [{
    $scores (`weights` $weights^)? attr-dict `:` type($scores) (`,` type($weights)^)? `->`
    type($values) `,` type($ids)
  }];
}

def Fp4_ExpertOrderOp : Fp4_Op<"expert_order", [Fp4_InferTypes]> {
  let summary = "tokens in the order of their experts";
  let description = [{
    ```
    e(i, j)    = ids[i, j] - first, an expert where 0 <= e(i, j) < experts
    offsets[e] = the first row of expert e, a multiple of `multiple`
    rows[i, j] = offsets[e(i, j)] + the pairs (i', j') before (i, j) of the same expert
    tokens[rows[i, j]] = i
    ```

    Pairs are in the order of tokens. Other ids, as those of experts elsewhere, have row -1. Expert
    `experts` would begin at the last of `offsets`. `tokens` of rows that no pair has are 0: rows
    between experts, and those behind the last. One kernel orders up to 1048576 ids.

    | operand | element type | shape |
    |---------|--------------|-------|
    | ids     | i32          | M x k, M may be dynamic |
    | offsets | i64          | experts + 1 |
    | rows    | i64          | M x k |
    | tokens  | i64          | M * k + experts * (multiple - 1) |

    ```mlir
    %o, %r, %t = fp4.expert_order %ids {experts = 256 : i64, multiple = 128 : i64}
        : tensor<?x8xi32> -> tensor<257xi64>, tensor<?x8xi64>, tensor<?xi64>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$ids, I64Attr:$experts,
                   DefaultValuedAttr<I64Attr, "0">:$first,
                   DefaultValuedAttr<I64Attr, "1">:$multiple);
  let results = (outs AnyRankedTensor:$offsets, AnyRankedTensor:$rows, AnyRankedTensor:$tokens);
  let assemblyFormat = [{
    $ids attr-dict `:` type($ids) `->` type($offsets) `,` type($rows) `,` type($tokens)
  }];
}

#endif // FP4_DIALECT_FP4_IR_FP4ROUTINGOPS_TD
