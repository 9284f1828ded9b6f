//===- PlanKernels.cpp - Decide which kernel each operation becomes -------===//
//
// 1. Split operations that are two kernels into two operations.
// 2. Complete the plan of each operation: from the program, then from the option `plans`, then from
//    the proposal of its family (GemmPlans.cpp, TransformPlans.cpp, StreamPlans.cpp).
// 3. Warn of plans of the option that are for no kernel, or lose to a plan of the program.
//
//===----------------------------------------------------------------------===//

#include "fp4/Plans/Passes.h"

#include "DispatchPlans.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

namespace fp4 {
#define GEN_PASS_DEF_PLANKERNELS
#include "fp4/Plans/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

/// Splits a quantizer of both orientations whose columnwise transform runs on the tensor core: it
/// is two kernels on targets with tcgen05. A quantizer whose random numbers depend on the launch
/// stays one operation, which has no kernel.
static void splitOrientations(QuantizeOp op) {
  auto transform = op.getColumnwiseHadamard();
  bool onTensorCore = transform && transform->getArithmetic() == HadamardArithmetic::TensorCore;
  if (op.getOutputs() != Outputs::Both || !onTensorCore || op.getPhilox() != Philox::Element)
    return;
  OpBuilder b(op);
  auto rowwise = QuantizeOp::create(
      b, op.getLoc(), TypeRange{op.getData().getType(), op.getScales().getType()}, op.getInput(),
      op.getAmax(), Value(), op.getRng(), /*offsets=*/Value(), op.getFormat(), op.getRecipe(),
      op.getRounding(), Outputs::Rowwise, op.getBlockAttr(), op.getHadamardAttr(), HadamardAttr(),
      op.getPhilox(), op.getGroupsAttr(), op.getPerRow(), /*unspecified_rows=*/false);
  auto columnwise = QuantizeOp::create(
      b, op.getLoc(), op.getTransposed().getTypes(), op.getInput(),
      op.getColumnwiseAmax() ? op.getColumnwiseAmax() : op.getAmax(), Value(), op.getRng(),
      /*offsets=*/Value(), op.getFormat(), op.getRecipe(), op.getRounding(), Outputs::Columnwise,
      op.getBlockAttr(), HadamardAttr(), op.getColumnwiseHadamardAttr(), op.getPhilox(),
      op.getGroupsAttr(), op.getPerRow(), /*unspecified_rows=*/false);
  if (auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr)) {
    bool isTransform = plan.getFamily() == KernelFamily::TileTransform;
    (isTransform ? columnwise : rowwise)->setAttr(Fp4Dialect::kPlanAttr, plan);
  }
  SmallVector<Value> results(rowwise.getResults());
  llvm::append_range(results, columnwise.getResults());
  op.replaceAllUsesWith(results);
  op.erase();
}

namespace {
struct PlanKernels : fp4::impl::PlanKernelsBase<PlanKernels> {
  using PlanKernelsBase::PlanKernelsBase;

  void runOnOperation() override {
    FailureOr<std::vector<Given>> given = parsePlans();
    if (failed(given))
      return signalPassFailure();
    SmallVector<Operation *> work = kernelOperations(getOperation());
    if (failed(requireKernelsOfCases(getOperation())))
      return signalPassFailure();
    if (work.empty())
      return;
    FailureOr<hw::TargetModel> target = targetOf(work.front());
    if (failed(target))
      return signalPassFailure();
    if (route::hasCore(*target, route::Core::Tcgen05)) {
      getOperation().walk(splitOrientations);
      work = kernelOperations(getOperation());
    }
    for (Operation *op : work)
      if (failed(requireFactors(dyn_cast<BlockScaledMatmulOp>(op))) ||
          failed(plan(op, *given, *target)))
        signalPassFailure();
    numPlans += work.size();
    warnOfUnused(*given);
  }

private:
  /// A plan of the option 'plans'.
  struct Given {
    KernelPlan plan;
    std::string text;
    bool isUsed = false; ///< a kernel is of its family, and of its rows
  };

