//===- Families.cpp - Families of kernels and their checks ----------------===//

#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Fp4/IR/AttentionEpilogue.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Utils/ElementLimit.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using enum KernelFamily;

bool fp4::transformsOnTensorCore(QuantizeOp op) {
  auto onTensorCore = [](std::optional<HadamardAttr> transform) {
    return transform && transform->getArithmetic() == HadamardArithmetic::TensorCore;
  };
  return onTensorCore(op.getHadamard()) || onTensorCore(op.getColumnwiseHadamard());
}

using Families = SmallVector<KernelFamily, 2>;

/// The most rows or columns of a GEMM's tile, and of the tiles of a cluster together.
static constexpr int64_t kMaxTileExtent = 1 << 16;

static Families familiesOfQuantize(QuantizeOp op) {
  if (isRowKernel(op))
    return {ReduceRows};
  if (transformsOnTensorCore(op))
    return {TileTransform, TileQuantize};
  if (op.hasColumnwise() || op.hasSquareBlocks() || op.isGrouped())
    return {TileQuantize};
  return {StreamBlocks, TileQuantize};
}

static Families familiesOfAmax(AmaxOp op) {
  if (QuantizeOp quantize = quantizerOfRows(op); quantize && isRowKernel(quantize))
    return {};
  if (op.getPerColumn())
    return {StreamItems};
  return {op.getPerRow() || isRowKernel(op) ? ReduceRows : ReduceGrid};
}

SmallVector<KernelFamily, 2> fp4::familiesOf(Operation *op) {
  return TypeSwitch<Operation *, Families>(op)
      .Case(
          [](BlockScaledMatmulOp product) { return Families{product.usesFma() ? Gemv : TileGemm}; })
      .Case([](QuantizeOp quantize) { return familiesOfQuantize(quantize); })
      .Case([](AmaxOp amax) { return familiesOfAmax(amax); })
      .Case([](TopKOp topK) {
        return topK->hasAttr(kPrologueAttr) ? Families() : Families{ReduceRows};
      })
      .Case([](ExpertOrderOp) { return Families{ReduceRows}; })
      .Case([](DequantizeOp) { return Families{StreamBlocks}; })
      .Case([](HadamardAmaxOp) { return Families{ReduceGrid}; })
      .Case([](AttentionOp attention) {
        if (attention.getLatent() || (attention.isOfBytes() && !attention.isBlockScaled()))
          return Families{TileAttention};
        return attention.isQuantized() ? Families{WarpAttention}
                                       : Families{TileAttention, WarpAttention};
      })
      .Case([](AttentionBackwardOp) { return Families{TileAttention}; })
      .Case<HadamardOp, PrepackOp, UnprepackOp, SwizzleScalesOp, UnswizzleScalesOp, StackScalesOp,
            InterleaveShardsOp, MatmulAlphaOp>([](Operation *) { return Families{StreamItems}; })
      .Case([](linalg::GenericOp generic) {
        if (generic->hasAttr(kPrologueAttr))
          return Families();
        return Families{isRowKernel(generic) ? ReduceRows : StreamItems};
      })
      .Default([](Operation *) { return Families(); });
}

const FamilyRules &fp4::rulesOf(KernelFamily family) {
  static constexpr const FamilyRules *all[] = {
      &kGemmRules,          &kTransformRules,   &kAttentionRules,  &kTileQuantizeRules,
      &kStreamBlocksRules,  &kStreamItemsRules, &kReduceGridRules, &kReduceRowsRules,
      &kWarpAttentionRules, &kGemvRules};
  return **llvm::find_if(all, [&](const FamilyRules *rules) { return rules->family == family; });
}

LogicalResult fp4::requireNothing(Operation *, const KernelPlan &, const hw::TargetModel &) {
  return success();
}

KernelFamily fp4::familyOf(Operation *op) {
  if (auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr))
    return plan.getFamily();
  return familiesOf(op).front();
}

/// Returns true for attention whose queries, or whose blocks, mma.sync multiplies.
static bool hasWarps(AttentionOp op, const hw::TargetModel &target) {
  if (op.isBlockScaled())
    return route::hasCore(target, route::Core::MmaSync);
  return !op.isOfBytes() && !op.getLatent();
}

