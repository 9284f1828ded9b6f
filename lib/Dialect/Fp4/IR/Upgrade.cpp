//===- Upgrade.cpp - Former spellings of the fp4 dialect ------------------===//
//
// fp4.blockscaled_matmul of earlier releases becomes fp4.matmul on fp4.scaled. Bytecode of version
// 1, text, and programs that another compiler builds come here.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Upgrade.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fp4;

/// The terminator of the epilogue region; null where the region is not one block that yields one
/// value.
static YieldOp yieldOf(LegacyMatmulOp op) {
  Region &region = op.getEpilogueBody();
  if (!region.hasOneBlock() || region.front().empty())
    return {};
  auto yield = dyn_cast<YieldOp>(region.front().back());
  return yield && yield.getValues().size() == 1 ? yield : YieldOp();
}

static bool hasDerived(LegacyMatmulOp op) { return op.getQuantizeRecipe() || op.getWithAmax(); }

/// blockscaled_matmul (C1): what the new spelling has no words for. fp4.matmul checks the rest.
LogicalResult LegacyMatmulOp::verify() {
  if (getRhsFormat() && !getLhsScales())
    return withNote(emitOpError("expects no attribute 'rhs_format' beside a lhs without scales"),
                    "leave it out: 'format' is that of rhs");
  if (getRhs2Scales() && !getRhs2())
    return withNote(emitOpError("expects operands 'rhs2' and 'rhs2_scales' together"),
                    "pass both, or neither for a matmul of one rhs");
  if ((getQuantizeAmax() || getQuantizeOutputs()) && !getQuantizeRecipe())
    return withNote(emitOpError("expects 'quantize_amax' and 'quantize_outputs' only beside "
                                "'quantize_recipe'"),
                    "leave them out, or say the recipe that quantizes the result");
  if (getSplitRows() && (!getSplitK() || int64_t(*getSplitRows()) < 1))
    return withNote(emitOpError("attribute 'split_rows' must be positive, beside 'split_k'"),
                    "leave it out: 'split_k' then holds for all rows");
  if ((getGroups() && getGroups()->empty()) || (getStreamK() && getStreamK()->empty()))
    return withNote(emitOpError("attributes 'groups' and 'stream_k' must have numbers"),
                    "leave out the one that has none");
  if ((!getEpilogueBody().empty() || hasDerived(*this)) && !yieldOf(*this))
    return withNote(emitOpError("expects an epilogue region of one block that yields one value"),
                    "the region says what becomes of the sums, and in which type");
  return success();
}

namespace {

class Upgrader {
public:
  explicit Upgrader(LegacyMatmulOp old) : old(old), b(old) {}

  LogicalResult run() {
    FailureOr<WorkAttr> work = workOf();
    if (failed(work))
      return failure();
    Format format = old.getFormat(), ofRhs = old.getRhsFormat().value_or(format);
    Location loc = old.getLoc();
    Value lhs = bundle(b, loc, format, old.getLhs(), old.getLhsScales());
    Value rhs = bundle(b, loc, ofRhs, old.getRhs(), old.getRhsScales());
    Value rhs2 =
        old.getRhs2() ? bundle(b, loc, ofRhs, old.getRhs2(), old.getRhs2Scales()) : Value();
    SmallVector<Value> inputs(old.getEpilogueInputs());
    if (old.getQuantizeAmax())
      inputs.push_back(old.getQuantizeAmax());
    auto product =
        BlockScaledMatmulOp::create(b, loc, old.getResultTypes(), lhs, rhs, rhs2, old.getAlpha(),
                                    old.getAlpha2(), old.getOffsets(), inputs, *work, dispatchOf(),
                                    old.getArithmeticAttr(), old.getEpilogueAttr());
    product->setDiscardableAttrs(old->getDiscardableAttrDictionary());
    product.getEpilogueBody().takeBody(old.getEpilogueBody());
    if (hasDerived(old))
      yieldDerived(product);
    old->replaceAllUsesWith(product);
    old->erase();
    return success();
  }

private:
  FailureOr<WorkAttr> workOf() {
    auto asNumber = [](std::optional<uint64_t> value) {
      return value ? std::optional(int64_t(*value)) : std::nullopt;
    };
    std::optional<int64_t> splitK = splitsByRows() ? std::nullopt : asNumber(old.getSplitK());
    auto numbers = [](std::optional<ArrayRef<int64_t>> values) {
      return values.value_or(ArrayRef<int64_t>());
    };
    if (!splitK && !old.getStreamK() && !old.getGroups() && !old.getExpectedRows() &&
        !old.getUnspecifiedRows())
      return WorkAttr();
    auto emitError = [&] { return old.emitOpError(); };
    function_ref<InFlightDiagnostic()> report = emitError;
    auto work = WorkAttr::getChecked(report, old.getContext(), splitK, std::optional<SplitPolicy>(),
                                     numbers(old.getStreamK()), numbers(old.getGroups()),
                                     asNumber(old.getExpectedRows()), old.getUnspecifiedRows());
    return work ? FailureOr<WorkAttr>(work) : FailureOr<WorkAttr>(failure());
  }

