//===- Compiler.cpp - From .mlir text to an executable program ------------===//

#include "fp4/Compiler/Compiler.h"

#include "HostCode.h"
#include "Listing.h"
#include "ManifestWriter.h"
#include "PlainGemms.h"

#include "fp4/Dialect/Fp4/IR/Fp4Upgrade.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Fp4/Transforms/Softmax.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/InitAll.h"
#include "fp4/Pipelines/Passes.h"
#include "fp4/Plans/Passes.h"
#include "fp4/Plans/PlanSpace.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Target/Ptxas.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_os_ostream.h"

#include <chrono>
#include <iostream>

using namespace mlir;

namespace {

DialectRegistry createRegistry() {
  DialectRegistry registry;
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  return registry;
}

} // namespace

class fp4::Compiler::Impl {
public:
  explicit Impl(CompilerOptions given)
      : options(std::move(given)), stream(options.diagnostics ? *options.diagnostics : std::cerr) {}

  /// Creates the context of a program that is text.
  void createContext() {
    ownContext.emplace(createRegistry());
    context = &*ownContext;
    handler.emplace(sourceManager, context, stream);
    context->printOpOnDiagnostic(false); // the line of the source is shown, that is enough
    if (options.remarks)
      enableRemarks();
  }

  /// Optimization remarks become diagnostics; nothing else streams them.
  void enableRemarks() {
    remark::RemarkCategories categories;
    categories.passed = categories.missed = "fp4-fuse|fp4-plan|fp4-ptxas";
    (void)remark::enableOptimizationRemarks(*context, /*streamer=*/nullptr,
                                            std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                            categories, /*printAsEmitRemarks=*/true);
  }

  Status load(std::string programName, llvm::function_ref<OwningOpRef<ModuleOp>()> make);
  Status requireProgram() const;
  Status checkPlans() const;
  void noteUnusedPlans();
  SmallVector<Operation *> planned() const;
  Status specialize(const std::map<std::string, int64_t> &sizes);
  Status keepFunction(StringRef kept);
  Status checkAssembler() const;
  Status chooseSplits();
  Status recordFunctions();
  Status compileTo(Phase phase);
  Status lowerHost();
  Expected<std::unique_ptr<JitProgram>> jit();
  Status writeLibrary(const std::string &path);

  /// Runs `work` and notes how long it took.
  template <typename Work> auto timed(std::string step, Work &&work) {
    auto start = std::chrono::steady_clock::now();
    llvm::scope_exit note([&] {
      std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
      times.push_back({std::move(step), elapsed.count()});
    });
    return work();
  }

  /// The one-line Status after diagnostics have been printed.
  Status notCompiled() const {
    return makeError(ErrorKind::Compile, "'" + name + "' was not compiled");
  }

  /// Runs passes. A pass that failed leaves no program behind, so the module goes.
  Status runPasses(llvm::function_ref<void(OpPassManager &)> addPasses) {
    PassManager manager(context);
    addPasses(manager);
    bool succeeded = mlir::succeeded(manager.run(*module));
    stream.flush();
    if (succeeded)
      return {};
    module = nullptr;
    return notCompiled();
  }

  CompilerOptions options;
  std::string name; ///< empty until a program was loaded
  std::optional<MLIRContext> ownContext;
  MLIRContext *context = nullptr;
  llvm::SourceMgr sourceManager;
  llvm::raw_os_ostream stream;
  std::optional<SourceMgrDiagnosticHandler> handler;
  OwningOpRef<ModuleOp> module;
  std::optional<Phase> reached;
  llvm::json::Array functions, kernels;
  ConstantData constants; ///< bytes that the functions' programs refer to
  std::vector<StepTime> times;
};

fp4::Status fp4::Compiler::Impl::load(std::string programName,
                                      llvm::function_ref<OwningOpRef<ModuleOp>()> make) {
  if (!name.empty())
    return makeError(ErrorKind::Usage, "a Compiler holds one program, but got a second",
                     "create a Compiler for each program");
  if (auto target = hw::requireTarget(options.target); !target)
    return tl::unexpected<Error>(target.error());
  name = std::move(programName);
  module = timed("parse", make);
  stream.flush();
  if (!module)
    return notCompiled();
  return checkPlans();
}