KernelFamily fp4::chooseFamily(Operation *op, const hw::TargetModel &target) {
  auto attention = dyn_cast<AttentionOp>(op);
  if (attention && attention.getEpilogueQuantize() && quantizesInLanes(attention) &&
      !attention.getLatent() && !op->hasAttr(Fp4Dialect::kPlanAttr))
    return WarpAttention;
  if (attention && hasWarps(attention, target) && !op->hasAttr(Fp4Dialect::kPlanAttr) &&
      (!hasTiles(attention, target) || (prefersWarps(attention, target) && !attention.getOrder())))
    return WarpAttention;
  auto quantize = dyn_cast<QuantizeOp>(op);
  bool isOfWarps =
      quantize && transformsOnTensorCore(quantize) && !route::hasCore(target, route::Core::Tcgen05);
  return isOfWarps ? TileQuantize : familyOf(op);
}

std::optional<LaunchDependents> fp4::launchDependentsOf(const KernelPlan &plan) {
  return plan.pdl == LaunchDependents::None ? std::nullopt : plan.pdl;
}

bool fp4::hasTileKernel(Operation *op) {
  return llvm::is_contained({TileGemm, TileTransform, TileAttention}, familyOf(op));
}

//===----------------------------------------------------------------------===//
// Checks of fit
//===----------------------------------------------------------------------===//

InFlightDiagnostic fp4::report(Operation *op, const Error &error) {
  return withNote(op->emitOpError(error.message), error.note);
}

InFlightDiagnostic fp4::misfit(Operation *op, StringRef field, const Twine &must,
                               const Twine &found) {
  InFlightDiagnostic diag = op->emitOpError() << "must have a plan whose '" << field << "' " << must
                                              << ", but got " << found;
  auto product = dyn_cast<BlockScaledMatmulOp>(op);
  if (product && product.getStreamK() && field == "tile")
    diag.attachNote()
        << "leave 'tile' out, and give 'stream_k' the rows and columns of such a tile";
  else
    diag.attachNote() << "leave '" << field << "' out, and fp4-plan-kernels decides it";
  return diag;
}

std::string fp4::spell(const std::array<int64_t, 3> &sizes) {
  auto said = llvm::make_filter_range(sizes, [](int64_t size) { return size != 0; });
  return "[" +
         llvm::join(llvm::map_range(said, [](int64_t n) { return std::to_string(n); }), ", ") + "]";
}

LogicalResult fp4::misfitTile(Operation *op, const KernelPlan &plan, const Twine &must) {
  return misfit(op, "tile", must, spell(plan.tile));
}

LogicalResult fp4::checkAtMost(Operation *op, StringRef field, int64_t value, int64_t most) {
  if (value <= most)
    return success();
  return misfit(op, field, "is at most " + Twine(most), Twine(value));
}

std::string fp4::spell(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

std::string fp4::spellChoice(ArrayRef<int64_t> numbers) {
  std::string text =
      llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ", ");
  if (size_t comma = text.rfind(", "); comma != std::string::npos)
    text.replace(comma, 2, " or ");
  return text;
}

static bool hasWarps(pipe::RoleAttr role, ArrayRef<int64_t> warps, int64_t unit) {
  return warps.empty() ||
         (llvm::is_contained(warps, role.getNumWarps()) && role.getFirstWarp() % unit == 0);
}

static std::string spellWarps(ArrayRef<int64_t> warps, int64_t unit) {
  return spellChoice(warps) + " warps from a multiple of " + std::to_string(unit);
}

/// The rule that roles of all engines of a kernel break; else empty.
static std::string brokenRule(pipe::RolePlanAttr roles, const RoleRules &rules) {
  using enum pipe::Engine;
  pipe::RoleAttr tensor = roles.getDriver(Tensor), threads = roles.getDriver(Threads),
                 scales = roles.getDriver(ScaleCopy), auxiliary = roles.getAuxiliary();
  constexpr int64_t warpgroup = 4;
  if (rules.converting && !(auxiliary && hasWarps(auxiliary, *rules.converting, warpgroup)))
    return "have an auxiliary role of " +
           (rules.converting->empty() ? "threads" : spellWarps(*rules.converting, warpgroup)) +
           ", which converts";
  if (!rules.areOneRole && scales && scales != tensor)
    return "drive the engines tensor and scale_copy from one role";
  bool isApart = rules.areOneRole && tensor != threads;
  if (isApart && rules.warps.empty())
    return "drive the engines tensor and threads from one role";
  if (isApart || !hasWarps(threads, rules.warps, rules.unit))
    return (rules.areOneRole ? "drive the engines tensor and threads with "
                             : "drive the engine threads with ") +
           spellWarps(rules.warps, rules.unit) + rules.why.str();
  if (roles.getDriver(Tma) == tensor)
    return "drive the engines tma and tensor from two roles";
  return roles.getDriver(BulkStore) == threads
             ? "drive the engines threads and bulk_store from two roles"
             : "";
}

