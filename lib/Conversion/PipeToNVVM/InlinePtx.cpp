//===- InlinePtx.cpp - The PTX that no NVVM op can express ----------------===//
//
// tcgen05.ld is asynchronous: its registers are defined only after tcgen05.wait::ld. LLVM knows the
// load as an ordinary call with a result and the wait as another call, with no dependence between
// the result and the wait; its code generator is free to read the registers in between, and does
// (LLVM 22). Passing every register through the wait as a read-write operand makes the dependence
// visible. The emission marks inline assembly convergent, as .sync.aligned needs.
//
//===----------------------------------------------------------------------===//
#include "InlinePtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

SmallVector<Value> fp4::waitForLoaded(OpBuilder &b, Location loc, ValueRange registers) {
  // "=r,=r,..,0,1,..": output i is tied to input i.
  std::string outputs, inputs;
  for (size_t i = 0; i < registers.size(); ++i) {
    outputs += i ? ",=r" : "=r";
    inputs += "," + std::to_string(i);
  }
  SmallVector<Type> types(registers.getTypes());
  Type result =
      types.size() == 1 ? types.front() : LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto wait = LLVM::InlineAsmOp::create(
      b, loc, result, registers, "tcgen05.wait::ld.sync.aligned;", outputs + inputs,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr());
  if (types.size() == 1)
    return {wait.getRes()};
  SmallVector<Value> loaded;
  for (int64_t i = 0, count = types.size(); i < count; ++i)
    loaded.push_back(LLVM::ExtractValueOp::create(b, loc, wait.getRes(), i));
  return loaded;
}
