//===- PipeJoinOps.td - Parts of a tile that several blocks compute ----------===//
//
// Blocks that compute parts of one output tile leave them in a workspace in global memory and join. The
// last one to join reads all parts in a fixed order, so that results do not depend on which one it is.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_JoinOp : Pipe_EngineOp<"join", "Threads"> {
  let summary = "true for the last of several blocks to arrive";
  let description = [{
    Adds 1 to a number of `counters[index, *]`, which were 0 when the kernel began, and is true where
    this makes it `parts`. What the warps that arrived before have stored is visible then. Every warp
    of the role arrives at a number of its own, those of a warp in all blocks at the same: with what the
    other warps of its block did it has nothing to do. Nobody waits. PTX: atom.acq_rel.gpu.add.

    Constraints: (C171) counters are a buffer of i32 with 4 or 8 columns, one for each warp; `parts` is at least 2.

    Example:
    ```mlir
    %last = pipe.join %counters[%tile] of 4 : !pipe.global<24x4xi32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$counters, I32:$index, I64Attr:$parts);
  let results = (outs I1:$last);
  let assemblyFormat = [{
    $counters `[` $index `]` `of` $parts attr-dict `:` qualified(type($counters))
  }];
  let hasVerifier = 1;
}

def Pipe_FetchOp : Pipe_EngineOp<"fetch", "Threads"> {
  let summary = "this thread's row segment of a buffer that the kernel writes";
  let description = [{
    The thread of accumulator lane r gets `source[row + r, column + i]`, i = 0, 1, ... All of these
    elements exist. It sees what a `pipe.store` of this kernel left there only after a `pipe.join`
    that came after the store. PTX: ld.global.

    Constraints: (C172) the buffer has two dimensions of the vector's element type, and its columns
    are a multiple of the vector's elements.

    Example:
    ```mlir
    %v = pipe.fetch %parts[%row, %column] : !pipe.global<1024x512xf32> -> vector<32xf32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$source, I32:$row, I32:$column);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD
