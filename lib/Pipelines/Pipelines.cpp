//===- Pipelines.cpp - The named phases of the compiler -------------------===//
//
// The passes that a program goes through, phase by phase.
//
//===----------------------------------------------------------------------===//

#include "fp4/Pipelines/Pipelines.h"

#include "fp4/Conversion/Fp4ToGPU/Passes.h"
#include "fp4/Conversion/Fp4ToPipe/Passes.h"
#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Conversion/PipeToNVVM/Passes.h"
#include "fp4/Dialect/Fp4/Transforms/Passes.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"
#include "fp4/Pipelines/Passes.h"
#include "fp4/Plans/Passes.h"
#include "fp4/Target/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace {

constexpr std::pair<fp4::Phase, llvm::StringLiteral> kPhases[] = {
    {fp4::Phase::Fused, "fused"},
    {fp4::Phase::Planned, "planned"},
    {fp4::Phase::Tiles, "tiles"},
    {fp4::Phase::Roles, "roles"},
    {fp4::Phase::Pipelined, "pipelined"},
    {fp4::Phase::Scheduled, "scheduled"},
    {fp4::Phase::Nvvm, "nvvm"},
    {fp4::Phase::Ptx, "ptx"},
    {fp4::Phase::Cubin, "cubin"},
    {fp4::Phase::Host, "host"},
};

void addFused(OpPassManager &manager, const fp4::PhaseOptions &options) {
  // Programs of the last release are rewritten before anything reads them.
  manager.addPass(fp4::createUpgrade());
  // Errors come first, at the operations that the user wrote.
  manager.addPass(fp4::createCheckProgram());
  manager.addPass(fp4::createSetTarget({options.target, options.sms, options.device}));
  manager.addPass(fp4::createChooseSplits());
  // Helper functions disappear into the functions that callers see.
  manager.addPass(createInlinerPass());
  manager.addPass(createSymbolDCEPass());
  // Canonicalization removes unswizzle(swizzle(x)), duplicate quantizations and unused results.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Operations that nothing needs, or that patterns have rewritten, need no instructions.
  manager.addPass(fp4::createCheckTarget());
  // Attention of plain linalg is found in the dimensions that it has.
  manager.addPass(fp4::createFuse({{"attention"}}));
  // Elementwise operations become few, each with its own loop.
  manager.addPass(fp4::createGeneralizeElementwise());
  // Operations that read one tensor several times, or store one in between, become one kernel.
  manager.addPass(fp4::createFuse());
}

void addPlanned(OpPassManager &manager, const fp4::PhaseOptions &options) {
  // Every operation states the kernel that it becomes; later passes choose nothing.
  manager.addPass(fp4::createPlanKernels({llvm::join(options.plans, ";")}));
}

void addTiles(OpPassManager &manager, const fp4::PhaseOptions &options) {
  // Every operation that streams through memory becomes a launch and a finished kernel.
  manager.addPass(fp4::createConvertFp4ToGPU({options.noArithmetic}));
  // Every matmul becomes a launch and a kernel in sequential pipe form.
  manager.addPass(fp4::createConvertFp4ToPipe());
  // Constants and views of tensors need no kernel.
  manager.addPass(fp4::createLowerHostTensors());
  // Host functions work on device buffers; operations that only moved data between tensors are
  // gone.
  manager.addPass(fp4::createFinalizeHostBuffers());
  // Sizes derive from function arguments; checks of a size against itself vanish once CSE finds
  // them.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
}

void addRoles(OpPassManager &manager) {
  // Tile operations move into the region of the warp that executes them; tiles that cross from one
  // region to another travel in channels.
  manager.addPass(fp4::pipe::createSpecializeWarps());
  // Roles were cut out one by one; operations that a role repeats go.
  manager.addPass(createCSEPass());
  // Every use of a tile by another role is covered by a channel, acquired and released in balance.
  manager.addPass(fp4::pipe::createVerifySync());
}

void addPipelined(OpPassManager &manager) {
  // Channels get a depth, addresses in shared and tensor memory, and a counter.
  manager.addPass(fp4::pipe::createPipelineChannels());
  manager.addPass(createCSEPass());
  // The checks after roles are repeated, and now cover stages, phases and transaction bytes too.
  manager.addPass(fp4::pipe::createVerifySync());
  // Buffers are disjoint and the target has as much memory as they need.
  manager.addPass(fp4::pipe::createVerifyCapacity());
}

void addScheduled(OpPassManager &manager) {
  // Kernels lose the waits, fences and divisions that they can do without.
  fp4::pipe::addSchedulePasses(manager);
  // The waits that are left order every access of a tile behind those before it.
  manager.addPass(fp4::pipe::createVerifySync());
  manager.addPass(fp4::pipe::createVerifyCapacity());
}

void addNvvm(OpPassManager &manager, const fp4::PhaseOptions &options) {
  // Roles become warps, channels rings of mbarriers, tile operations TMA and tcgen05 instructions.
  manager.addNestedPass<gpu::GPUModuleOp>(fp4::createConvertPipeToNVVM());
  // Values that the kernels compute twice, once per use of a channel, are computed once.
  manager.addNestedPass<gpu::GPUModuleOp>(createCanonicalizerPass());
  manager.addNestedPass<gpu::GPUModuleOp>(createCSEPass());
  // A kernel waits for the one before it only where it first touches memory; a kernel that does not
  // wait prefetches nothing.
  manager.addPass(fp4::createPdlLaunchesPass({/*all=*/options.pdl == fp4::PdlLaunches::All,
                                              /*chosen=*/options.pdl == fp4::PdlLaunches::Chosen}));
}

