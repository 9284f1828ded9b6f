//===- Fuse.cpp - Fewer passes over the tensors of a quantization ---------===//
//
// 0. Attention: contractions around a softmax are one operation (RecognizeAttention.cpp).
// 1. Transforms: an fp4.hadamard is absorbed by all of its uses or by none of them. One use that
//    needs the transformed tensor in memory makes the kernel necessary anyway, and reading its
//    result is then no dearer than transforming once more. The only gain in that case is one
//    pass for the amaxes of the tensor and of its transform.
// 2. Orientations: a rowwise and a columnwise quantizer of one tensor become one.
// 3. Layouts: scales that are only swizzled are written swizzled.
// 4. Epilogues: the kernel of a matmul computes the elementwise operations that follow it, or that
//    follow two matmuls of one lhs (FuseEpilogues.cpp).
// 5. Results: codes, scales and the amax of its elements are results of a matmul (FuseResults.cpp).
//    Steps 4 and 5 take the elements of an attention too (FuseAttention.cpp).
// 6. Rows: norms and other chains with reductions of rows become one kernel (FuseRows.cpp).
// 7. Prologues: kernels of quantizers and amaxes compute elementwise operations that they alone
// read
//    (FusePrologues.cpp).
//
// Each step is exact by the definition of the operations. Each candidate that is not merged is a
// missed remark with the reason.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/Transforms/Passes.h"

#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace fp4 {
#define GEN_PASS_DEF_FUSE
#include "fp4/Dialect/Fp4/Transforms/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

namespace {

/// Why a candidate does not fire; empty where it does.
using Reason = std::string;

std::string nameOf(Operation *op) { return ("'" + op->getName().getStringRef() + "'").str(); }

/// An operation with a plan is to be that kernel, so it does not go into another one. Other
/// operations may go into it.
bool hasPlan(Operation *op) { return op->hasAttr(Fp4Dialect::kPlanAttr); }

} // namespace

remark::RemarkOpts fp4::fusionNamed(StringRef name) {
  return remark::RemarkOpts::name(name).category("fp4-fuse");
}

bool fp4::missed(Operation *op, StringRef name, const std::string &reason) {
  remark::missed(op->getLoc(), fusionNamed(name)) << remark::reason("{0}", reason);
  return false;
}

bool fp4::passed(Operation *op, StringRef name, const std::string &what) {
  remark::passed(op->getLoc(), fusionNamed(name)) << what;
  return true;
}

std::string fp4::ownKernel(Operation *op) {
  return nameOf(op) + " has a plan for a kernel of its own";
}

namespace {

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

constexpr StringLiteral kHadamardAmax = "hadamard+amax";
constexpr StringLiteral kHadamardQuantize = "hadamard+quantize";

/// Returns true when a group ends within a run of elements along the rows that are transformed
/// together.
bool cutsTransform(HadamardOp transform, std::optional<ArrayRef<int64_t>> groups) {
  return groups && transform.getDimension() == 0 && llvm::any_of(*groups, [&](int64_t rows) {
           return rows % static_cast<int64_t>(transform.getSize()) != 0;
         });
}

constexpr StringLiteral kCut =
    "a group ends within a run of elements that are transformed together";

/// Why `use` cannot read the input of `transform` in place of its result.
Reason whyNotAbsorb(HadamardOp transform, Operation *use) {
  if (hasPlan(transform))
    return ownKernel(transform);
  if (isa<AmaxOp>(use) && hasPlan(use))
    return ownKernel(use);
  if (auto amax = dyn_cast<AmaxOp>(use); amax && amax.hasLines())
    return std::string(amax.getPerRow() ? "the amax is one per row" : "the amax is one per column");
  if (auto amax = dyn_cast<AmaxOp>(use); amax && amax.getOffsets())
    return "the amaxes are those of groups that only the device knows";
  if (auto amax = dyn_cast<AmaxOp>(use))
    return cutsTransform(transform, amax.getGroups()) ? kCut.str() : Reason();
  auto quantize = dyn_cast<QuantizeOp>(use);
  if (!quantize)
    return nameOf(use) + " reads the transformed tensor from memory";
  if (quantize.hasF32Scales())
    return "quantizers of format fp8_block128 do not transform their input";
  if (quantize.getOutputs() == Outputs::Both)
    return "the quantizer writes both orientations, and the transform runs along the blocks of one";
  if (quantize.hasSquareBlocks())
    return "blocks of 16 x 16 have no transform: their outputs are each other's transposed";
  int64_t along = quantize.hasRowwise() ? 1 : 0;
  if (static_cast<int64_t>(transform.getDimension()) != along)
    return "the transform runs along dimension " + std::to_string(1 - along) +
           ", but the blocks run along dimension " + std::to_string(along);
  if (cutsTransform(transform, quantize.getGroups()))
    return kCut.str();
  if (quantize.getHadamard() || quantize.getColumnwiseHadamard())
    return "the quantizer transforms its input already";
  return {};
}

class TransformFusion {
public:
  /// Without `intoQuantizers`, transforms that are quantized stay.
  TransformFusion(HadamardOp transform, bool intoQuantizers, RewriterBase &rewriter)
      : transform(transform), rewriter(rewriter) {
    for (Operation *use : transform.getResult().getUsers())
      isNeeded |= isa<QuantizeOp>(use) && !intoQuantizers;
  }