  /// Checks that the split-K factors of a matmul are numbers.
  static LogicalResult requireFactors(BlockScaledMatmulOp product) {
    if (!product || !product.getSplitPolicy())
      return success();
    return withNote(product.emitOpError("must have factors of 'split_k' before it is planned, but "
                                        "got ")
                        << stringifySplitPolicy(*product.getSplitPolicy()),
                    "run fp4-choose-splits, which replaces the policy");
  }

  /// Checks that operations with plans for few rows have a kernel, and are no prologue.
  static LogicalResult requireKernelsOfCases(Operation *root) {
    WalkResult all = root->walk([](Operation *op) -> WalkResult {
      if (rowCasesOf(op).empty() || !familiesOf(op).empty())
        return WalkResult::advance();
      return withNote(op->emitOpError("must have a kernel of its own with attribute ")
                          << kRowCasesAttr << ", but another kernel computes it, or none",
                      Twine("give ") + kRowCasesAttr +
                          " to the last operation of the kernel, which has one plan for all that "
                          "it computes");
    });
    return failure(all.wasInterrupted());
  }

  /// Returns true when `given` says something of the plans of `op`, which are of `family`. A plan
  /// for some rows does where the plans of the program are by rows, too.
  static bool isFor(Operation *op, KernelFamily family, const KernelPlan &given) {
    if (given.guard.isAll())
      return given.family == family;
    auto product = dyn_cast<BlockScaledMatmulOp>(op);
    if (!product || family != KernelFamily::TileGemm || !mayHaveRowPlans(product))
      return false;
    std::vector<KernelPlan> plans = plansOn(product);
    plans.push_back(given);
    return llvm::all_of(
        plans, [](const KernelPlan &plan) { return plan.guard.isOfRows() && !plan.waveCost[0]; });
  }

  /// `partial`, with what plans of the options say of fields that it leaves open.
  static KernelPlan withGiven(KernelPlan partial, ArrayRef<KernelPlan> taken) {
    for (const KernelPlan &other : taken)
      partial = partial.orElse(other);
    return partial;
  }

  /// Completes the plans of `op` for few rows by those of the options, and by proposals.
  static LogicalResult completeRowCases(Operation *op, ArrayRef<KernelPlan> taken,
                                        const hw::TargetModel &target) {
    SmallVector<Attribute> cases;
    for (CaseAttr one : rowCasesOf(op)) {
      FailureOr<KernelPlan> complete = completePlan(op, withGiven(one.getPlan(), taken), target);
      if (failed(complete))
        return failure();
      cases.push_back(CaseAttr::get(op->getContext(), *complete, std::nullopt));
    }
    op->setAttr(kRowCasesAttr, ArrayAttr::get(op->getContext(), cases));
    return success();
  }

  /// Plans the numbers of rows of a kernel: the cases of the program, or proposals where nobody
  /// gives a plan. `last` is for the most rows.
  static LogicalResult planRows(Operation *op, const KernelPlan &last, bool isOwn,
                                ArrayRef<KernelPlan> taken, const hw::TargetModel &target) {
    if (!rowCasesOf(op).empty())
      return completeRowCases(op, taken, target);
    if (isOwn || !taken.empty())
      return success();
    if (SmallVector<Attribute> cases = proposeRowCases(op, last, target); !cases.empty())
      op->setAttr(kRowCasesAttr, ArrayAttr::get(op->getContext(), cases));
    return success();
  }

  static LogicalResult plan(Operation *op, std::vector<Given> &given,
                            const hw::TargetModel &target) {
    KernelPlan partial;
    partial.family = chooseFamily(op, target);
    auto own = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
    if (own)
      partial = own.getPlan();
    if (failed(requireRowCases(op, partial.family)))
      return failure();
    auto product = dyn_cast<BlockScaledMatmulOp>(op);
    std::vector<KernelPlan> taken;
    for (Given &other : given) {
      if (!isFor(op, partial.family, other.plan))
        continue;
      other.isUsed = true;
      warnOfLost(op, other);
      taken.push_back(other.plan);
    }
    if (product && partial.family == KernelFamily::TileGemm) {
      if (failed(planCases(product, taken, target)))
        return failure();
    } else {
      FailureOr<KernelPlan> complete = completePlan(op, withGiven(partial, taken), target);
      if (failed(complete))
        return failure();
      op->setAttr(Fp4Dialect::kPlanAttr, PlanAttr::get(op->getContext(), *complete));
      if (failed(planRows(op, *complete, bool(own), taken, target)))
        return failure();
    }
    Attribute decided = op->getAttr(Fp4Dialect::kPlanAttr);
    remark::passed(op->getLoc(), remark::RemarkOpts::name("plan").category("fp4-plan"))
        << spell(decided ? decided : product.getDispatchAttr());
    return success();
  }

