//===- Fp4Plan.td - Plans that turn operations into kernels ---------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4PLAN_TD
#define FP4_DIALECT_FP4_IR_FP4PLAN_TD

include "fp4/Dialect/Fp4/IR/Fp4Attrs.td"

def Fp4_KernelFamily : Fp4_I32Enum<"KernelFamily", "family of kernels", [
    I32EnumAttrCase<"TileGemm", 0, "tile_gemm">,
    I32EnumAttrCase<"TileTransform", 1, "tile_transform">,
    I32EnumAttrCase<"TileQuantize", 2, "tile_quantize">,
    I32EnumAttrCase<"StreamBlocks", 3, "stream_blocks">,
    I32EnumAttrCase<"StreamItems", 4, "stream_items">,
    I32EnumAttrCase<"ReduceGrid", 5, "reduce_grid">,
    I32EnumAttrCase<"ReduceRows", 6, "reduce_rows">,
    I32EnumAttrCase<"Gemv", 7, "gemv">,
    I32EnumAttrCase<"TileAttention", 8, "tile_attention">,
    I32EnumAttrCase<"WarpAttention", 9, "warp_attention">]>;

def Fp4_ResultStore : Fp4_I32Enum<"ResultStore", "way of a result to global memory", [
    I32EnumAttrCase<"Direct", 0, "direct">,
    I32EnumAttrCase<"Tma", 1, "tma">]>;

def Fp4_CtaOrder : Fp4_I32Enum<"CtaOrder", "order in which CTAs take a matrix", [
    I32EnumAttrCase<"Ascending", 0, "ascending">,
    I32EnumAttrCase<"Descending", 1, "descending">]>;

def Fp4_AmaxKernel : Fp4_I32Enum<"AmaxKernel", "kernel that computes the amax of a quantizer", [
    I32EnumAttrCase<"Separate", 0, "separate">,
    I32EnumAttrCase<"Same", 1, "same">]>;

def Fp4_ReductionPlace : Fp4_I32Enum<"ReductionPlace", "place of the reduction of split-K parts", [
    I32EnumAttrCase<"Workspace", 0, "workspace">,
    I32EnumAttrCase<"Cluster", 1, "cluster">]>;

def Fp4_RouteAttr : AttrDef<Fp4_Dialect, "Route"> {
  let mnemonic = "route";
  let summary = "way of a GEMM to the tensor core";
  let description = [{
    The field `route` of a plan. A complete plan has all axes, and a partial plan those that
    somebody asks for. The routes of each pair of operands on each target are a table
    (docs/reference/routes.md), and `fp4-runner routes --target=NAME` prints the part of a target.

    | axis | values |
    |------|--------|
    | core | tcgen05, wgmma, mma_sync, fma |
    | a, b | as_is, unit_scales, registers, shared, tmem, pre |
    | accumulate | core, promote(128), fast |
    | orientation | normal, swapped |

    Constraints: (C1) an axis is one of the table, given once, and its value is one of its words.

    Example: `#fp4.route<core = wgmma, a = registers, b = shared>`.
  }];
  let parameters =
      (ins AttrParameter<"::fp4::route::Route", "axes", "const ::fp4::route::Route &">:$route);
  let hasCustomAssemblyFormat = 1;
}