/// Checks plans of the options, which a pass would report without a place in the program.
fp4::Status fp4::Compiler::Impl::checkPlans() const {
  for (const std::string &text : options.plans) {
    std::string message, note;
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (!message.empty())
        return;
      message = diagnostic.str();
      for (Diagnostic &more : diagnostic.getNotes())
        note = more.str();
    });
    if (!parseAttribute(spellPlan(text), context))
      return makeError(
          ErrorKind::Usage,
          "a plan must be FAMILY, FIELD = VALUE, ..., but got '" + text + "': " + message,
          note.empty() ? "--emit=mlir --compile-to=planned shows those of a program" : note);
  }
  return {};
}

/// The plan of `op`, or that of the last case of `dispatch`; none before phase planned.
static std::optional<fp4::KernelPlan> lastPlanOf(Operation *op) {
  if (auto plan = op->getAttrOfType<fp4::PlanAttr>(fp4::Fp4Dialect::kPlanAttr))
    return plan.getPlan();
  auto product = dyn_cast<fp4::BlockScaledMatmulOp>(op);
  if (!product || !product.getDispatch())
    return std::nullopt;
  fp4::KernelPlan plan = product.getCases().back().getPlan();
  plan.guard = {};
  return plan;
}

/// Warns of a plan whose family no kernel has: a mistake that nothing else shows.
void fp4::Compiler::Impl::noteUnusedPlans() {
  llvm::DenseSet<KernelFamily> families;
  for (Operation *op : planned())
    if (std::optional<KernelPlan> plan = lastPlanOf(op))
      families.insert(plan->family);
  for (const std::string &text : options.plans) {
    Attribute attribute = parseAttribute(spellPlan(text), context);
    auto plan = dyn_cast<PlanAttr>(attribute);
    KernelFamily family = plan ? plan.getFamily() : cast<CaseAttr>(attribute).getPlan().family;
    if (!families.contains(family))
      stream << "warning: no kernel is of family " << stringifyKernelFamily(family)
             << ", so the plan '" << text << "' changes nothing\n";
  }
  stream.flush();
}

/// Requires a program for the steps after loading: one that was loaded, and that no step rejected.
fp4::Status fp4::Compiler::Impl::requireProgram() const {
  if (module)
    return {};
  if (name.empty())
    return makeError(ErrorKind::Usage, "a program must be loaded before it is compiled",
                     "load one, and check what that returns");
  return makeError(ErrorKind::Usage, "'" + name + "' was rejected and cannot be compiled further",
                   "create a Compiler for the corrected program");
}

fp4::Status fp4::Compiler::Impl::specialize(const std::map<std::string, int64_t> &sizes) {
  FP4_TRY(requireProgram());
  SpecializeDimsOptions dims;
  for (const auto &[dim, size] : sizes)
    dims.dims.push_back(dim + "=" + std::to_string(size));
  return timed("specialize", [&] {
    return runPasses([&](OpPassManager &manager) { manager.addPass(createSpecializeDims(dims)); });
  });
}

