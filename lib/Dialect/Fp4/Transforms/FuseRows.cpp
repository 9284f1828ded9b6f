//===- FuseRows.cpp - Norms and other chains along rows become one kernel -===//
//
// The last operation of a chain is the root of a kernel in which a team of threads has a row. The
// root is a quantizer, an amax, an elementwise operation, or a reduction of rows. Operations that
// only the chain reads become its prologues, and an operation that is read behind the root, too,
// becomes a stored one; one that reads the chain and is read behind the root alone is beside it.
// The root behind an fp4.top_k has k columns, and its kernel computes the fp4.top_k, whose chain
// has all columns. The amax of a quantizer's whole input has a kernel before it, and both compute
// the prologues: a second pass over the operands, and no result in memory. A chain that neither
// reduces rows nor reads other columns than its own, or integers of rows, stays as it is: other
// kernels serve it.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kRowsFusion = "rows";

/// The prologues of one root.
class Chain {
public:
  explicit Chain(Operation *root) : root(root), kernel(kernelOf(root)) {
    if (auto quantize = dyn_cast<QuantizeOp>(root)) {
      ownAmax = ownAmaxOfRows(quantize);
      amaxBefore = amaxOfTensor(quantize);
    }
  }

  /// Adds all operations that the kernel of the root can compute, readers before producers.
  void grow() {
    SmallVector<linalg::GenericOp> candidates;
    addProducers(root, candidates);
    while (!candidates.empty()) {
      linalg::GenericOp next = takeLast(candidates);
      std::string reason = whyNot(next);
      if (!reason.empty()) {
        rejected.emplace_back(next, reason);
        continue;
      }
      members.insert(next);
      for (Operation *user : next->getUsers())
        if (!isMember(user) && mayBeBeside(user))
          beside.insert(user);
      needsRow |= isRowReduction(next) || readsByRows(next);
      addProducers(next, candidates);
    }
    findTopK();
  }

  /// Returns true when only a kernel by rows computes the chain.
  bool needsRows() {
    return needsRow || ownAmax || topK || isa<TopKOp>(root) || (size() && readsByRows(root));
  }
  /// Returns true when two kernels compute the members.
  bool isComputedTwice() { return amaxBefore != nullptr; }

  /// Returns the number of stored members.
  unsigned write(RewriterBase &rewriter) {
    auto mark = [&](Operation *op, Attribute as) {
      rewriter.modifyOpInPlace(op, [&] { op->setAttr(kPrologueAttr, as); });
    };
    unsigned stored = beside.size() + (ownAmax && !ownAmax->hasOneUse());
    if (ownAmax)
      mark(ownAmax, rewriter.getUnitAttr());
    if (topK)
      mark(topK, rewriter.getUnitAttr());
    for (Operation *op : beside)
      mark(op, rewriter.getStringAttr(kBesidePrologue));
    for (Operation *op : members) {
      bool isShared = isReadElsewhere(op);
      stored += isShared;
      mark(op, isShared ? Attribute(rewriter.getStringAttr(kStoredPrologue))
                        : Attribute(rewriter.getUnitAttr()));
    }
    return stored;
  }

  /// Operations that the kernel of the root computes.
  unsigned size() { return members.size() + beside.size() + (ownAmax ? 1 : 0) + (topK ? 1 : 0); }

  /// Reports each operation that needs rows, or reads one that does, and is not in the kernel.
  void reportRejected() {
    for (auto &[op, reason] : rejected)
      if (isa<TopKOp>(op) || isa<tensor::TensorDialect>(op->getDialect()) || needsRowsItself(op))
        missed(op, kRowsFusion, reason);
    auto amax = dyn_cast<AmaxOp>(root);
    auto isInput = [&](const auto &one) { return one.first == amax.getInput().getDefiningOp(); };
    if (amax && !amax.hasLines() && llvm::any_of(rejected, isInput))
      missed(root, kRowsFusion,
             "the amax of the tensor takes a pass of its own over what another kernel stores; a "
             "quantizer with an amax of each row needs none");
  }

private:
  /// Returns true where only kernels by rows read the operands.
  static bool readsByRows(Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic &&
           (hasIndexExpressions(cast<linalg::LinalgOp>(op)) || readsIntegersOfRows(generic));
  }

