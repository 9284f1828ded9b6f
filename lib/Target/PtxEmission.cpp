//===- PtxEmission.cpp - A gpu.module becomes PTX text --------------------===//
#include "fp4/Target/PtxEmission.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace {

constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

void initializeBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

/// A target as the header of PTX and LLVM's NVPTX backend name it.
struct NamedTarget {
  std::string chip, features; ///< "sm_100a", "+ptx88"

  /// "8.8".
  std::string version() const {
    const llvm::StringRef digits = llvm::StringRef(features).substr(4);
    return (digits.drop_back() + "." + digits.take_back()).str();
  }
};

/// A target that LLVM 22's NVPTX does not know, and another one, all of whose instructions that
/// LLVM chooses the target has. A later LLVM needs no row for it.
struct UnknownTarget {
  llvm::StringLiteral name, like;
};
constexpr UnknownTarget kUnknownTargets[] = {{"sm_107a", "sm_103a"}}; // of the family sm_100f

/// The target whose code LLVM makes for `asked`.
NamedTarget targetOfLlvm(const NamedTarget &asked) {
  std::string chip = fp4::chipOfLlvm(asked.chip);
  if (chip == asked.chip)
    return asked;
  return {chip, std::string(fp4::hw::lookupTarget(chip)->ptxFeature)};
}

/// Writes the target that was asked for in the header of PTX for another one. The instructions
/// stay.
void renameTarget(std::string &ptx, const NamedTarget &from, const NamedTarget &to) {
  const auto replace = [&](const std::string &directive, const std::string &old,
                           const std::string &with) {
    const size_t at = ptx.find(directive + old);
    assert(at != std::string::npos && "NVPTX writes both directives");
    ptx.replace(at + directive.size(), old.size(), with);
  };
  replace(".version ", from.version(), to.version());
  replace(".target ", from.chip, to.chip);
}

FailureOr<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(gpu::GPUModuleOp module,
                                                                    const NamedTarget &options) {
  initializeBackend();
  llvm::Triple triple(kTriple);
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return fp4::withNote(module.emitError()
                             << "LLVM was built without the NVPTX backend: " << message,
                         "build LLVM with LLVM_TARGETS_TO_BUILD that has NVPTX");
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, options.chip, options.features, llvm::TargetOptions(),
                                  std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return fp4::withNote(module.emitError() << "LLVM's NVPTX backend does not know the chip '"
                                            << options.chip << "'",
                         "use LLVM 22, whose NVPTX backend has the targets of fp4");
  return machine;
}

/// Marks fp4's inline PTX, which waits for whole warps (.sync.aligned), so that no pass makes it
/// conditional or copies it into branches; MLIR's inline assembly has no way to say so.
void markInlineAsmConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm())
          call->setConvergent();
}

/// Returns true when a function rounds numbers to f16; functions are inlined later.
bool roundsToHalf(llvm::Module &module) {
  auto rounds = [](llvm::Instruction &instruction) {
    return llvm::isa<llvm::FPTruncInst>(instruction) &&
           instruction.getType()->getScalarType()->isHalfTy();
  };
  return llvm::any_of(module, [&](llvm::Function &function) {
    return llvm::any_of(llvm::instructions(function), rounds);
  });
}

/// Writes extensions of bf16 as shifts in modules that round to f16. LLVM 22 takes any
/// bf16 for a number of f16, because its significand is shorter, and narrows an f32 operation
/// between the extension and the rounding to one of f16, which has fewer exponents.
void keepExponentsOfBF16(llvm::Module &module) {
  if (!roundsToHalf(module))
    return;
  llvm::SmallVector<llvm::FPExtInst *> extensions;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *extension = llvm::dyn_cast<llvm::FPExtInst>(&instruction);
          extension && extension->getSrcTy()->getScalarType()->isBFloatTy())
        extensions.push_back(extension);
  for (llvm::FPExtInst *extension : extensions) {
    llvm::IRBuilder<> b(extension);
    llvm::Type *source = extension->getSrcTy();
    llvm::Type *word = source->getWithNewType(b.getInt32Ty());
    llvm::Value *bits =
        b.CreateBitCast(extension->getOperand(0), source->getWithNewType(b.getInt16Ty()));
    bits = b.CreateShl(b.CreateZExt(bits, word), 16);
    llvm::Value *wide = b.CreateBitCast(bits, source->getWithNewType(b.getFloatTy()));
    if (wide->getType() != extension->getDestTy())
      wide = b.CreateFPExt(wide, extension->getDestTy());
    extension->replaceAllUsesWith(wide);
    extension->eraseFromParent();
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, int level) {
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // MLIR decides what is unrolled: a pipelined loop gains nothing from copies of its body, and the
  // number of tcgen05 instructions stays that of the pipe form.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::OptimizationLevel chosen = levels[std::clamp(level, 0, 3)];
  llvm::ModulePassManager passes = chosen == llvm::OptimizationLevel::O0
                                       ? builder.buildO0DefaultPipeline(chosen)
                                       : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

/// Turns LLVM's own errors into diagnostics of `module`; without a handler LLVM would exit the
/// process.
void reportThroughModule(llvm::LLVMContext &context, gpu::GPUModuleOp module, bool &failed) {
  struct Handler : llvm::DiagnosticHandler {
    Handler(gpu::GPUModuleOp module, bool &failed) : module(module), failed(failed) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
      if (info.getSeverity() != llvm::DS_Error)
        return true;
      std::string text;
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      fp4::withNote(module.emitError() << "LLVM reports: " << text,
                    "please report the program: fp4 should not make code that LLVM refuses");
      return failed = true;
    }
    gpu::GPUModuleOp module;
    bool &failed;
  };
  context.setDiagnosticHandler(std::make_unique<Handler>(module, failed));
}

FailureOr<std::string> generateCode(gpu::GPUModuleOp op, llvm::Module &module,
                                    llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return fp4::withNote(op.emitError("LLVM's NVPTX backend cannot write assembly"),
                         "build LLVM with LLVM_TARGETS_TO_BUILD that has NVPTX");
  passes.run(module);
  return text.str().str();
}

} // namespace

std::string fp4::chipOfLlvm(llvm::StringRef target) {
  for (const UnknownTarget &row : kUnknownTargets)
    if (row.name == target)
      return row.like.str();
  return target.str();
}

FailureOr<std::string> fp4::emitPtx(gpu::GPUModuleOp module, const PtxOptions &options) {
  const NamedTarget asked = {options.chip, options.features}, ofLlvm = targetOfLlvm(asked);
  auto machine = createTargetMachine(module, ofLlvm);
  if (failed(machine))
    return failure();
  bool llvmFailed = false;
  llvm::LLVMContext context;
  reportThroughModule(context, module, llvmFailed);
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, module.getName());
  if (!llvmModule)
    return module.emitError("cannot be translated to LLVM IR").attachNote()
           << "run convert-pipe-to-nvvm first: only the llvm and nvvm dialects may remain";
  llvmModule->setTargetTriple(llvm::Triple(kTriple));
  llvmModule->setDataLayout((*machine)->createDataLayout());
  markInlineAsmConvergent(*llvmModule);
  keepExponentsOfBF16(*llvmModule);
  optimize(*llvmModule, **machine, options.optLevel);
  FailureOr<std::string> ptx = generateCode(module, *llvmModule, **machine);
  if (succeeded(ptx) && ofLlvm.chip != asked.chip)
    renameTarget(*ptx, ofLlvm, asked);
  return llvmFailed ? FailureOr<std::string>(failure()) : ptx;
}
