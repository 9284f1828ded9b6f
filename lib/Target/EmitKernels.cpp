//===- EmitKernels.cpp - gpu.module to gpu.binary -------------------------===//
//
// 1. Every gpu.module becomes PTX, and every distinct PTX text a cubin if asked; modules are
//    independent, so they compile on MLIR's threads.
// 2. Only when all of them succeeded, each module is replaced by a gpu.binary of the same name
//    whose kernel table has the facts that a launch needs (see Passes.td).
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Target/Passes.h"

#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Target/PtxEmission.h"
#include "fp4/Target/Ptxas.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <optional>

namespace fp4 {
#define GEN_PASS_DEF_EMITKERNELS
#include "fp4/Target/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

/// The code of one gpu.module.
struct Compiled {
  std::string ptx;
  std::optional<fp4::Assembly> assembly;
};

LogicalResult report(Operation *op, const fp4::Error &error) {
  InFlightDiagnostic diagnostic = op->emitError() << error.message;
  if (!error.note.empty())
    diagnostic.attachNote() << error.note;
  return failure();
}

/// The version of PTX text: "8.8" of ".version 8.8".
StringRef ptxVersion(StringRef ptx) {
  return ptx.split(".version ").second.split('\n').first.trim();
}

/// Remarks on the registers that the assembler chose.
void explain(LLVM::LLVMFuncOp kernel, const fp4::KernelResources &used) {
  auto name = [](StringRef what) { return remark::RemarkOpts::name(what).category("fp4-ptxas"); };
  if (used.spillStores + used.spillLoads == 0) {
    remark::passed(kernel.getLoc(), name("registers"))
        << llvm::formatv("{0} has {1} registers and spills nothing", kernel.getName(), used.registers)
               .str();
    return;
  }
  remark::missed(kernel.getLoc(), name("spills"))
      << remark::reason("{0} has {1} registers, and spills {2} bytes, which it loads as {3}",
                        kernel.getName(), used.registers, used.spillStores, used.spillLoads);
}

/// The kernel's entry in the table of Passes.td.
DictionaryAttr metadataOf(LLVM::LLVMFuncOp kernel, const std::optional<fp4::Assembly> &assembly) {
  Builder builder(kernel.getContext());
  NamedAttrList list;
  StringRef block = NVVM::NVVMDialect::getReqntidAttrName();
  if (auto size = kernel->getAttrOfType<DenseI32ArrayAttr>(block))
    list.append("block_size", size);
  auto shared = kernel->getAttrOfType<IntegerAttr>("fp4.dynamic_shared_bytes");
  list.append("dynamic_shared_bytes", builder.getI64IntegerAttr(shared ? shared.getInt() : 0));
  if (auto clusters = kernel->getAttrOfType<DenseI32ArrayAttr>("fp4.clusters"))
    list.append("clusters", clusters);
  for (const fp4::KernelResources &used :
       assembly ? assembly->kernels : std::vector<fp4::KernelResources>()) {
    if (used.name != kernel.getName())
      continue;
    list.append("registers", builder.getI64IntegerAttr(used.registers));
    list.append("spill_bytes", builder.getI64IntegerAttr(used.spillStores + used.spillLoads));
    list.append("stack_bytes", builder.getI64IntegerAttr(used.stackBytes));
    list.append("shared_bytes", builder.getI64IntegerAttr(used.sharedBytes));
    list.append("barriers", builder.getI64IntegerAttr(used.barriers));
    explain(kernel, used);
  }
  return list.getDictionary(kernel.getContext());
}

gpu::KernelTableAttr kernelTable(gpu::GPUModuleOp module, const Compiled &compiled) {
  SmallVector<gpu::KernelMetadataAttr> kernels;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      kernels.push_back(gpu::KernelMetadataAttr::get(
          function.getNameAttr(), function.getFunctionType(), /*argAttrs=*/nullptr,
          metadataOf(function, compiled.assembly)));
  return gpu::KernelTableAttr::get(module.getContext(), kernels); // the table sorts kernels by name
}

/// Checks every operation before LLVM, which aborts the process over an instruction that the target
/// lacks. The lists of chips that MLIR 22 has at the tcgen05 operations are not complete; for these
/// the table of targets decides.
LogicalResult checkInstructions(gpu::GPUModuleOp module, const fp4::hw::TargetModel &model) {
  auto chip = NVVM::NVVMCheckSMVersion::getTargetSMVersionFromStr(fp4::chipOfLlvm(model.name));
  WalkResult walk = module.walk([&](NVVM::RequiresSMInterface op) {
    bool isTcgen05 = op->getName().stripDialect().starts_with("tcgen05.");
    bool hasThem = model.features.hasTcgen05; // law: the instructions of a kernel, of a GEMM or not
    if (isTcgen05 ? hasThem : op.getRequiredMinSMVersion().isCompatibleWith(chip))
      return WalkResult::advance();
    fp4::withNote(
        op->emitOpError() << "is not supported on " << std::string(model.name),
        "let the module have a target that has the instruction, such as #fp4.target<sm_100a>");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

struct EmitKernels : fp4::impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    EmitKernelsBase::getDependentDialects(registry);
    fp4::registerKernelEmissionTranslations(registry);
  }

  /// Checks the options and, for cubins, finds an assembler that knows the target.
  LogicalResult prepare() {
    if (emit != "ptx" && emit != "cubin")
      return fp4::withNote(getOperation().emitError()
                               << "fp4-emit-kernels: option emit must be ptx or cubin, but got '"
                               << emit << "'",
                           "leave the option out for ptx");
    FailureOr<fp4::hw::TargetModel> found = fp4::targetOf(getOperation());
    if (failed(found))
      return failure();
    model = *found;
    chip = model->name;
    features = model->ptxFeature;
    targetAttr = NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda",
                                           chip, features, /*targetFlags=*/nullptr,
                                           /*linkFiles=*/nullptr, /*verifyTarget=*/true);
    if (emit != "cubin")
      return success();
    fp4::Expected<fp4::Ptxas> program = fp4::Ptxas::find(ptxas);
    if (!program)
      return report(getOperation(), program.error());
    if (fp4::Status status = program->supports(chip, features); !status)
      return report(getOperation(), status.error());
    assembler = std::move(*program);
    return success();
  }

  LogicalResult emitText(gpu::GPUModuleOp module, Compiled &result) {
    if (failed(checkInstructions(module, *model)))
      return failure();
    FailureOr<std::string> ptx = fp4::emitPtx(module, {chip, features});
    if (failed(ptx) || failed(dump(module, ".ptx", *ptx)))
      return failure();
    result.ptx = std::move(*ptx);
    return success();
  }

  LogicalResult assemble(gpu::GPUModuleOp module, Compiled &result) {
    fp4::Expected<fp4::Assembly> assembly = assembler->assemble(result.ptx, chip);
    if (!assembly)
      return report(module, assembly.error());
    for (const std::string &warning : assembly->warnings)
      module.emitWarning() << "ptxas: " << warning;
    result.assembly = std::move(*assembly);
    return success();
  }

  /// Assembles every distinct text once: operands of one shape have equal kernels.
  LogicalResult assembleAll(ArrayRef<gpu::GPUModuleOp> modules,
                            MutableArrayRef<Compiled> compiled) {
    llvm::StringMap<size_t> firstOf;
    SmallVector<size_t> distinct;
    for (auto [i, result] : llvm::enumerate(compiled))
      if (firstOf.try_emplace(result.ptx, i).second)
        distinct.push_back(i);
    if (failed(failableParallelForEach(
            &getContext(), distinct, [&](size_t i) { return assemble(modules[i], compiled[i]); })))
      return failure();
    for (auto [module, result] : llvm::zip_equal(modules, compiled)) {
      result.assembly = compiled[firstOf[result.ptx]].assembly;
      if (failed(dump(module, ".cubin", result.assembly->cubin)))
        return failure();
    }
    return success();
  }

  LogicalResult dump(gpu::GPUModuleOp module, StringRef extension, StringRef text) {
    if (dumpDir.empty())
      return success();
    if (std::error_code ec = llvm::sys::fs::create_directories(dumpDir.getValue()))
      return fp4::withNote(module.emitError()
                               << "cannot create '" << dumpDir << "': " << ec.message(),
                           "name a folder that can be made in option dump");
    llvm::SmallString<128> path(dumpDir.getValue());
    llvm::sys::path::append(path, module.getName() + extension);
    fp4::Status written = fp4::writeFile(path.str().str(), std::string_view(text));
    return written ? success() : report(module, written.error());
  }

  void replace(gpu::GPUModuleOp module, const Compiled &compiled) {
    OpBuilder builder(module);
    gpu::KernelTableAttr kernels = kernelTable(module, compiled);
    DictionaryAttr properties = builder.getDictionaryAttr(
        {builder.getNamedAttr("ptx_version", builder.getStringAttr(ptxVersion(compiled.ptx))),
         builder.getNamedAttr("target", builder.getStringAttr(chip))});
    SmallVector<Attribute> objects = {
        gpu::ObjectAttr::get(targetAttr, gpu::CompilationTarget::Assembly,
                             builder.getStringAttr(compiled.ptx), properties, kernels)};
    if (compiled.assembly)
      objects.push_back(gpu::ObjectAttr::get(targetAttr, gpu::CompilationTarget::Binary,
                                             builder.getStringAttr(compiled.assembly->cubin),
                                             properties, kernels));
    gpu::BinaryOp::create(builder, module.getLoc(), module.getName(), /*offloadingHandler=*/nullptr,
                          builder.getArrayAttr(objects));
    numKernels += kernels.size();
    numPtxBytes += compiled.ptx.size();
    module.erase();
  }

  void runOnOperation() override {
    if (failed(prepare()))
      return signalPassFailure();
    auto modules = llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>());
    std::vector<Compiled> compiled(modules.size());
    if (failed(failableParallelForEachN(
            &getContext(), 0, modules.size(),
            [&](size_t i) { return emitText(modules[i], compiled[i]); })) ||
        (assembler && failed(assembleAll(modules, compiled))))
      return signalPassFailure();
    for (auto [module, result] : llvm::zip_equal(modules, compiled))
      replace(module, result);
  }

  std::optional<fp4::hw::TargetModel> model;
  std::string chip, features;
  NVVM::NVVMTargetAttr targetAttr;
  std::optional<fp4::Ptxas> assembler;
};

} // namespace

void fp4::registerKernelEmissionTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
}