/// Erases the functions that nothing uses but functions that are erased.
fp4::Status fp4::Compiler::Impl::keepFunction(StringRef kept) {
  FP4_TRY(requireProgram());
  auto root = module->lookupSymbol<func::FuncOp>(kept);
  if (!root || root.isPrivate())
    return {};
  SetVector<Operation *> used;
  used.insert(root);
  for (Operation &op : *module->getBody())
    if (!isa<func::FuncOp>(op))
      used.insert(&op);
  for (size_t i = 0; i < used.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(used[i]))
      for (const SymbolTable::SymbolUse &use : *uses)
        if (Operation *symbol = module->lookupSymbol(use.getSymbolRef().getRootReference()))
          used.insert(symbol);
  for (auto function : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if (!used.contains(function))
      function.erase();
  return {};
}

fp4::Status fp4::Compiler::Impl::checkAssembler() const {
  FP4_ASSIGN(auto target, hw::requireTarget(options.target));
  FP4_ASSIGN(auto assembler, Ptxas::find(options.ptxas));
  return assembler.supports(target->name, target->ptxFeature);
}

/// Replaces policies of split-K by factors, which are a part of what the functions compute.
fp4::Status fp4::Compiler::Impl::chooseSplits() {
  bool isOpen = false;
  module->walk([&](BlockScaledMatmulOp op) { isOpen |= op.getSplitPolicy().has_value(); });
  if (!isOpen)
    return {};
  return runPasses([&](OpPassManager &manager) {
    manager.addPass(createCheckProgram());
    manager.addPass(createSetTarget({options.target, options.sms, options.device}));
    manager.addPass(createChooseSplits());
  });
}

/// Records the functions as the user wrote them; only helpers are inlined, and operations that are
/// computed twice or for nothing go.
fp4::Status fp4::Compiler::Impl::recordFunctions() {
  OwningOpRef<ModuleOp> inlined = module->clone();
  PassManager manager(context);
  // The inliner's own pipeline would canonicalize: the reference must not run folded operations.
  manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  manager.addPass(createCSEPass());
  if (mlir::failed(manager.run(*inlined)))
    return notCompiled();
  makeGemmsPlain(*inlined);
  decomposeSoftmaxes(*inlined);
  functions = describeFunctions(*inlined, constants);
  return {};
}

fp4::Status fp4::Compiler::Impl::compileTo(Phase phase) {
  FP4_TRY(requireProgram());
  if (phase == Phase::Cubin && reached == Phase::Ptx)
    return makeError(ErrorKind::Usage, "kernels are PTX already and cannot become cubins",
                     "ask for Phase::Cubin instead of Phase::Ptx: it does both");
  if (!reached) {
    FP4_TRY(chooseSplits());
    FP4_TRY(recordFunctions());
  }
  for (Phase step : {Phase::Fused, Phase::Planned, Phase::Tiles, Phase::Roles, Phase::Pipelined,
                     Phase::Scheduled, Phase::Nvvm, Phase::Ptx, Phase::Cubin}) {
    bool skipped = step == Phase::Ptx && phase == Phase::Cubin;
    if (step > phase || (reached && step <= *reached) || skipped)
      continue;
    FP4_TRY(timed(std::string(stringifyPhase(step)), [&] {
      return runPasses([&](OpPassManager &manager) { addPhase(manager, step, options); });
    }));
    reached = step;
    if (step == Phase::Fused)
      describeFusion(*module, functions);
    if (step == Phase::Planned)
      noteUnusedPlans();
  }
  if (phase >= Phase::Ptx && kernels.empty())
    kernels = describeKernels(*module);
  return {};
}

/// Lowers host code to the llvm dialect, with the manifest as the constant fp4_manifest.
fp4::Status fp4::Compiler::Impl::lowerHost() {
  FP4_TRY(requireProgram());
  if (reached < Phase::Ptx)
    FP4_TRY(compileTo(Phase::Ptx));
  if (reached == Phase::Host)
    return {};
  if (functions.empty())
    return makeError(ErrorKind::Compile, "'" + name + "' must have a public function with a body",
                     "host code exists for such functions only: remove 'private', or give a "
                     "declaration its body");
  FP4_TRY(timed("host", [&] {
    return runPasses([&](OpPassManager &manager) { addPhase(manager, Phase::Host, options); });
  }));
  reached = Phase::Host;
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (const auto &[symbol, bytes] : constants)
    constantGlobal(builder, *module, bytes);
  std::string text = writeManifest(options.target, functions, kernels);
  text.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  LLVM::GlobalOp::create(builder, module->getLoc(), type, /*isConstant=*/true,
                         LLVM::Linkage::External, "fp4_manifest", builder.getStringAttr(text));
  return {};
}

fp4::Expected<std::unique_ptr<fp4::JitProgram>> fp4::Compiler::Impl::jit() {
  FP4_TRY(lowerHost());
  return timed("jit", [&] { return jitHostCode(*module); });
}

fp4::Status fp4::Compiler::Impl::writeLibrary(const std::string &path) {
  FP4_TRY(lowerHost());
  FP4_ASSIGN(auto object, timed("object", [&] { return compileHostObject(*module); }));
  return timed("link", [&] { return linkSharedLibrary(object, path); });
}

fp4::Compiler::Compiler(CompilerOptions options) : impl(new Impl(std::move(options))) {}
fp4::Compiler::~Compiler() = default;

/// A valid `module` without operations of former spellings; null where it then is not valid.
static OwningOpRef<ModuleOp> upgraded(OwningOpRef<ModuleOp> module) {
  if (!module || !fp4::hasLegacyOps(*module))
    return module;
  bool isValid = succeeded(fp4::upgradeLegacyText(*module)) && succeeded(verify(*module));
  return isValid ? std::move(module) : OwningOpRef<ModuleOp>();
}

fp4::Status fp4::Compiler::loadFile(const std::string &path) {
  auto text = path == "-" ? readStandardInput() : readText(path);
  if (!text)
    return makeError(ErrorKind::Usage, text.error().message,
                     "pass a file with MLIR text, such as examples/nvfp4_linear.mlir");
  return loadText(*text, path == "-" ? "<stdin>" : path);
}

fp4::Status fp4::Compiler::loadText(const std::string &text, const std::string &name) {
  return impl->load(name.empty() ? "<text>" : name, [&] {
    impl->createContext();
    impl->sourceManager.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name),
                                           llvm::SMLoc());
    return upgraded(parseSourceFile<ModuleOp>(impl->sourceManager, impl->context));
  });
}