  bool splitsByRows() { return old.getSplitK() && old.getSplitRows(); }

  /// Makes cases of a split-K factor that holds up to some rows.
  ArrayAttr dispatchOf() {
    if (!splitsByRows())
      return {};
    KernelPlan few, many;
    auto rows = int64_t(*old.getSplitRows());
    few.guard.m.most = rows;
    many.guard.m.least = rows + 1;
    auto caseOf = [&](const KernelPlan &plan, std::optional<int64_t> splits) -> Attribute {
      return CaseAttr::get(old.getContext(), plan, splits);
    };
    return b.getArrayAttr({caseOf(few, int64_t(*old.getSplitK())), caseOf(many, std::nullopt)});
  }

  /// Makes quantize_recipe and with_amax operations of the region, whose results it yields.
  void yieldDerived(BlockScaledMatmulOp product) {
    Block &body = product.getEpilogueBody().front();
    auto yield = cast<YieldOp>(body.getTerminator());
    Value element = yield.getValues().front();
    Location loc = product.getLoc();
    b.setInsertionPoint(yield);
    SmallVector<Value> derived;
    if (old.getQuantizeRecipe()) {
      Value amax;
      if (old.getQuantizeAmax())
        amax = body.addArgument(getElementTypeOrSelf(old.getQuantizeAmax()), loc);
      auto quantize = EpilogueQuantizeOp::create(b, loc, element, amax, *old.getQuantizeRecipe(),
                                                 old.getQuantizeOutputsAttr());
      llvm::append_range(derived, quantize.getResults());
    }
    if (old.getWithAmax())
      derived.push_back(EpilogueAmaxOp::create(b, loc, b.getF32Type(), element));
    if (product->getNumResults() > derived.size())
      derived.insert(derived.begin(), element);
    YieldOp::create(b, yield.getLoc(), derived);
    yield->erase();
  }

  LegacyMatmulOp old;
  OpBuilder b;
};

} // namespace

static SmallVector<LegacyMatmulOp> legacyOps(Operation *root) {
  SmallVector<LegacyMatmulOp> found;
  root->walk([&](LegacyMatmulOp op) { found.push_back(op); });
  return found;
}

bool fp4::hasLegacyOps(Operation *root) {
  return root->walk([](LegacyMatmulOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

LogicalResult fp4::upgradeLegacyOps(Operation *root) {
  for (LegacyMatmulOp op : legacyOps(root))
    if (failed(op.verify()) || failed(Upgrader(op).run()))
      return failure();
  return success();
}

void fp4::upgradeAttention(Operation *root) {
  SmallVector<Operation *> found;
  root->walk([&](AttentionOp op) {
    if (op->getNumRegions() == 0)
      found.push_back(op);
  });
  for (Operation *old : found) {
    OpBuilder b(old);
    OperationState state(old->getLoc(), old->getName(), old->getOperands(), old->getResultTypes());
    auto &properties = state.getOrAddProperties<AttentionOp::Properties>();
    properties = *old->getPropertiesStorage().as<AttentionOp::Properties *>();
    llvm::copy(ArrayRef<int32_t>{1, int32_t(old->getNumResults()) - 1, 0},
               properties.resultSegmentSizes.begin());
    state.addAttributes(llvm::to_vector(old->getDiscardableAttrs()));
    state.addRegion();
    old->replaceAllUsesWith(b.create(state));
    old->erase();
  }
}

LogicalResult fp4::upgradeLegacyText(Operation *root) {
  SmallVector<LegacyMatmulOp> found = legacyOps(root);
  if (found.empty())
    return success();
  InFlightDiagnostic diag = emitWarning(
      found.front().getLoc(),
      "fp4.blockscaled_matmul is a former spelling, which the next release does not read");
  diag.attachNote() << "fp4-opt --fp4-upgrade writes the program with fp4.matmul and fp4.scaled";
  diag.report();
  return upgradeLegacyOps(root);
}