  void run() {
    if (transform.getResult().use_empty())
      return;
    for (Operation *use : transform.getResult().getUsers())
      if (Reason reason = whyNotAbsorb(transform, use); !reason.empty()) {
        missed(isa<QuantizeOp>(use) ? use : transform, kHadamardQuantize, reason);
        isNeeded = true;
      }
    for (Operation *use : llvm::to_vector(transform.getResult().getUsers())) {
      if (auto amax = dyn_cast<AmaxOp>(use))
        absorb(amax);
      else if (!isNeeded)
        absorb(cast<QuantizeOp>(use));
    }
    if (!isNeeded)
      rewriter.eraseOp(transform);
  }

  unsigned amaxes = 0, quantizers = 0;

private:
  /// The amax of the input that can be had in the same pass.
  AmaxOp partnerOf(AmaxOp amax) {
    for (Operation *use : transform.getInput().getUsers()) {
      auto other = dyn_cast<AmaxOp>(use);
      if (!other || other->getBlock() != transform->getBlock())
        continue;
      if (other.getGroupsAttr() != amax.getGroupsAttr() || other.getOffsets() ||
          other.hasLines() || hasPlan(other))
        continue;
      if (other.getNan() == amax.getNan())
        return other;
      missed(amax, kHadamardAmax,
             "the amax of the transform has nan " + stringifyNanPolicy(amax.getNan()).str() +
                 ", that of its input nan " + stringifyNanPolicy(other.getNan()).str());
    }
    return {};
  }

  void absorb(AmaxOp amax) {
    if (amax.hasLines() || amax.getOffsets() || hasPlan(amax) ||
        cutsTransform(transform, amax.getGroups()))
      return; // the reason has been reported
    AmaxOp partner = partnerOf(amax);
    if (isNeeded && !partner) {
      missed(amax, kHadamardAmax,
             "the transform stays, and no amax of its input could be had in the same pass");
      return;
    }
    bool isFirst = partner && partner->isBeforeInBlock(transform);
    rewriter.setInsertionPoint(isFirst ? partner.getOperation() : transform.getOperation());
    auto both = HadamardAmaxOp::create(
        rewriter, amax.getLoc(), amax.getType(), amax.getType(), transform.getInput(),
        transform.getSize(), transform.getDimension(), transform.getSignMask(),
        transform.getArithmetic(), amax.getNan(), amax.getGroupsAttr());
    rewriter.replaceOp(amax, both.getAfter());
    if (partner)
      rewriter.replaceOp(partner, both.getBefore());
    passed(both, kHadamardAmax, "one pass for the amax before and after the transform");
    ++amaxes;
  }

  void absorb(QuantizeOp quantize) {
    rewriter.modifyOpInPlace(quantize, [&] {
      quantize.getInputMutable().assign(transform.getInput());
      if (quantize.hasRowwise())
        quantize.setHadamardAttr(transform.getTransform());
      else
        quantize.setColumnwiseHadamardAttr(transform.getTransform());
    });
    passed(quantize, kHadamardQuantize, "the quantizer transforms its input");
    ++quantizers;
  }