  static bool readsReduction(Operation *op) {
    return llvm::any_of(op->getOperands(), [](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return producer && isRowReduction(producer);
    });
  }

  static bool needsRowsItself(Operation *op) {
    return isRowReduction(op) || readsByRows(op) || readsReduction(op);
  }

  bool isMember(Operation *op) {
    return op == root || op == ownAmax.getOperation() || op == amaxBefore.getOperation() ||
           members.contains(op) || beside.contains(op);
  }

  /// Returns true for a reader of a member that the kernel of the root can compute and store,
  /// though the chain does not read it: the residual of a norm of what is not rounded.
  bool mayBeBeside(Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    Operation *first = amaxBefore ? amaxBefore.getOperation() : root; // its kernel has the operands
    return generic && !op->use_empty() && op->getBlock() == root->getBlock() &&
           op->isBeforeInBlock(first) && !op->hasAttr(Fp4Dialect::kPlanAttr) &&
           !op->hasAttr(kPrologueAttr) && whyNotPrologue(generic).empty() &&
           hasRowsOf(generic, root) &&
           llvm::all_of(op->getUsers(), [&](Operation *user) { return isBehind(user, kernel); });
  }

  bool isReadElsewhere(Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return !isMember(user); });
  }

  void addProducers(Operation *op, SmallVector<linalg::GenericOp> &candidates) {
    for (Value operand : op->getOperands()) {
      auto producer = operand.getDefiningOp<linalg::GenericOp>();
      noteView(op, operand.getDefiningOp());
      if (producer && producer->getBlock() != root->getBlock() && needsRowsItself(producer))
        rejected.emplace_back(producer,
                              "it is in another block than the kernel that would compute it");
      if (producer && producer->getBlock() == root->getBlock() && !isMember(producer) &&
          !producer->hasAttr(kPrologueAttr) && !llvm::is_contained(candidates, producer))
        candidates.push_back(producer);
    }
  }

  /// Notes an operation that gives a member other rows of what a chain computes, as views do: the
  /// chain ends there.
  void noteView(Operation *reader, Operation *producer) {
    auto isView = [](Operation *op) {
      return op && isa<tensor::TensorDialect>(op->getDialect()) && op->getNumOperands() > 0;
    };
    Operation *source = producer;
    while (isView(source))
      source = source->getOperand(0).getDefiningOp();
    if (source == producer || !isa_and_present<linalg::GenericOp>(source) ||
        !needsRowsItself(source))
      return;
    std::string view = producer->getName().getStringRef().str();
    rejected.emplace_back(producer, "'" + view + "' is between the chain and '" +
                                        reader->getName().getStringRef().str() +
                                        "', which reads its result from memory");
  }

  /// The last candidate of the program: its readers have been decided.
  static linalg::GenericOp takeLast(SmallVector<linalg::GenericOp> &candidates) {
    auto *last = llvm::max_element(
        candidates, [](linalg::GenericOp x, linalg::GenericOp y) { return x->isBeforeInBlock(y); });
    linalg::GenericOp op = *last;
    candidates.erase(last);
    return op;
  }

  /// Why the kernel of the root does not compute `op`.
  std::string whyNot(linalg::GenericOp op) {
    if (op->hasAttr(Fp4Dialect::kPlanAttr))
      return ownKernel(op);
    if (std::string reason = whyNotPrologue(op); !reason.empty())
      return reason;
    for (OpOperand &use : op->getUses()) {
      Operation *user = use.getOwner();
      bool isComputed = isMember(user) || mayBeBeside(user);
      if (!isComputed && !isBehind(user, kernel))
        return ("'" + user->getName().getStringRef() + "' reads it before the kernel that would " +
                "compute it")
            .str();
      if (!isComputed)
        continue;
      if (std::string reason = whyNotComputed(use); !reason.empty())
        return reason;
    }
    return hasRowsOf(op, root)
               ? ""
               : "it has other rows and columns than the kernel that would compute it";
  }

  /// Finds the fp4.top_k that the chain begins with.
  void findTopK() {
    SmallVector<Operation *> computed = {root};
    llvm::append_range(computed, members);
    for (Operation *op : computed)
      for (Value operand : op->getOperands())
        if (auto found = operand.getDefiningOp<TopKOp>(); found && found != topK) {
          std::string reason = whyNot(found);
          if (reason.empty())
            topK = found;
          else
            rejected.emplace_back(found, reason);
        }
  }

  /// Why the kernel of the root does not compute `op`.
  std::string whyNot(TopKOp op) {
    if (topK)
      return "the kernel computes another one";
    if (!isa<linalg::GenericOp>(root))
      return ("'" + root->getName().getStringRef() + "' computes no 'fp4.top_k'").str();
    if (op->hasAttr(Fp4Dialect::kPlanAttr))
      return "it has a plan for a kernel of its own";
    if (op->getBlock() != root->getBlock() || op.getK() == 1)
      return "its values are no matrix in the block of the reader";
    for (OpOperand &use : op->getUses()) {
      auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
      bool isComputed = user && (user == root || members.contains(user));
      if (!isComputed && !isBehind(use.getOwner(), root))
        return "something reads it before the kernel that would compute it";
      if (!isComputed)
        continue;
      if (isIndexedByExpressions(user, &use))
        return "'linalg.generic' reads other rows or columns of it";
      if (std::string reason = whyNotIndexedByRows(use); !reason.empty())
        return reason;
    }
    return "";
  }

  /// Why a member does not compute its operand `use`.
  static std::string whyNotComputed(OpOperand &use) {
    if (isa<linalg::GenericOp>(use.getOwner()))
      return whyNotIndexedByRows(use);
    auto quantize = dyn_cast<QuantizeOp>(use.getOwner());
    if (!quantize)
      return "";
    return &use == &quantize.getInputMutable() ? "" : "a quantizer reads its amax from memory";
  }

  Operation *root, *kernel; ///< root of the chain, and the operation whose kernel computes it
  TopKOp topK;              ///< top-k that the kernel of the root computes too
  AmaxOp ownAmax;           ///< amax of the root's rows, which the root's kernel computes too
  AmaxOp amaxBefore; ///< amax of the root's input: its earlier kernel computes the members too
  llvm::SetVector<Operation *> members, beside;
  SmallVector<std::pair<Operation *, std::string>> rejected;
  bool needsRow = false; ///< true when a member needs a whole row
};

} // namespace

