//===- PipeFragments.td - Threads that have elements in their registers ---===//
//
// Pipe.h declares the enumerations only. An enumerator rebuilds what includes Fragments.h.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEFRAGMENTS_TD
#define FP4_DIALECT_PIPE_IR_PIPEFRAGMENTS_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"

def Pipe_FragmentKind : Pipe_Enum<"FragmentKind", "thread that has an element in its registers", [
  I32EnumAttrCase<"Wgmma", 0, "wgmma">,
  I32EnumAttrCase<"MmaSync", 1, "mma_sync">,
  I32EnumAttrCase<"Lanes", 2, "lanes">,
  I32EnumAttrCase<"Columns", 3, "columns">]>;

#endif // FP4_DIALECT_PIPE_IR_PIPEFRAGMENTS_TD
