//===- HostCode.cpp - Host functions as machine code ----------------------===//
//
// Host code is straight-line calls into the runtime. Such code is not optimized, because the time
// until it runs matters more than its speed.
//
//===----------------------------------------------------------------------===//

#include "HostCode.h"

#include "RuntimeTable.h"

#include "fp4/Runtime/Session.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace {

tl::unexpected<fp4::Error> internal(std::string what, llvm::Error error) {
  return fp4::makeError(fp4::ErrorKind::Internal, what + ": " + llvm::toString(std::move(error)));
}

void initializeHostTarget() {
  static const bool once = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
}

fp4::Expected<std::unique_ptr<TargetMachine>> createTargetMachine() {
  initializeHostTarget();
  Triple triple(sys::getProcessTriple());
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  TargetMachine *machine =
      target ? target->createTargetMachine(triple, /*CPU=*/"", /*Features=*/"", TargetOptions(),
                                           Reloc::PIC_, std::nullopt, CodeGenOptLevel::None)
             : nullptr;
  if (!machine)
    return fp4::makeError(fp4::ErrorKind::Internal,
                          "LLVM has no code generator for this machine: " + message);
  return std::unique_ptr<TargetMachine>(machine);
}

fp4::Expected<std::unique_ptr<Module>> translate(mlir::ModuleOp module, LLVMContext &context,
                                                 const DataLayout &layout, const Triple &triple) {
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(module, context, "fp4_host");
  if (!result)
    return fp4::makeError(fp4::ErrorKind::Internal, "host code does not translate to LLVM IR");
  result->setDataLayout(layout);
  result->setTargetTriple(triple);
  return result;
}

/// The functions of fp4-c/Runtime.h.
orc::SymbolMap runtimeSymbols(orc::MangleAndInterner &mangle) {
  orc::SymbolMap symbols;
  for (auto [name, address] : fp4::rt::abiSymbols())
    symbols[mangle(name)] = {orc::ExecutorAddr::fromPtr(address), JITSymbolFlags::Exported};
  return symbols;
}

class OrcProgram : public fp4::JitProgram {
public:
  explicit OrcProgram(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}

  fp4::Expected<void *> lookup(const std::string &symbol) override {
    llvm::Expected<orc::ExecutorAddr> address = jit->lookup(symbol);
    if (!address)
      return internal("host code has no function '" + symbol + "'", address.takeError());
    return address->toPtr<void *>();
  }

private:
  std::unique_ptr<orc::LLJIT> jit;
};

} // namespace

fp4::Expected<std::unique_ptr<fp4::JitProgram>> fp4::jitHostCode(mlir::ModuleOp module) {
  initializeHostTarget();
  llvm::Expected<orc::JITTargetMachineBuilder> host = orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return internal("this machine is unknown to LLVM", host.takeError());
  host->setCodeGenOptLevel(CodeGenOptLevel::None);
  llvm::Expected<std::unique_ptr<orc::LLJIT>> jit =
      orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*host)).create();
  if (!jit)
    return internal("LLVM's JIT does not start", jit.takeError());
  auto context = std::make_unique<LLVMContext>();
  FP4_ASSIGN(auto translated,
             translate(module, *context, (*jit)->getDataLayout(), (*jit)->getTargetTriple()));
  orc::MangleAndInterner mangle((*jit)->getExecutionSession(), (*jit)->getDataLayout());
  if (llvm::Error error =
          (*jit)->getMainJITDylib().define(orc::absoluteSymbols(runtimeSymbols(mangle))))
    return internal("the runtime's functions cannot be defined", std::move(error));
  if (llvm::Error error =
          (*jit)->addIRModule(orc::ThreadSafeModule(std::move(translated), std::move(context))))
    return internal("host code cannot be compiled", std::move(error));
  return std::make_unique<OrcProgram>(std::move(*jit));
}

fp4::Expected<SmallVector<char, 0>> fp4::compileHostObject(mlir::ModuleOp module) {
  FP4_ASSIGN(auto machine, createTargetMachine());
  LLVMContext context;
  FP4_ASSIGN(auto translated,
             translate(module, context, machine->createDataLayout(), machine->getTargetTriple()));
  translated->setPICLevel(PICLevel::BigPIC);
  bindThroughTable(*translated);
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return makeError(ErrorKind::Internal, "LLVM cannot write object files for this machine");
  passes.run(*translated);
  return object;
}