  HadamardOp transform;
  RewriterBase &rewriter;
  bool isNeeded = false; ///< something reads the transformed tensor
};

//===----------------------------------------------------------------------===//
// Orientations
//===----------------------------------------------------------------------===//

constexpr StringLiteral kBothOrientations = "rowwise+columnwise";

/// Why the attributes and operands of two quantizers of one tensor do not go together.
Reason whyNotPair(QuantizeOp rowwise, QuantizeOp columnwise) {
  for (QuantizeOp op : {rowwise, columnwise})
    if (hasPlan(op))
      return ownKernel(op);
  if (rowwise->getBlock() != columnwise->getBlock())
    return "the rowwise and the columnwise quantizer are in different blocks";
  auto differ = [](StringRef what) {
    return ("the rowwise and the columnwise quantizer differ in their " + what).str();
  };
  if (rowwise.getFormat() != columnwise.getFormat())
    return differ("format");
  if (rowwise.getRecipe() != columnwise.getRecipe())
    return differ("recipe");
  if (rowwise.hasSquareBlocks() != columnwise.hasSquareBlocks())
    return differ("block");
  if (rowwise.getPerRow() != columnwise.getPerRow())
    return differ("amax: one has an amax for each row");
  if (rowwise.getGroupsAttr() != columnwise.getGroupsAttr() || rowwise.getOffsets())
    return differ("groups");
  if (rowwise.hasSquareBlocks() && rowwise.getAmax() != columnwise.getAmax())
    return differ("amax, and blocks of 16 x 16 have one");
  if (rowwise.getRounding() != columnwise.getRounding())
    return differ("rounding");
  if (rowwise.getRng() != columnwise.getRng())
    return differ("random numbers");
  if (rowwise.getPhilox() != columnwise.getPhilox())
    return differ("mapping of random numbers");
  auto transform = columnwise.getColumnwiseHadamard();
  if (transform && transform->getArithmetic() == HadamardArithmetic::TensorCore)
    return "the columnwise transform runs on the tensor core, in a kernel of its own";
  if (rowwise.getPhilox() == Philox::TransformerEngine)
    return "TransformerEngine's mapping draws other numbers for a columnwise output that is "
           "written with the rowwise one";
  return {};
}

/// Merges two quantizers at the place of the earlier one.
Reason mergePair(QuantizeOp rowwise, QuantizeOp columnwise, RewriterBase &rewriter) {
  QuantizeOp first = rowwise, last = columnwise;
  if (last->isBeforeInBlock(first))
    std::swap(first, last);
  if (failed(moveOperationDependencies(rewriter, last, first)))
    return "an operand of one quantizer is computed from the other, or cannot move before it";
  rewriter.setInsertionPoint(first);
  bool isShared = columnwise.getAmax() == rowwise.getAmax() && !rowwise.getPerRow();
  Value columnwiseAmax = isShared ? Value() : Value(columnwise.getAmax());
  auto both = QuantizeOp::create(
      rewriter, rewriter.getFusedLoc({rowwise.getLoc(), columnwise.getLoc()}),
      rowwise.getData().getType(), rowwise.getScales().getType(), columnwise.getResultTypes(),
      rowwise.getInput(), rowwise.getAmax(), columnwiseAmax, rowwise.getRng(),
      /*offsets=*/Value(), rowwise.getFormat(), rowwise.getRecipe(), rowwise.getRounding(), Outputs::Both, rowwise.getBlockAttr(),
      rowwise.getHadamardAttr(), columnwise.getColumnwiseHadamardAttr(), rowwise.getPhilox(),
      rowwise.getGroupsAttr(), rowwise.getPerRow(), /*unspecified_rows=*/false);
  rewriter.replaceOp(rowwise, {both.getData(), both.getScales()});
  rewriter.replaceOp(columnwise, both.getTransposed());
  passed(both, kBothOrientations, "one pass for both orientations");
  return {};
}

/// Finds the columnwise quantizer that `rowwise` can be merged with, and merges them.
bool fusePair(QuantizeOp rowwise, RewriterBase &rewriter) {
  Reason reason;
  for (Operation *use : rowwise.getInput().getUsers()) {
    auto columnwise = dyn_cast<QuantizeOp>(use);
    if (!columnwise || columnwise.getOutputs() != Outputs::Columnwise)
      continue;
    Reason found = whyNotPair(rowwise, columnwise);
    if (found.empty())
      found = mergePair(rowwise, columnwise, rewriter);
    if (found.empty())
      return true;
    reason = found;
  }
  if (!reason.empty())
    missed(rowwise, kBothOrientations, reason);
  return false;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

constexpr StringLiteral kTiledScales = "quantize+swizzle_scales";

/// Returns true when `result` of `quantize` is only swizzled; its quantizer then swizzles it.
bool fuseLayout(QuantizeOp quantize, OpResult result, RewriterBase &rewriter) {
  SmallVector<SwizzleScalesOp> swizzles;
  Operation *other = nullptr;
  for (Operation *use : result.getUsers())
    if (auto swizzle = dyn_cast<SwizzleScalesOp>(use); swizzle && !hasPlan(swizzle))
      swizzles.push_back(swizzle);
    else
      other = use;
  if (swizzles.empty())
    return false;
  bool areOfOthers = quantize.getGroups() || llvm::any_of(swizzles, [&](SwizzleScalesOp swizzle) {
                       return swizzle.getOffsets() != quantize.getOffsets();
                     });
  if (other || areOfOthers) {
    missed(swizzles.front(), kTiledScales,
           other ? nameOf(other) + " reads the scales row-major"
                 : "the quantizer would write the scales of each group into tiles of their own");
    return false;
  }
  rewriter.modifyOpInPlace(quantize, [&] { result.setType(swizzles.front().getType()); });
  for (SwizzleScalesOp swizzle : swizzles)
    rewriter.replaceOp(swizzle, result);
  passed(quantize, kTiledScales, "the quantizer writes its scales swizzled");
  return true;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

constexpr StringLiteral kFusions[] = {"attention", "amax",    "transform", "orientations", "layout",
                                      "epilogue",  "results", "rows",      "prologue"};

struct Fuse : fp4::impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;

  LogicalResult initialize(MLIRContext *context) override {
    for (StringRef name : fusions)
      if (!llvm::is_contained(kFusions, name))
        return withNote(emitError(UnknownLoc::get(context))
                            << "option 'fusions' of fp4-fuse must be of "
                            << llvm::join(ArrayRef(kFusions), ", ") << ", but got '" << name << "'",
                        "leave the option out for all of them");
    return success();
  }

  bool wants(StringRef fusion) {
    return fusions.empty() || llvm::is_contained(fusions, fusion.str());
  }

  template <typename OpT> SmallVector<OpT> collect() {
    SmallVector<OpT> operations;
    getOperation()->walk([&](OpT op) { operations.push_back(op); });
    return operations;
  }

  /// Last operations first: an operation goes into the kernel of its readers.
  void fuseAllRows(RewriterBase &rewriter) {
    SmallVector<Operation *> roots;
    getOperation()->walk([&](Operation *op) {
      if (isa<QuantizeOp, AmaxOp, TopKOp, linalg::GenericOp>(op))
        roots.push_back(op);
      else
        reportNamedReduction(op);
    });
    for (Operation *root : llvm::reverse(roots))
      numRowKernels += fuseRows(root, rewriter);
  }

  /// Erases operations of linalg that an attention stands for.
  void recognizeAll(RewriterBase &rewriter) {
    bool any = false;
    SmallVector<linalg::LinalgOp> contractions; // roundings behind them are erased
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (linalg::isaContractionOpInterface(op))
        contractions.push_back(op);
    });
    for (linalg::LinalgOp op : contractions)
      any |= recognizeAttention(op, rewriter);
    if (any)
      (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    if (wants("attention"))
      recognizeAll(rewriter);
    if (wants("amax"))
      for (HadamardOp transform : collect<HadamardOp>()) {
        TransformFusion fusion(transform, wants("transform"), rewriter);
        fusion.run();
        numHadamardAmaxes += fusion.amaxes;
        numTransforms += fusion.quantizers;
      }
    auto isNotRowwise = [](QuantizeOp op) { return op.getOutputs() != Outputs::Rowwise; };
    SmallVector<QuantizeOp> rowwise = collect<QuantizeOp>();
    llvm::erase_if(rowwise, isNotRowwise); // a merge erases such operations too
    for (QuantizeOp quantize : rowwise)
      if (wants("orientations"))
        numPairs += fusePair(quantize, rewriter);
    for (QuantizeOp quantize : collect<QuantizeOp>())
      for (OpResult result : quantize->getResults())
        if (wants("layout") && result.getResultNumber() % 2 == 1)
          numTiledScales += fuseLayout(quantize, result, rewriter);
    for (linalg::GenericOp op : collect<linalg::GenericOp>())
      if (wants("epilogue"))
        numEpilogues += fuseEpilogue(op, rewriter) || fuseAttention(op, rewriter);
    if (wants("results")) {
      for (QuantizeOp op : collect<QuantizeOp>())
        numResults += fuseResult(op, rewriter) || fuseAttention(op, rewriter);
      for (AmaxOp op : collect<AmaxOp>())
        numResults += fuseResult(op, rewriter);
    }
    if (wants("rows"))
      fuseAllRows(rewriter);
    for (linalg::GenericOp op : collect<linalg::GenericOp>())
      if (wants("prologue"))
        numPrologues += fusePrologue(op, rewriter);
  }
};

} // namespace
