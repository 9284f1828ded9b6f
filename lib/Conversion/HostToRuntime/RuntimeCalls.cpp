//===- RuntimeCalls.cpp - Building calls of the runtime's C ABI -----------===//

#include "RuntimeCalls.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace {

struct Signature {
  StringRef name;
  SmallVector<Type> parameters;
  Type result; // null: void
};

StringRef launchName(fp4::RuntimeFunction function) {
  return function == fp4::RuntimeFunction::Launch            ? "fp4rt_launch"
         : function == fp4::RuntimeFunction::LaunchDependent ? "fp4rt_launch_dependent"
                                                             : "fp4rt_launch_cooperative";
}

/// The parameters of a launch: module, kernel, grid, CTA, shared, parameters, count; for clusters
/// also dependent, and their sizes along x and y.
Signature signatureOfLaunch(MLIRContext *context, fp4::RuntimeFunction function) {
  Type ptr = LLVM::LLVMPointerType::get(context);
  Type i32 = IntegerType::get(context, 32);
  if (function != fp4::RuntimeFunction::LaunchClusters)
    return {launchName(function), {ptr, ptr, i32, i32, i32, i32, i32, i32, i32, ptr, i32}, {}};
  return {"fp4rt_launch_clusters",
          {ptr, ptr, i32, i32, i32, i32, i32, i32, i32, ptr, i32, i32, i32, i32, i32, i32},
          {}};
}

Signature signatureOf(MLIRContext *context, fp4::RuntimeFunction function) {
  Type ptr = LLVM::LLVMPointerType::get(context);
  Type i8 = IntegerType::get(context, 8);
  Type i32 = IntegerType::get(context, 32);
  Type i64 = IntegerType::get(context, 64);
  switch (function) {
  case fp4::RuntimeFunction::Alloc:
  case fp4::RuntimeFunction::Counters:
    return {function == fp4::RuntimeFunction::Alloc ? "fp4rt_alloc" : "fp4rt_counters", {i64}, ptr};
  case fp4::RuntimeFunction::AllocResult: // number, bytes
    return {"fp4rt_alloc_result", {i32, i64}, ptr};
  case fp4::RuntimeFunction::Constant: // bytes, size
    return {"fp4rt_constant", {ptr, i64}, ptr};
  case fp4::RuntimeFunction::Free:
    return {"fp4rt_free", {ptr}, {}};
  case fp4::RuntimeFunction::Memset:
    return {"fp4rt_memset", {ptr, i8, i64}, {}};
  case fp4::RuntimeFunction::Memcpy2D: // dst, pitch, src, pitch, width, height
    return {"fp4rt_memcpy_2d", {ptr, i64, ptr, i64, i64, i64}, {}};
  case fp4::RuntimeFunction::TensorMap: // out, base, type, swizzle, rank, dims, strides, box
    return {"fp4rt_tensor_map", {ptr, ptr, i32, i32, i32, ptr, ptr, ptr}, {}};
  case fp4::RuntimeFunction::SmCount:
    return {"fp4rt_multiprocessor_count", {}, i32};
  case fp4::RuntimeFunction::ExpectSize: // what, found, min, max, note
    return {"fp4rt_expect_size", {ptr, i64, i64, i64, ptr}, {}};
  case fp4::RuntimeFunction::Launch:
  case fp4::RuntimeFunction::LaunchDependent:
  case fp4::RuntimeFunction::LaunchCooperative:
  case fp4::RuntimeFunction::LaunchClusters:
    return signatureOfLaunch(context, function);
  case fp4::RuntimeFunction::GroupReport: // what
    return {"fp4rt_group_report", {ptr}, ptr};
  case fp4::RuntimeFunction::ResultPitch: // number, bytes of a row
    return {"fp4rt_result_pitch", {i32, i64}, i64};
  case fp4::RuntimeFunction::Call: // entry, buffers, types, arguments, results
    return {"fp4rt_call", {ptr, ptr, ptr, i32, i32}, {}};
  }
  llvm_unreachable("every function has a signature");
}

} // namespace

Value fp4::constantInt(OpBuilder &builder, Location loc, unsigned bits, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getIntegerType(bits), value);
}

Value fp4::callRuntime(OpBuilder &builder, Location loc, ModuleOp module, RuntimeFunction function,
                       ValueRange operands) {
  MLIRContext *context = builder.getContext();
  Signature signature = signatureOf(context, function);
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(signature.name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    Type result = signature.result ? signature.result : LLVM::LLVMVoidType::get(context);
    callee = LLVM::LLVMFuncOp::create(builder, module.getLoc(), signature.name,
                                      LLVM::LLVMFunctionType::get(result, signature.parameters));
  }
  auto call = LLVM::CallOp::create(builder, loc, callee, operands);
  return signature.result ? call.getResult() : Value();
}

Value fp4::stringAddress(OpBuilder &builder, Location loc, ModuleOp module, StringRef purpose,
                         StringRef text) {
  std::string symbol =
      (purpose + "_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true)).str();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(symbol);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string bytes = text.str();
    bytes.push_back('\0');
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
    global = LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                                    LLVM::Linkage::Private, symbol, builder.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

LLVM::LLVMStructType fp4::runtimeModuleType(MLIRContext *context) {
  Type ptr = LLVM::LLVMPointerType::get(context);
  Type i64 = IntegerType::get(context, 64);
  return LLVM::LLVMStructType::getLiteral(context, {ptr, ptr, ptr, i64, ptr, i64});
}

std::string fp4::runtimeModuleSymbol(StringRef binaryName) {
  return ("fp4_module_" + binaryName).str();
}