fp4::Status fp4::Compiler::loadModule(ModuleOp module) {
  return impl->load(module.getName().value_or("<module>").str(), [&] {
    impl->context = module.getContext();
    impl->context->appendDialectRegistry(createRegistry());
    OwningOpRef<ModuleOp> copy = module.clone();
    return succeeded(verify(*copy)) ? upgraded(std::move(copy)) : OwningOpRef<ModuleOp>();
  });
}

fp4::Status fp4::Compiler::specialize(const std::map<std::string, int64_t> &sizes) {
  return impl->specialize(sizes);
}

fp4::Status fp4::Compiler::keepFunction(const std::string &name) {
  return impl->keepFunction(name);
}

fp4::Status fp4::Compiler::checkAssembler() const { return impl->checkAssembler(); }

bool fp4::Compiler::namesAssembler() const { return Ptxas::isNamed(impl->options.ptxas); }

fp4::Status fp4::Compiler::compileTo(Phase phase) {
  return phase == Phase::Host ? impl->lowerHost() : impl->compileTo(phase);
}

std::string fp4::Compiler::ir() const {
  if (!impl->module)
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << *impl->module << "\n";
  return text;
}

fp4::Listing fp4::Compiler::listing(const std::string &file) const {
  return impl->module ? listModule(*impl->module, file) : Listing();
}

fp4::Status fp4::Compiler::anchorListing(const std::string &file) {
  FP4_TRY(impl->requireProgram());
  placeInOwnText(*impl->module, file);
  return {};
}

fp4::Status fp4::Compiler::keepLines() {
  FP4_TRY(impl->requireProgram());
  LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
  // Only lines are emitted: with line tables the PTX would be for a debugger, which ptxas does not
  // optimize.
  scopes.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  return impl->runPasses([&](OpPassManager &manager) {
    manager.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
  });
}

std::string fp4::Compiler::memoryMap() const {
  return impl->module ? describeMemory(*impl->module) : "[]";
}

std::vector<fp4::KernelCode> fp4::Compiler::kernels() const {
  std::vector<KernelCode> kernels;
  if (!impl->module)
    return kernels;
  for (auto binary : impl->module->getOps<gpu::BinaryOp>()) {
    KernelCode &code = kernels.emplace_back();
    code.module = binary.getName().str();
    for (auto object : binary.getObjects().getAsRange<gpu::ObjectAttr>()) {
      bool isText = object.getFormat() == gpu::CompilationTarget::Assembly;
      (isText ? code.ptx : code.cubin) = object.getObject().getValue().str();
    }
  }
  return kernels;
}