/// Why an operation is no root of a chain.
static std::string whyNotRoot(Operation *op) {
  auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
  if (plan && plan.getFamily() != KernelFamily::ReduceRows)
    return "the plan is of another family";
  auto amax = dyn_cast<AmaxOp>(op);
  return amax && quantizerOfRows(amax) ? "a quantizer has the amax to itself" : whyNotRowKernel(op);
}

/// Reports a reduction that no kernel by rows computes.
static void reportNoReduction(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0 || isRowReduction(op))
    return;
  missed(op, kRowsFusion, whyNotRowReduction(op));
}

void fp4::reportNamedReduction(Operation *op) {
  if (isa<linalg::SoftmaxOp>(op))
    missed(op, kRowsFusion, "kernels have a softmax of f32 along the last dimension");
  auto reduce = dyn_cast<linalg::ReduceOp>(op);
  std::string reason = reduce ? whyNotReductionOfRows(reduce) : "";
  if (!reason.empty())
    missed(op, kRowsFusion, reason);
}

bool fp4::fuseRows(Operation *root, RewriterBase &rewriter) {
  auto generic = dyn_cast<linalg::GenericOp>(root);
  if (generic)
    reportNoReduction(generic);
  if (root->hasAttr(kPrologueAttr) && !isa<TopKOp>(root))
    return false;
  Chain chain(root);
  chain.grow();
  std::string reason = whyNotRoot(root);
  if (!reason.empty() && chain.needsRows())
    return missed(root, kRowsFusion, reason);
  if (!reason.empty())
    return false;
  chain.reportRejected();
  if (!chain.needsRows() && !(generic && isRowReduction(generic) && chain.size()))
    return false;
  if (isa<TopKOp>(root) && !chain.size())
    return false;
  unsigned stored = chain.write(rewriter);
  passed(root, kRowsFusion,
         "one kernel by rows computes " + std::to_string(chain.size()) +
             (chain.size() == 1 ? " operation" : " operations") + " before it and stores " +
             std::to_string(stored) + " of them");
  if (chain.isComputedTwice())
    passed(root, kRowsFusion,
           "the amax of the tensor takes a pass of its own before it; a static amax, or one of "
           "each row, takes none");
  return true;
}
