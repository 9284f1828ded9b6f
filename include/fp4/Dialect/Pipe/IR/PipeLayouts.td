//===- PipeLayouts.td - Placements of the bytes of a tile -----------------===//
//
// Pipe.h declares the enumerations only. An enumerator rebuilds what includes Layouts.h.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPELAYOUTS_TD
#define FP4_DIALECT_PIPE_IR_PIPELAYOUTS_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"

def Pipe_Layout : Pipe_Enum<"Layout", "placement of a tile's bytes", [
  I32EnumAttrCase<"Linear", 0, "linear">,
  I32EnumAttrCase<"Swizzle32B", 1, "swizzle_32B">,
  I32EnumAttrCase<"Swizzle64B", 2, "swizzle_64B">,
  I32EnumAttrCase<"Swizzle128B", 3, "swizzle_128B">,
  I32EnumAttrCase<"Tiled128x4", 4, "tiled_128x4">,
  I32EnumAttrCase<"Swizzle128BPadded", 5, "swizzle_128B_b4x16_p64">,
  I32EnumAttrCase<"Swizzle128BPadded6", 6, "swizzle_128B_b6x16_p32">,
  I32EnumAttrCase<"Halves128x4", 7, "halves_128x4">,
  I32EnumAttrCase<"Rows1Mod4", 8, "rows_1_mod_4">,
  I32EnumAttrCase<"Rows2Mod4", 9, "rows_2_mod_4">,
  I32EnumAttrCase<"Rows3Mod4", 10, "rows_3_mod_4">]>;

#endif // FP4_DIALECT_PIPE_IR_PIPELAYOUTS_TD