std::string fp4::Compiler::manifest() const {
  return writeManifest(impl->options.target, impl->functions, impl->kernels);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// The text of a plan as inside of #fp4.plan<...>.
static std::string textOf(const fp4::KernelPlan &plan, MLIRContext *context) {
  std::string text;
  llvm::raw_string_ostream(text) << fp4::PlanAttr::get(context, plan);
  llvm::StringRef inside = text;
  inside.consume_front("#fp4.plan<");
  inside.consume_back(">");
  return inside.str();
}

/// The operations with plans; none at another phase.
SmallVector<Operation *> fp4::Compiler::Impl::planned() const {
  if (!module || reached != Phase::Planned)
    return {};
  return kernelOperations(module.get().getOperation());
}

std::vector<fp4::PlannedKernel> fp4::Compiler::plans() const {
  std::vector<PlannedKernel> list;
  for (Operation *op : impl->planned()) {
    auto function = op->getParentOfType<func::FuncOp>();
    std::optional<KernelPlan> plan = lastPlanOf(op);
    list.push_back({function ? function.getName().str() : "", op->getName().getStringRef().str(),
                    plan ? textOf(*plan, impl->context) : ""});
  }
  return list;
}

std::vector<fp4::PlanChange> fp4::Compiler::planChanges(size_t index) const {
  SmallVector<Operation *> kernels = impl->planned();
  std::vector<PlanChange> changes;
  if (index >= kernels.size())
    return changes;
  Operation *op = kernels[index];
  FailureOr<hw::TargetModel> target = targetOf(op);
  std::optional<KernelPlan> plan = lastPlanOf(op);
  if (failed(target) || !plan)
    return changes;
  for (const PlanNeighbour &other : neighboursOf(op, *plan, *target))
    changes.push_back({other.field, textOf(other.plan, impl->context)});
  return changes;
}

/// Gives the last case of `product` another plan. Cases before it have split-K factors of their
/// own.
static void setLastCase(fp4::BlockScaledMatmulOp product, fp4::KernelPlan plan) {
  SmallVector<fp4::CaseAttr> cases = product.getCases();
  plan.guard = cases.back().getPlan().guard;
  cases.back() = fp4::CaseAttr::get(product.getContext(), plan, cases.back().getSplitK());
  product.setDispatchAttr(
      ArrayAttr::get(product.getContext(), SmallVector<Attribute>(cases.begin(), cases.end())));
}

fp4::Status fp4::Compiler::setPlan(size_t index, const std::string &plan) {
  SmallVector<Operation *> kernels = impl->planned();
  if (index >= kernels.size())
    return makeError(ErrorKind::Usage, "a plan must be set after phase planned",
                     "call compileTo(Phase::Planned), and plans() for the kernels");
  ScopedDiagnosticHandler silent(impl->context, [](Diagnostic &) { return success(); });
  auto attribute =
      dyn_cast_or_null<PlanAttr>(parseAttribute("#fp4.plan<" + plan + ">", impl->context));
  if (!attribute)
    return makeError(ErrorKind::Compile, "'" + plan + "' must be a plan",
                     "--emit=mlir --compile-to=planned shows those of a program");
  auto product = dyn_cast<BlockScaledMatmulOp>(kernels[index]);
  if (product && product.getMostSplits() > 1 && product.getDispatch()) {
    setLastCase(product, attribute.getPlan());
    return {};
  }
  if (product) // the plan is for all sizes
    product.removeDispatchAttr();
  kernels[index]->setAttr(Fp4Dialect::kPlanAttr, attribute);
  return {};
}

std::vector<std::string> fp4::Compiler::dimNames() const {
  if (!impl->module)
    return {};
  llvm::SetVector<StringRef> names;
  for (auto function : impl->module->getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto dims = function.getArgAttrOfType<ArrayAttr>(i, "fp4.dims"))
        for (StringRef dim : dims.getAsValueRange<StringAttr>())
          names.insert(dim.split('/').first); // "M/16" depends on M
  names.remove("");
  return {names.begin(), names.end()};
}

fp4::Expected<std::unique_ptr<fp4::JitProgram>> fp4::Compiler::jit() { return impl->jit(); }

fp4::Status fp4::Compiler::writeLibrary(const std::string &path) {
  return impl->writeLibrary(path);
}

const std::vector<fp4::StepTime> &fp4::Compiler::times() const { return impl->times; }
