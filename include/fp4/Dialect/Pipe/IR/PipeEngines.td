//===- PipeEngines.td - Parts of the hardware that execute operations -----===//
//
// Pipe.h declares the enumerations only. An enumerator rebuilds what includes Engines.h.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEENGINES_TD
#define FP4_DIALECT_PIPE_IR_PIPEENGINES_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"

def Pipe_Engine : Pipe_Enum<"Engine", "part of the hardware that executes an operation", [
  I32EnumAttrCase<"Tma", 0, "tma">,
  I32EnumAttrCase<"Tensor", 1, "tensor">,
  I32EnumAttrCase<"ScaleCopy", 2, "scale_copy">,
  I32EnumAttrCase<"Threads", 3, "threads">,
  I32EnumAttrCase<"BulkStore", 4, "bulk_store">,
  I32EnumAttrCase<"WorkQueue", 5, "work_queue">]>;

#endif // FP4_DIALECT_PIPE_IR_PIPEENGINES_TD