def Fp4_PlanAttr : AttrDef<Fp4_Dialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "decisions that turn an operation into a kernel";
  let description = [{
    The attribute `fp4.plan` of an operation says which kernel it becomes. `fp4-plan-kernels` writes
    it, and lowerings read it. A program may write a plan, whose open fields the pass fills.

    | family | kernel | fields |
    |--------|--------|--------|
    | tile_gemm | output tiles on the tensor core | route, tile, cluster, fallback, reduction, k_slices, sliced_k, pair, store, epilogue_warps, mma_warps, schedule, roles, stages, accumulators, ctas_per_sm, pdl, wave_cost |
    | tile_transform | quantizer whose transform runs on the tensor core | tile, strip, schedule, roles, stages, accumulators, ctas_per_sm |
    | tile_quantize | a CTA quantizes a tile along rows, columns or both | threads, ctas_per_sm, order |
    | stream_blocks | threads quantize or decode blocks of rows | threads, blocks_per_thread, lanes_per_block, ctas_per_sm, pdl, cache_hints, order, amax |
    | stream_items | threads take work items from a list | threads, items_per_thread, pdl |
    | reduce_grid | all threads reduce to one number | threads, items_per_thread, grid |
    | reduce_rows | a team of threads has a row (RowTeams.h), or a CTA its amax | cluster, threads, rows_per_thread, ctas_per_sm, pdl, strip, stages, single_rows |
    | tile_attention | blocks of queries pass over blocks of keys | tile, cluster, k_slices, schedule, roles, stages, ctas_per_sm |
    | warp_attention | warps share the keys of few queries, and multiply with mma.sync | threads, ctas_per_sm, k_slices, strip |
    | gemv | a warp multiplies a few rows (small M) with rows of a matrix | route, threads, ctas_per_sm |

    | field | meaning |
    |-------|---------|
    | route | a [route](fp4-attributes.md#fp4route) without its prefix: `route = <core = wgmma, b = pre>`. Axes that are left out are open |
    | tile | tile_gemm: rows, columns and depth of an output tile, in elements, or with routes whose tiles are transposed of the transposed result. tile_transform: rows and columns of a tile of the input. tile_attention: rows of a tile, keys of a block, and heads of a token that are rows of one tile, because they share keys; of gradients, queries and keys of a block |
    | cluster | CTAs along the rows and the columns that load operands together; without it, one. tile_attention: CTAs along the rows that share the keys of a tile. reduce_rows: `[1, n]`, CTAs that have a row together |
    | fallback | CTAs along both of the clusters that run where the hardware has no room for `cluster`, which is a multiple of it; only with pairs, on targets with preferred clusters |
    | reduction | cluster: the CTAs of a cluster, or its pairs, have the split-K parts of a tile and reduce them in shared memory; `cluster` has a CTA along the rows for each, or a pair. workspace, and without it: the last CTA of a tile adds sums in global memory. On sm_90a, `cluster` alone says so |
    | k_slices | k slices of a CTA, each with sums of its own; without it, one. tile_attention with `latent`: slices of keys, each a CTA's |
    | sliced_k | each k slice has warpgroups of its own, and the first adds all sums; without it, all warps have all slices |
    | pair | two CTAs along the rows work on a tile as one tensor core |
    | store | tma: results leave through tiles in shared memory, which TMA stores. direct, and in a complete plan without it: threads write them from their registers |
    | epilogue_warps | 4 or 8 warps that read accumulators in tensor memory, 8 in two halves of the columns; without it, 4 |
    | mma_warps | 2: a second warp copies scales to tensor memory; 1: one does both. Only for block-scaled GEMMs with tcgen05, whose roles have as many |
    | strip | tiles along the rows that a CTA takes in turn. reduce_rows: rows. warp_attention: heads of keys |
    | schedule | sharing of tiles among CTAs: `#pipe.static_persistent<along_m>`, or in tile_gemm on tcgen05 also `#pipe.cluster_launch<along_m>` |
    | roles | assignment of warps to engines, a `#pipe.role_plan` |
    | stages | most stages of a ring in shared memory; without it, as many as fit, up to 8. reduce_rows: 1 row |
    | single_rows | last rows, with a CTA each, unless strips fill their waves |
    | accumulators | most accumulators in tensor memory; without it, as many as fit, up to 4 |
    | threads | threads of a CTA |
    | blocks_per_thread | scale blocks of a thread |
    | lanes_per_block | lanes that have a scale block together, or threads that have a row which is one; without it, as few as keep it in registers |
    | items_per_thread | work items of a thread |
    | rows_per_thread | rows that a thread has at once; without it, one |
    | ctas_per_sm | CTAs per SM; without it, as many as fit |
    | pdl | [place](fp4-attributes.md#fp4launch_dependents) where the kernel lets the next one begin (PDL). none, and without it: no PDL |
    | wave_cost | predicted cost in a unit of `dispatch`: once, for each wave of tiles, and for each k tile of a wave |
    | grid | most CTAs for each SM |
    | cache_hints | accesses tell the caches that each line is used once |
    | order | descending: CTAs take the matrix from its end, which the L2 cache still has where the kernel before read it last. ascending, and without it: from its beginning |
    | amax | same: the kernel computes the amax of its input too, in CTAs that wait for each other, unless they are more than 7/8 of those that the device holds at once. separate, and without it: two kernels |

    Example: `#fp4.plan<tile_gemm, tile = [128, 64, 256]>`,
    `#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>`.
  }];
  let parameters = (ins AttrParameter<"::fp4::KernelPlan", "decisions",
                                      "const ::fp4::KernelPlan &">:$plan);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::fp4::KernelFamily getFamily() const { return getPlan().family; }
  }];
}

def Fp4_CaseAttr : AttrDef<Fp4_Dialect, "Case"> {
  let mnemonic = "case";
  let summary = "a plan, and the sizes for which it holds";
  let description = [{
    An element of `dispatch` of a matmul. Host code launches the kernel of the case whose guard the
    sizes meet, or of several with `wave_cost` the cheapest. Row kernels and streams have `fp4.dispatch`: cases for
    few rows, beside the `fp4.plan` for more.

    | member of the guard | meaning |
    |--------|---------|
    | `m`, `n`, `k` = [least, most] | M, N or K; `?` is no bound |
    | `k_unit` | a divisor of K, beside `wave_cost` |
    | `split_k` | as in `#fp4.work`; it alone changes bits |
    | `any` | no other member |

    ```mlir
    #fp4.case<m = [1, 16], split_k = 4 : tile_gemm, tile = [16, 128, 256]>
    #fp4.case<m = [17, ?] : tile_gemm>
    #fp4.case<m = [1, 132] : reduce_rows, threads = 448>
    ```
  }];
  let parameters = (ins AttrParameter<"::fp4::KernelPlan", "the plan, with its guard",
                                      "const ::fp4::KernelPlan &">:$plan,
                        "std::optional<int64_t>":$splitK);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Fp4_DispatchAttr : TypedArrayAttrBase<Fp4_CaseAttr, "list of #fp4.case">;

#endif // FP4_DIALECT_FP4_IR_FP4PLAN_TD
