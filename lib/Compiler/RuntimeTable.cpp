//===- RuntimeTable.cpp - An emitted library calls the runtime through a table ------------===//
//
// A library with undefined symbols loads only where its loader exports them to the whole process.
// Inside Python, or beside another copy of the runtime, nobody does. A table of the library's own
// needs no global symbol.
//
//===----------------------------------------------------------------------===//

#include "RuntimeTable.h"

#include "fp4-c/Runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

/// The members of fp4rt_api behind `size`, in order.
constexpr StringLiteral kFunctions[] = {
#define FP4RT_FUNCTION(name) "fp4rt_" #name,
#include "fp4/Runtime/AbiFunctions.def"
};
constexpr uint64_t kSlots = std::size(kFunctions) + 1;
static_assert(sizeof(fp4rt_api) == kSlots * 8, "AbiFunctions.def lists the members of fp4rt_api");

class TableBinder {
public:
  explicit TableBinder(Module &module)
      : module(module), builder(module.getContext()),
        slots(ArrayType::get(builder.getPtrTy(), kSlots)) {}

  void run() {
    createTable();
    for (auto [number, name] : enumerate(kFunctions))
      redirect(name, number + 1);
    for (Function &function : module)
      if (isEntry(function))
        refuseWhereUnbound(function);
    createBind();
  }

private:
  /// Creates the table. Slot 0 is the size and stays unused here.
  void createTable() {
    SmallVector<Constant *> initial = {ConstantPointerNull::get(builder.getPtrTy())};
    for (StringRef name : kFunctions)
      initial.push_back(weakFunction(name));
    table = new GlobalVariable(module, slots, /*isConstant=*/false, GlobalValue::InternalLinkage,
                               ConstantArray::get(slots, initial), "fp4_runtime");
  }

  /// The function that the process exports under this name, or null. Calls of it are redirected
  /// afterwards.
  Function *weakFunction(StringRef name) {
    Function *function = module.getFunction(name);
    if (!function)
      function = Function::Create(FunctionType::get(builder.getVoidTy(), /*isVarArg=*/false),
                                  GlobalValue::ExternalWeakLinkage, name, module);
    function->setLinkage(GlobalValue::ExternalWeakLinkage);
    return function;
  }

  Value *load(uint64_t slot) {
    return builder.CreateLoad(builder.getPtrTy(),
                              builder.CreateConstInBoundsGEP2_64(slots, table, 0, slot));
  }

  void redirect(StringRef name, uint64_t slot) {
    for (User *user : make_early_inc_range(module.getFunction(name)->users()))
      if (auto *call = dyn_cast<CallInst>(user)) {
        builder.SetInsertPoint(call);
        call->setCalledOperand(load(slot));
      }
  }

  static bool isEntry(const Function &function) {
    StringRef name = function.getName();
    return !function.isDeclaration() &&
           (name.starts_with("fp4_entry_") || name.starts_with("_mlir_ciface_"));
  }

  void refuseWhereUnbound(Function &entry) {
    BasicBlock &body = entry.getEntryBlock();
    auto *check = BasicBlock::Create(module.getContext(), "check", &entry, &body);
    auto *unbound = BasicBlock::Create(module.getContext(), "unbound", &entry);
    builder.SetInsertPoint(check);
    builder.CreateCondBr(builder.CreateIsNull(load(1)), unbound, &body);
    builder.SetInsertPoint(unbound);
    if (entry.getReturnType()->isVoidTy())
      builder.CreateRetVoid();
    else
      builder.CreateRet(builder.getInt32(1));
  }

  void createBind() {
    auto *type = FunctionType::get(builder.getInt32Ty(), {builder.getPtrTy()}, false);
    auto *bind = Function::Create(type, GlobalValue::ExternalLinkage, "fp4_bind", module);
    auto block = [&](StringRef name) {
      return BasicBlock::Create(module.getContext(), name, bind);
    };
    BasicBlock *check = block("check"), *copy = block("copy"), *old = block("old");
    Value *api = bind->getArg(0);
    builder.SetInsertPoint(check);
    Value *size = builder.CreateLoad(builder.getInt64Ty(), api);
    builder.CreateCondBr(builder.CreateICmpULT(size, builder.getInt64(kSlots * 8)), old, copy);
    builder.SetInsertPoint(copy);
    builder.CreateMemCpyInline(table, Align(8), api, Align(8), builder.getInt64(kSlots * 8));
    builder.CreateRet(builder.getInt32(0));
    builder.SetInsertPoint(old);
    builder.CreateRet(builder.getInt32(1));
  }

  Module &module;
  IRBuilder<> builder;
  ArrayType *slots;
  GlobalVariable *table = nullptr;
};

} // namespace

void fp4::bindThroughTable(Module &module) { TableBinder(module).run(); }
