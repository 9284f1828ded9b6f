//===- PipeEnum.td - The form of pipe's enumerations ----------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEENUM_TD
#define FP4_DIALECT_PIPE_IR_PIPEENUM_TD

include "mlir/IR/EnumAttr.td"

class Pipe_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::fp4::pipe";
  let genSpecializedAttr = 0;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEENUM_TD