static LogicalResult checkRoles(Operation *op, pipe::RolePlanAttr roles,
                                ArrayRef<pipe::Engine> engines, const RoleRules &rules) {
  for (pipe::Engine engine : engines)
    if (!roles.getDriver(engine))
      return misfit(op, "roles", "drive the engine " + stringifyEngine(engine), spell(roles));
  std::string must = brokenRule(roles, rules);
  return must.empty() ? success() : LogicalResult(misfit(op, "roles", must, spell(roles)));
}

LogicalResult fp4::checkTiling(Operation *op, const KernelPlan &plan, const hw::TargetModel &target,
                               ArrayRef<pipe::Engine> engines, const RoleRules &rules) {
  if (!isa<pipe::WorkScheduleAttrInterface>(plan.schedule))
    return misfit(op, "schedule", "is a schedule such as #pipe.static_persistent<along_m>",
                  spell(plan.schedule));
  if (requestsWork(plan.schedule) && !llvm::is_contained(engines, pipe::Engine::WorkQueue))
    return misfit(op, "schedule",
                  "is one such as #pipe.static_persistent<along_m> in this family on " +
                      StringRef(target.name),
                  spell(plan.schedule));
  auto roles = dyn_cast<pipe::RolePlanAttr>(plan.roles);
  if (!roles)
    return misfit(op, "roles", "is a #pipe.role_plan", spell(plan.roles));
  if (failed(checkRoles(op, roles, engines, rules)))
    return failure();
  if (roles.getNumThreads() > int64_t(target.limits.maxThreadsPerCta))
    return misfit(op, "roles",
                  "have at most " + Twine(target.limits.maxThreadsPerCta / 32) + " warps on " +
                      StringRef(target.name),
                  spell(plan.roles));
  return checkThreads(op, roles.getNumThreads(), *plan.ctasPerSm, target);
}

int64_t fp4::mostCtasPerSm(int64_t threads, const hw::TargetModel &target) {
  return std::min<int64_t>(target.limits.maxThreadsPerSM / threads, target.limits.maxCtasPerSM);
}

LogicalResult fp4::checkThreads(Operation *op, int64_t threads, int64_t resident,
                                const hw::TargetModel &target) {
  std::string on = (" on " + StringRef(target.name)).str();
  if (threads % 32 || threads > target.limits.maxThreadsPerCta)
    return misfit(op, "threads",
                  "are a multiple of 32 up to " + Twine(target.limits.maxThreadsPerCta) + on,
                  Twine(threads));
  int64_t most = mostCtasPerSm(threads, target);
  if (resident > most)
    return misfit(op, "ctas_per_sm",
                  "is at most " + Twine(most) + " for " + Twine(threads) + " threads" + on,
                  Twine(resident));
  return success();
}

/// Checks static sizes. Entry points refuse dynamic sizes that are too many elements.
static LogicalResult checkElements(Operation *op, RankedTensorType type) {
  if (staticElements(type.getShape()) <= kMostElements)
    return success();
  return withNote(op->emitOpError("has kernels for tensors of at most ")
                      << kMostElements << " elements, but got " << type,
                  "split the tensor along its rows");
}

/// Checks that rows and columns up to the end of the last tile have numbers of 32 bits, which
/// kernels of GEMMs use.
static LogicalResult checkExtents(Operation *op, RankedTensorType type) {
  constexpr int64_t most = INT32_MAX - kMaxTileExtent;
  if (llvm::all_of(type.getShape(), [](int64_t extent) { return extent <= most; }))
    return success();
  return withNote(op->emitOpError("has kernels for at most ")
                      << most << " rows and columns, but got " << type,
                  "split the tensor along that dimension");
}