/// Adds the passes from the llvm and nvvm dialects to PTX, and to a cubin for `emit` = "cubin".
void addKernelCode(OpPassManager &manager, const fp4::PhaseOptions &options, StringRef emit) {
  fp4::EmitKernelsOptions emitOptions;
  emitOptions.emit = emit.str();
  emitOptions.ptxas = options.ptxas;
  manager.addPass(fp4::createEmitKernels(emitOptions));
}

void addHost(OpPassManager &manager) {
  // Everything outside of kernels becomes LLVM and calls of fp4-c/Runtime.h.
  manager.addPass(fp4::createConvertHostToRuntime());
  manager.addPass(createCanonicalizerPass());
}

} // namespace

std::string_view fp4::stringifyPhase(Phase phase) {
  for (auto [value, name] : kPhases)
    if (value == phase)
      return name;
  llvm_unreachable("every phase has a name");
}

std::optional<fp4::Phase> fp4::parsePhase(std::string_view text) {
  for (auto [value, name] : kPhases)
    if (StringRef(name) == StringRef(text))
      return value;
  return std::nullopt;
}

std::string fp4::phaseNames() { return llvm::join(llvm::make_second_range(kPhases), ", "); }

std::optional<fp4::PdlLaunches> fp4::parsePdlLaunches(std::string_view text) {
  return llvm::StringSwitch<std::optional<PdlLaunches>>(text)
      .Case("none", PdlLaunches::None)
      .Case("chosen", PdlLaunches::Chosen)
      .Case("all", PdlLaunches::All)
      .Default(std::nullopt);
}

void fp4::addPhase(OpPassManager &manager, Phase phase, const PhaseOptions &options) {
  switch (phase) {
  case Phase::Fused:
    return addFused(manager, options);
  case Phase::Planned:
    return addPlanned(manager, options);
  case Phase::Tiles:
    return addTiles(manager, options);
  case Phase::Roles:
    return addRoles(manager);
  case Phase::Pipelined:
    return addPipelined(manager);
  case Phase::Scheduled:
    return addScheduled(manager);
  case Phase::Nvvm:
    return addNvvm(manager, options);
  case Phase::Ptx:
    return addKernelCode(manager, options, "ptx");
  case Phase::Cubin:
    return addKernelCode(manager, options, "cubin");
  case Phase::Host:
    return addHost(manager);
  }
  llvm_unreachable("every phase has its passes");
}

void fp4::addPhasesTo(OpPassManager &manager, Phase last, const PhaseOptions &options) {
  for (Phase phase : llvm::make_first_range(kPhases)) {
    if (phase > last)
      return;
    // The phases ptx and cubin each do all the work from nvvm on.
    if ((phase == Phase::Ptx && last == Phase::Cubin) ||
        (phase == Phase::Cubin && last == Phase::Host))
      continue;
    addPhase(manager, phase, options);
  }
}

namespace {

/// A parser that names the phases in its error; llvm::cl's own parser only rejects an unknown
/// value.
struct PhaseParser : llvm::cl::parser<fp4::Phase> {
  using parser::parser;

  bool parse(llvm::cl::Option &option, StringRef, StringRef text, fp4::Phase &phase) {
    std::optional<fp4::Phase> parsed = fp4::parsePhase(text);
    if (!parsed)
      return option.error("unknown phase '" + text + "', known: " + fp4::phaseNames());
    phase = *parsed;
    return false;
  }
  static void print(llvm::raw_ostream &stream, fp4::Phase phase) {
    stream << fp4::stringifyPhase(phase);
  }
};

struct CompileOptions : PassPipelineOptions<CompileOptions> {
  Option<fp4::Phase, PhaseParser> to{
      *this, "to", llvm::cl::desc("Phase to stop after"), llvm::cl::init(fp4::Phase::Nvvm),
      llvm::cl::values(clEnumValN(fp4::Phase::Fused, "fused", "fp4 operations, simplified"),
                       clEnumValN(fp4::Phase::Planned, "planned", "fp4 operations with plans"),
                       clEnumValN(fp4::Phase::Tiles, "tiles", "kernels in sequential form"),
                       clEnumValN(fp4::Phase::Roles, "roles", "warp roles and channels"),
                       clEnumValN(fp4::Phase::Pipelined, "pipelined", "channels with depth"),
                       clEnumValN(fp4::Phase::Scheduled, "scheduled", "kernels as they will run"),
                       clEnumValN(fp4::Phase::Nvvm, "nvvm", "kernels in llvm and nvvm"),
                       clEnumValN(fp4::Phase::Ptx, "ptx", "kernels as PTX"),
                       clEnumValN(fp4::Phase::Cubin, "cubin", "kernels as PTX and cubin"),
                       clEnumValN(fp4::Phase::Host, "host", "host code in llvm"))};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("Target to compile for (default: the module's, else sm_100a)")};
  Option<std::string> plans{
      *this, "plans",
      llvm::cl::desc("Plans for kernels, separated by semicolons (fp4-plan-kernels)")};
  Option<std::string> ptxas{*this, "ptxas", llvm::cl::desc("The ptxas to run (default: search)")};
};

} // namespace

void fp4::registerPipelines() {
  PassPipelineRegistration<CompileOptions>(
      "fp4-compile", "Run the named phases up to the one given by `to`",
      [](OpPassManager &manager, const CompileOptions &options) {
        PhaseOptions phases;
        phases.target = options.target;
        phases.ptxas = options.ptxas;
        phases.plans = {options.plans};
        addPhasesTo(manager, options.to, phases);
      });
}