  /// Warns where a plan of the program keeps a plan of the option from having an effect.
  static void warnOfLost(Operation *op, const Given &given) {
    auto product = dyn_cast<BlockScaledMatmulOp>(op);
    std::vector<KernelPlan> own = product ? plansOn(product) : std::vector<KernelPlan>();
    if (auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr); plan && !product)
      own = {plan.getPlan()};
    StringRef attribute =
        product && product.getDispatch() ? "dispatch" : Fp4Dialect::kPlanAttr.data();
    for (const KernelPlan &plan : own) {
      SmallVector<StringRef> fields = plan.fieldsUnlike(given.plan);
      const SizeRange &of = given.plan.guard.m, &rows = plan.guard.m;
      if (fields.empty() || !(of.has(rows.least) || rows.has(of.least)))
        continue;
      std::string names = llvm::join(fields, ", ");
      InFlightDiagnostic diag = emitWarning(op->getLoc())
                                << attribute << " of the program wins over the plan '" << given.text
                                << "' of the options in: " << names;
      diag.attachNote() << "leave " << names << " out of " << attribute
                        << ", and the options decide";
      return;
    }
  }

  void warnOfUnused(ArrayRef<Given> given) {
    for (const Given &one : given) {
      if (one.isUsed)
        continue;
      InFlightDiagnostic diag = emitWarning(getOperation().getLoc())
                                << "the plan '" << one.text << "' is for no kernel of this program";
      if (!one.plan.guard.isAll())
        diag.attachNote() << "plans with a guard of m are for GEMMs whose rows are dynamic and of "
                             "no groups: leave the guard out";
      else
        diag.attachNote() << "no kernel is of its family; --emit=mlir --compile-to=planned shows "
                             "the plans of all";
    }
  }

  FailureOr<std::vector<Given>> parsePlans() {
    std::vector<Given> parsed;
    SmallVector<StringRef> texts;
    StringRef(plans).split(texts, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef text : texts) {
      std::optional<KernelPlan> plan = parsePlan(text.trim());
      if (!plan)
        return failure();
      parsed.push_back({*plan, text.trim().str()});
    }
    return parsed;
  }

  /// The plan of a case that an option may have; none, and what is wrong, of others.
  static std::optional<KernelPlan> planOfOption(CaseAttr some, std::string &message,
                                                std::string &remedy) {
    if (some.getSplitK()) {
      message = "split_k is no field of a plan";
      remedy =
          "give the matmul work = #fp4.work<split_k = 2>, for example, or cases with split_k in "
          "'dispatch'";
      return std::nullopt;
    }
    if (some.getPlan().guard.isOfRows())
      return some.getPlan();
    message = "guards must be ranges of m";
    remedy = "give plans by n, k and k_unit in 'dispatch' of the matmul";
    return std::nullopt;
  }

  std::optional<KernelPlan> parsePlan(StringRef text) {
    std::string message, remedy = "--emit=mlir --compile-to=planned shows the plans of all kernels";
    std::optional<KernelPlan> plan;
    {
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
        if (!message.empty())
          return;
        message = diagnostic.str();
        for (Diagnostic &note : diagnostic.getNotes())
          remedy = note.str();
      });
      Attribute attribute = parseAttribute(spellPlan(text), &getContext());
      if (auto all = dyn_cast_or_null<PlanAttr>(attribute))
        plan = all.getPlan();
      else if (auto some = dyn_cast_or_null<CaseAttr>(attribute))
        plan = planOfOption(some, message, remedy);
    }
    if (!plan)
      (void)withNote(emitError(getOperation().getLoc())
                         << "option 'plans' must list plans, but got '" << text << "': " << message,
                     remedy);
    return plan;
  }
};
} // namespace
