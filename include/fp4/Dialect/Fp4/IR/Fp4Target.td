//===- Fp4Target.td - The target of a module --------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4TARGET_TD
#define FP4_DIALECT_FP4_IR_FP4TARGET_TD

include "fp4/Dialect/Fp4/IR/Fp4Dialect.td"

def Fp4_TargetAttr : AttrDef<Fp4_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "the GPU that a module is compiled for";
  let description = [{
    The attribute `fp4.target` of a module, which `fp4-set-target` sets once. Every pass that
    depends on the target reads it there. `name` is a row of the target table
    (`lib/ISA/Targets.cpp`). Plans are chosen for `device`, a product of the target
    (`lib/ISA/GpuModel.cpp`), or without it for all of them. `sms`, where it is not 0, replaces the number that grids of tensor core kernels fill,
    for example in a partition of a GPU.

    Example: `#fp4.target<sm_100a>`, `#fp4.target<sm_90a, device = h200, sms = 66>`.
  }];
  let parameters = (ins StringRefParameter<"chip as ptxas spells it">:$name,
                        DefaultValuedParameter<"int64_t", "0">:$sms,
                        StringRefParameter<"product of the target", "\"\"">:$device);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // FP4_DIALECT_FP4_IR_FP4TARGET_TD
