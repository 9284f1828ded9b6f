//===- PipeRasters.td - Orders of the tiles of a grid ---------------------===//
//
// The enumeration has a file, and a header, of its own: a new raster rebuilds the planner and the
// schedules (Schedules.h), and nothing else that knows the dialect. PipeSchedules.td says what each
// raster means.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPERASTERS_TD
#define FP4_DIALECT_PIPE_IR_PIPERASTERS_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"

def Pipe_Raster : Pipe_Enum<"Raster", "order of the tiles of a grid", [
  I32EnumAttrCase<"AlongM", 0, "along_m">,
  I32EnumAttrCase<"AlongN", 1, "along_n">,
  I32EnumAttrCase<"Panels", 2, "panels">]>;

#endif // FP4_DIALECT_PIPE_IR_PIPERASTERS_TD