static LogicalResult checkSizes(Operation *op) {
  auto product = dyn_cast<BlockScaledMatmulOp>(op);
  SmallVector<Value> operands =
      product ? product.getTensors() : SmallVector<Value>(op->getOperands());
  for (ValueRange values : {ValueRange(operands), ValueRange(op->getResults())})
    for (Value value : values) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      bool isGemm = isa<BlockScaledMatmulOp>(op);
      if (type && (failed(checkElements(op, type)) || (isGemm && failed(checkExtents(op, type)))))
        return failure();
    }
  return success();
}

/// Checks that the family of `plan` has a kernel for `op`, of its sizes.
static LogicalResult checkFamily(Operation *op, KernelFamily family) {
  Families families = familiesOf(op);
  if (llvm::is_contained(families, family))
    return checkSizes(op);
  return withNote(op->emitOpError() << "has no kernel of family " << stringifyKernelFamily(family),
                  "it has kernels of: " +
                      llvm::join(llvm::map_range(families, stringifyKernelFamily), ", "));
}

static LogicalResult checkPlan(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  const FamilyRules &rules = rulesOf(plan.family);
  return failure(failed(checkFamily(op, plan.family)) || failed(rules.require(op, plan, target)) ||
                 failed(rules.check(op, plan, target)));
}

FailureOr<KernelPlan> fp4::completePlan(Operation *op, const KernelPlan &plan,
                                        const hw::TargetModel &target) {
  const FamilyRules &rules = rulesOf(plan.family);
  if (failed(checkFamily(op, plan.family)) || failed(rules.require(op, plan, target)))
    return failure();
  KernelPlan complete = plan.orElse(rules.propose(op, plan, target));
  if (failed(rules.check(op, complete, target)))
    return failure();
  return complete;
}

SmallVector<Operation *> fp4::kernelOperations(Operation *root,
                                               function_ref<bool(Operation *)> wanted) {
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (!familiesOf(op).empty() && (!wanted || wanted(op)))
      found.push_back(op);
  });
  return found;
}

LogicalResult fp4::checkComplete(Operation *op, const KernelPlan &plan,
                                 const hw::TargetModel &target) {
  StringRef field = plan.missingField();
  if (field.empty())
    return checkPlan(op, plan, target);
  return withNote(op->emitOpError("must have a complete plan before it is lowered, but '")
                      << field << "' is missing",
                  "run fp4-plan-kernels, which completes plans");
}

/// Why plans of `op`, which are of `family`, may not depend on its rows; empty where they may.
static std::string whyNoCases(Operation *op, KernelFamily family) {
  const FamilyRules &rules = rulesOf(family);
  return rules.whyNoCases ? rules.whyNoCases(op)
                          : ("its kernel is of family " + stringifyKernelFamily(family)).str();
}

LogicalResult fp4::requireRowCases(Operation *op, KernelFamily family) {
  SmallVector<CaseAttr> cases = rowCasesOf(op);
  if (cases.empty())
    return success();
  if (std::string reason = whyNoCases(op, family); !reason.empty())
    return withNote(op->emitOpError("must have one plan for all rows, because ")
                        << reason << ", but got " << op->getAttr(kRowCasesAttr),
                    Twine("remove the attribute ") + kRowCasesAttr);
  for (CaseAttr one : cases)
    if (KernelFamily other = one.getPlan().family; other != family)
      return withNote(op->emitOpError("must have cases of its kernel's family ")
                          << stringifyKernelFamily(family) << ", but got "
                          << stringifyKernelFamily(other),
                      "plans of a kernel differ by rows in all but the family");
  return success();
}

SmallVector<Attribute> fp4::proposeRowCases(Operation *op, const KernelPlan &last,
                                            const hw::TargetModel &target) {
  const FamilyRules &rules = rulesOf(last.family);
  bool mayDiffer = rules.proposeCases && whyNoCases(op, last.family).empty();
  return mayDiffer ? rules.proposeCases(op, last, target) : SmallVector<Attribute>();
}

FailureOr<KernelPlan> fp4::planOf(Operation *op, const hw::TargetModel &target) {
  auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
  if (!plan)
    return withNote(op->emitOpError("must have a plan before it is lowered"),
                    "run fp4-plan-kernels first");
  if (failed(requireRowCases(op, plan.getFamily())) ||
      failed(checkComplete(op, plan.getPlan(), target)))
    return failure();
  for (CaseAttr one : rowCasesOf(op))
    if (failed(checkComplete(op, one.getPlan(), target)))
      return failure();
  return plan.getPlan();
}
