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
    I32EnumAttrCase<"Gemv", 7, "gemv">]>;

def Fp4_ResultStore : Fp4_I32Enum<"ResultStore", "way of a result to global memory", [
    I32EnumAttrCase<"Direct", 0, "direct">,
    I32EnumAttrCase<"Tma", 1, "tma">]>;

def Fp4_CtaOrder : Fp4_I32Enum<"CtaOrder", "order in which CTAs take a matrix", [
    I32EnumAttrCase<"Ascending", 0, "ascending">,
    I32EnumAttrCase<"Descending", 1, "descending">]>;

def Fp4_AmaxKernel : Fp4_I32Enum<"AmaxKernel", "kernel that computes the amax of a quantizer", [
    I32EnumAttrCase<"Separate", 0, "separate">,
    I32EnumAttrCase<"Same", 1, "same">]>;

def Fp4_PdlMode : Fp4_I32Enum<"PdlMode", "part of a launch beside those around it", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Waits", 1, "waits">,
    I32EnumAttrCase<"Both", 2, "both">]>;

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
    it, and lowerings read it. A program may write a plan itself: the pass fills its open fields,
    and a plan that does not fit the operation or the target is an error there.

    | family | kernel | fields |
    |--------|--------|--------|
    | tile_gemm | output tiles on the tensor core | route, tile, cluster, fallback, reduction, k_slices, pair, store, epilogue_warps, mma_warps, schedule, roles, stages, accumulators, ctas_per_sm, pdl, max_rows, depth_unit, wave_cost |
    | tile_transform | quantizer whose transform runs on the tensor core | tile, strip, schedule, roles, stages, accumulators, ctas_per_sm |
    | tile_quantize | a CTA quantizes a tile along rows, columns or both | threads, ctas_per_sm, order |
    | stream_blocks | threads quantize or decode blocks of rows | threads, blocks_per_thread, ctas_per_sm, cache_hints, order, amax |
    | stream_items | threads take work items from a list | threads, items_per_thread |
    | reduce_grid | all threads reduce to one number | threads, items_per_thread, grid |
    | reduce_rows | a CTA reduces each row | threads |
    | gemv | a warp multiplies a few rows (small M) with rows of a matrix | route, threads, ctas_per_sm |

    | field | meaning |
    |-------|---------|
    | route | the way of the GEMM to the tensor core, a [route](fp4-attributes.md#fp4route) without its prefix: `route = <core = wgmma, b = pre>`. The pass `fp4-plan-kernels` fills the axes that are left out |
    | tile | tile_gemm: rows, columns and depth of an output tile, in elements, or with routes whose tiles are transposed of the transposed result. tile_transform: rows and columns of a tile of the input |
    | cluster | CTAs along the rows and the columns that load operands together; without it, one |
    | fallback | CTAs along both of the clusters that run where the hardware has no room for `cluster`, which is a multiple of it; only with pairs, on targets with preferred clusters. Without it, all clusters have the size `cluster` |
    | reduction | cluster: the CTAs of a cluster, or its pairs, have the split-K parts of a tile and reduce them in their shared memory; `cluster` then has as many CTAs along the rows as there are parts, or twice as many with `pair`. workspace, and without it: CTAs leave partial sums in global memory, and the last one of a tile adds them. On targets with tcgen05; on sm_90a, `cluster` alone says so |
    | k_slices | k slices of a CTA, each with sums of its own and a k tile in a stage; without it, one |
    | pair | two CTAs along the rows work on a tile as one tensor core |
    | store | tma: results leave through tiles in shared memory, which TMA stores. direct: threads write them from their registers. The pass `fp4-plan-kernels` decides where it is left out; in a complete plan without it, direct |
    | epilogue_warps | 4 or 8 warps that read accumulators in tensor memory, 8 in two halves of the columns; without it, 4. In a complete plan the roles have as many |
    | mma_warps | 1: one warp multiplies and copies scales to tensor memory. 2: the first multiplies, and the second copies scales before it. The pass `fp4-plan-kernels` decides where it and the roles are left out. In a complete plan the roles have as many. Only for block-scaled GEMMs on targets with tcgen05 |
    | strip | tiles along the rows that a CTA takes one after the other |
    | schedule | sharing of tiles among CTAs: `#pipe.static_persistent<along_m>`, or in tile_gemm on tcgen05 also `#pipe.cluster_launch<along_m>` |
    | roles | assignment of warps to engines, a `#pipe.role_plan` |
    | stages | most stages of a ring in shared memory; without it, as many as fit, up to 8 |
    | accumulators | most accumulators in tensor memory; without it, as many as fit, up to 4 |
    | threads | threads of a CTA |
    | blocks_per_thread | scale blocks of a thread |
    | items_per_thread | work items of a thread |
    | ctas_per_sm | CTAs per SM; without it, as many as fit |
    | pdl | PDL. both: the kernel begins while the kernel before it on the stream ends, and lets the next one do so too. waits: it begins in that way, and the next one when it has ended. A conversion before the GEMM lets it begin early either way. none, and in a complete plan without it: neither |
    | max_rows | rows of lhs up to which a plan of `fp4.row_plans` or `fp4.size_plans` holds |
    | depth_unit | elements of which K is a multiple where a plan of `fp4.size_plans` holds |
    | wave_cost | predicted cost of the plan, in units that all plans of the matmul share: once, for each wave of tiles, and for each k tile of a wave |
    | grid | CTAs that are launched for each SM at most |
    | cache_hints | accesses tell the caches that each line is used once |
    | order | descending: CTAs take the matrix from its end, which the L2 cache still has where the kernel before read it last. ascending, and without it: from its beginning |
    | amax | same: the kernel computes the amax of its input too, in CTAs that wait for each other, where they are at most 7/8 of those that the device holds at once; where they are more, two kernels run. separate, and without it: two kernels |

    Constraints: (C1) a plan has fields of its family only, each once; (C2) numbers are positive,
    words are those of the table, and `tile` has 3 of them in tile_gemm and 2 in tile_transform,
    and `cluster` and `fallback` have 2, and `wave_cost` has 3; (C3) the attribute is on an
    operation of the fp4 dialect or a linalg.generic; (C461) `fp4.row_plans` is an array of plans of
    family tile_gemm with ascending `max_rows`, on a `fp4.matmul`, and `fp4.plan` has
    no `max_rows`; (C495) `fp4.size_plans` is an array of plans of family tile_gemm on a
    `fp4.matmul`, and they and `fp4.plan` have `wave_cost`; (C506) no other plan has
    `depth_unit`.

    The attribute `fp4.row_plans` of a matmul with dynamic rows is a list of small-M plans: host
    code launches the kernel of the first whose `max_rows` are no fewer than the rows of lhs, else
    that of `fp4.plan`. All kernels give the same bits.

    The attribute `fp4.size_plans` of a matmul with dynamic N or K lists plans beside `fp4.plan`.
    Host code counts the waves of each that holds for the sizes, the tiles of the result by the
    tiles that run at a time, and launches the kernel of the least
    `once + waves * (wave + k tiles * k_tile)`; of equals, that of `fp4.plan`, and then the first.

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

#endif // FP4_DIALECT_FP4_IR_FP4PLAN_TD
