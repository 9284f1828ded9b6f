//===- PipeFragmentOps.td - MMAs with accumulators in registers -----------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeTileOps.td"

//===----------------------------------------------------------------------===//
// Conversions and rows of zeros
//===----------------------------------------------------------------------===//

def Pipe_ClearRowsOp : Pipe_EngineOp<"clear_rows", "Threads"> {
  let summary = "zeros in rows of a buffer that no tile writes";
  let description = [{
    `dest[r, c] = 0` for `begin <= r < end` and all columns c. The CTAs of the grid take the rows in
    turn, and the threads of the role pieces of a row. No other role waits for them. PTX:
    st.global.v4.

    Example:
    ```mlir
    pipe.clear_rows %y[%begin to %end] : !pipe.global<4096x512xbf16>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$dest, I32:$begin, I32:$end);
  let assemblyFormat = "$dest `[` $begin `to` $end `]` attr-dict `:` qualified(type($dest))";
  let hasVerifier = 1;
}

def Pipe_CheckGroupsOp : Pipe_EngineOp<"check_groups", "Threads"> {
  let summary = "reports rows of groups that decrease or are not there";
  let description = [{
    The rows of group g are those from `offsets[g]` to `offsets[g + 1]`, or with two numbers for
    each group those from `offsets[g][0]` to `offsets[g][1]`, numbers of 64 bits in two words. One
    thread of the grid compares them with `limit` and with the group before, and describes the first
    group that does not fit in `report`, which the host reads (fp4rt_group_report). No other role
    waits for the thread. PTX: ld.global, atom.cas, st.release.sys. One producer, groups whose
    offsets only the device knows.

    Example:
    ```mlir
    pipe.check_groups %o limit 300 to %report : !pipe.global<5x2xi32>, !pipe.global<8xi64>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$offsets, I64Attr:$limit, Pipe_GlobalType:$report);
  let assemblyFormat = [{
    $offsets `limit` $limit `to` $report attr-dict
    `:` qualified(type($offsets)) `,` qualified(type($report))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

#endif // FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD
