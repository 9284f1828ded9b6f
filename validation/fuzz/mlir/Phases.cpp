//===- Phases.cpp - Every op, in kernels of the wrong phase ---------------===//
#include "Phases.h"
#include "Corpus.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdio>
#include <map>

using namespace mlir;
using namespace fp4::fuzz;

namespace {

constexpr const char *kPasses[] = {
    "canonicalize,cse",
    "fp4-check-program",
    "fp4-check-target",
    "fp4-fuse",
    "fp4-generalize-elementwise",
    "fp4-plan-kernels",
    "convert-fp4-to-gpu",
    "convert-fp4-to-pipe",
    "fp4-lower-host-tensors",
    "fp4-finalize-host-buffers",
    "pipe-specialize-warps",
    "pipe-pipeline",
    "pipe-verify-sync",
    "pipe-verify-capacity",
    "gpu.module(convert-pipe-to-nvvm)",
    "fp4-pdl-launches",
    "fp4-emit-kernels{emit=ptx}",
    "convert-host-to-runtime",
};

/// The place of an op in the program of a case.
enum class Place { Host, NoRoles, Planned, Role, Pipelined, Lowered };
constexpr Place kPlaces[] = {Place::Host, Place::NoRoles,   Place::Planned,
                             Place::Role, Place::Pipelined, Place::Lowered};

constexpr const char *kPlan =
    "#pipe.role_plan<epilogue warps 0 to 4 drives [threads], mma warps 4 to 5 drives [tensor, "
    "scale_copy], load warps 5 to 6 drives [tma], store warps 6 to 7 drives [bulk_store], work "
    "warps 7 to 8 drives [work_queue], convert warps 8 to 12 drives [threads] auxiliary>";

/// The values that `op` and what is in it use from outside.
llvm::SetVector<Value> usedBy(Operation *op) {
  llvm::SetVector<Value> used;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()) ||
          operand.getParentBlock() == op->getBlock())
        used.insert(operand);
  });
  return used;
}

/// Sets the attributes by which a kernel says that it has been pipelined.
void pretendPipelined(gpu::GPUFuncOp kernel) {
  Builder b(kernel.getContext());
  kernel->setAttr(fp4::pipe::PipeDialect::kSharedBytesAttr, b.getI64IntegerAttr(65536));
  kernel->setAttr(fp4::pipe::PipeDialect::kTmemColumnsAttr, b.getI64IntegerAttr(512));
  kernel->setAttr(fp4::pipe::PipeDialect::kTmemSlotAttr, b.getI64IntegerAttr(65520));
}

/// A role of four warps that drives what `op` needs.
OpBuilder roleFor(OpBuilder &b, Operation *op) {
  auto engine = fp4::pipe::Engine::Threads;
  if (auto engineOp = dyn_cast<fp4::pipe::EngineOpInterface>(op))
    engine = engineOp.getEngine();
  const std::string text =
      "pipe.role work warps 0 to 4 drives [" + fp4::pipe::stringifyEngine(engine).str() + "] {\n}";
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      "gpu.module @r { gpu.func @k() kernel { " + text + " gpu.return } }", b.getContext());
  if (!parsed)
    return b;
  fp4::pipe::RoleRegionOp role;
  parsed->walk([&](fp4::pipe::RoleRegionOp found) { role = found; });
  Operation *copy = b.clone(*role);
  return OpBuilder::atBlockBegin(&copy->getRegion(0).front());
}

/// The body of a function around `place`, whose arguments have these types; or where it can have
/// none, with casts in place of them.
class Around {
public:
  Around(ModuleOp module, Place place, ArrayRef<Type> types)
      : b(OpBuilder::atBlockEnd(module.getBody())) {
    Location loc = module.getLoc();
    if (place == Place::Host)
      host(loc, types);
    else
      device(loc, place, types);
  }
  OpBuilder b;
  SmallVector<Value> arguments;

private:
  void device(Location loc, Place place, ArrayRef<Type> types) {
    auto kernels = gpu::GPUModuleOp::create(b, loc, "kernels");
    b.setInsertionPointToStart(kernels.getBody());
    if (place == Place::Lowered)
      return lowered(loc, types);
    auto kernel = gpu::GPUFuncOp::create(b, loc, "kernel", b.getFunctionType(types, {}));
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    if (place == Place::Planned)
      if (Attribute plan = parseAttribute(kPlan, b.getContext()))
        kernel->setAttr(fp4::pipe::PipeDialect::kRolePlanAttr, plan);
    if (place == Place::Pipelined)
      pretendPipelined(kernel);
    Block &body = kernel.getBody().front();
    arguments.assign(body.args_begin(), body.args_end());
    b.setInsertionPointToStart(&body);
    gpu::ReturnOp::create(b, loc);
    b.setInsertionPointToStart(&body);
  }
  void host(Location loc, ArrayRef<Type> types) {
    auto function = func::FuncOp::create(b, loc, "host", b.getFunctionType(types, {}));
    Block *body = function.addEntryBlock();
    arguments.assign(body->args_begin(), body->args_end());
    b.setInsertionPointToStart(body);
    func::ReturnOp::create(b, loc);
    b.setInsertionPointToStart(body);
  }
  void lowered(Location loc, ArrayRef<Type> types) {
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {});
    auto function = LLVM::LLVMFuncOp::create(b, loc, "kernel", type);
    Block *body = function.addEntryBlock(b);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    b.setInsertionPointToStart(body);
    for (Type each : types)
      arguments.push_back(
          UnrealizedConversionCastOp::create(b, loc, each, ValueRange()).getResult(0));
  }
};

/// `op` alone in `place`.
std::string alone(Operation *op, Place place) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(op->getContext()));
  const llvm::SetVector<Value> used = usedBy(op);
  SmallVector<Type> types;
  for (Value value : used)
    types.push_back(value.getType());
  Around around(*module, place, types);
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip(used, around.arguments))
    mapping.map(value, argument);
  const bool inRole = place == Place::Role || place == Place::Pipelined;
  OpBuilder b = inRole && !isa<fp4::pipe::RoleRegionOp>(op) ? roleFor(around.b, op) : around.b;
  b.clone(*op, mapping);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().printGenericOpForm());
  return text;
}

bool isOurs(Operation *op) {
  const StringRef dialect = op->getName().getDialectNamespace();
  return (dialect == "fp4" || dialect == "pipe") && !op->hasTrait<OpTrait::IsTerminator>();
}

/// Errors of a run, and whether one has no place.
struct Heard {
  bool any = false, placeless = false;
  std::string text; ///< with notes
};

LogicalResult runPasses(ModuleOp module, const std::string &passes) {
  FailureOr<OpPassManager> parsed = parsePassPipeline(passes);
  if (failed(parsed))
    std::exit(3); // a mistake of this file
  PassManager manager(module.getContext(), "builtin.module");
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  return manager.run(module);
}

/// Returns true if the op of a case belongs to a role, but is in none.
bool lacksRole(ModuleOp module) {
  bool found = false;
  module.walk([&](gpu::GPUFuncOp kernel) {
    kernel.walk([&](Operation *op) {
      found |= fp4::pipe::belongsToRole(op) && !op->getParentOfType<fp4::pipe::RoleRegionOp>();
    });
  });
  return found;
}

[[noreturn]] void refuse(const std::string &input, const char *why, const std::string &said) {
  std::fprintf(stderr, "%s\n%s\n%s", why, said.c_str(), input.c_str());
  std::abort();
}

} // namespace

void PhasesTarget::collect(const std::string &text) {
  constexpr size_t mostOfOne = 4; // of one name: other types, other forms
  static std::map<std::string, std::vector<std::string>> known;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context
      .loadDialect<func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect, fp4::pipe::PipeDialect>();
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return;
  module->walk([&](Operation *op) {
    std::vector<std::string> &seen = known[op->getName().getStringRef().str()];
    if (!isOurs(op) || seen.size() >= mostOfOne)
      return;
    std::string lone = alone(op, Place::NoRoles);
    if (llvm::is_contained(seen, lone))
      return;
    seen.push_back(std::move(lone));
    for (Place place : kPlaces)
      modules.push_back(alone(op, place));
  });
}

bool PhasesTarget::load(const std::vector<std::filesystem::path> &corpus) {
  for (std::string &part : partsOf(corpus))
    collect(part);
  return !modules.empty();
}

uint64_t PhasesTarget::count() const { return modules.size() * std::size(kPasses); }

std::string PhasesTarget::make(uint64_t number, Random &) {
  const std::string passes = kPasses[number % std::size(kPasses)];
  const std::string &module = modules[number / std::size(kPasses) % modules.size()];
  return "// fuzz: builtin.module(fp4-set-target," + passes + ")\n" + module;
}

void PhasesTarget::run(const std::string &input) {
  const size_t begin = std::string("// fuzz: ").size();
  const std::string passes = input.substr(begin, input.find('\n') - begin);
  if (!context)
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  Heard heard;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      heard.any = true;
      heard.placeless |= isa<UnknownLoc>(diagnostic.getLocation());
    }
    heard.text += diagnostic.str() + "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      heard.text += note.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(input, context.get(), "phases.mlir");
  if (!module)
    return; // the verifier refuses the op there
  const bool mustName =
      passes.find("convert-pipe-to-nvvm") != std::string::npos && lacksRole(*module);
  const LogicalResult ran = runPasses(*module, passes);
  if (failed(ran) && (!heard.any || heard.placeless))
    refuse(input, "a pass fails without an error that has a place:", heard.text);
  if (mustName && (succeeded(ran) || heard.text.find("pipe-specialize-warps") == std::string::npos))
    refuse(input, "convert-pipe-to-nvvm must name the pass that is missing:", heard.text);
}
