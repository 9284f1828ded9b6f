//===- PipeLaneOps.td - Sums of TMEM lanes, promoted to fp32 --------------===//
//
// Sums that are in tensor memory for one scale block of k, and in the registers of threads
// for all of them. Thread r of a warpgroup has TMEM lane r, a row of the tile. Warpgroup w of the
// role has the w-th part of the columns.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPELANEOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPELANEOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

def Pipe_LaneColumnOp : Pipe_EngineOp<"lane_column", "Threads", [Pure]> {
  let summary = "the first column of a tile that this thread's warpgroup has";
  let description = [{
    Warpgroup w of the role has the columns of the tile from w times those of the fragment on. An
    accumulator in tensor memory is divided by columns into equal parts, one for each warpgroup.

    Constraints: (C374) a fragment has kind `lanes`, and a tile of tensor memory is an accumulator
    whose columns the warpgroups divide.

    Example:
    ```mlir
    %c = pipe.lane_column %acc : !pipe.fragment<128x64xf32, lanes>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_FragmentType, Pipe_TmemType]>:$accumulator);
  let results = (outs I32:$result);
  let assemblyFormat = "$accumulator attr-dict `:` qualified(type($accumulator))";
  let hasVerifier = 1;
}

def Pipe_LaneScaleOp : Pipe_EngineOp<"lane_scale", "Threads", [Pure]> {
  let summary = "scale of one scale block of k, for this thread's sums";
  let description = [{
    The fp32 product `a[row + r, block] * b[c / 128, block]`, rounded once to nearest even, for
    thread r of a warpgroup and the first column c of the result that the warpgroup has:
    `column + w * columns`. A scale of `a` is that of one row, a scale of `b` that of 128 columns of
    the result, each for one scale block of 128 elements of k. Rows and columns that do not exist
    have the scale of the last ones; `rows` defaults to the static rows of `a`. PTX: ld.global.nc.

    Constraints: (C375) both buffers have two dimensions of f32 and as many columns, and the rows of
    `b` are static; `rows` is present when the rows of `a` are dynamic; `columns` divide 128.

    Example:
    ```mlir
    %s = pipe.lane_scale %sa[%m0], %sb[%n0 of 64] block %k rows %m
        : !pipe.global<?x56xf32>, !pipe.global<32x56xf32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$a, I32:$row, Pipe_GlobalType:$b, I32:$column,
                       I64Attr:$columns, I32:$block, Optional<I32>:$rows);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $a `[` $row `]` `,` $b `[` $column `of` $columns `]` `block` $block (`rows` $rows^)? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b))
  }];
  let hasVerifier = 1;
}

def Pipe_LaneTileScaleOp : Pipe_EngineOp<"lane_tile_scale", "Threads"> {
  let summary = "scale of one scale block of k, from tiles of scales, for this thread's sums";
  let description = [{
    The factors of `pipe.lane_scale`, from tiles in shared memory: a column of both tiles is a scale
    block of k, a row of `a` is one of the tile whose sums they scale, and a row of `b` is a scale
    block of 128 columns of the result. Each row of a `b` with several rows belongs to one warpgroup
    of the role. PTX: ld.shared.

    Constraints: (C376) both tiles are of f32 without a swizzle and have as many columns; A has 128
    rows; B has one row, or as many as the role has warpgroups.

    Example:
    ```mlir
    %s = pipe.lane_tile_scale %sa, %sb column %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$a, Pipe_SharedType:$b, I32:$column);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $a `,` $b `column` $column attr-dict `:` qualified(type($a)) `,` qualified(type($b))
  }];
  let hasVerifier = 1;
}

def Pipe_PromoteLanesOp : Pipe_EngineOp<"promote_lanes", "Threads"> {
  let summary = "sums in tensor memory times their scale, added to an accumulator in fp32";
  let description = [{
    `acc[r, n] = fma(sums[r, w * columns + n], scale, acc[r, n])` for the row r of each thread and
    the columns of the fragment, rounded once to nearest even; w is the warpgroup in its role. PTX:
    tcgen05.ld.sync.aligned.32x32b.xN, tcgen05.wait::ld, fma.rn.f32.

    Constraints: (C377) the accumulator is a fragment of kind `lanes`, and the sums have its columns
    for each warpgroup of the role.

    Example:
    ```mlir
    pipe.promote_lanes %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>
    ```
  }];
  let arguments = (ins Pipe_FragmentType:$accumulator, Pipe_TmemType:$sums, F32:$scale);
  let assemblyFormat = [{
    $accumulator `,` $sums `scaled` $scale attr-dict
    `:` qualified(type($accumulator)) `,` qualified(type($sums))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPELANEOPS_TD
