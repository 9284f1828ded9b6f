//===- MoveRows.cpp - Readers of gathers, and sources of scatters ---------===//
#include "MoveRows.h"

#include "Collect.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace {

/// Returns true for an operation whose kernel may gather and scatter.
bool movesRows(Operation *op) {
  auto generic = dyn_cast_if_present<linalg::GenericOp>(op);
  return generic && fp4::whyNotElementwise(cast<linalg::LinalgOp>(op)).empty();
}

/// An elementwise operation before `before` that copies `matrix`, with the rows of `ofRows`.
linalg::GenericOp copyOf(Value matrix, Value ofRows, Operation *before, RewriterBase &rewriter) {
  Location loc = before->getLoc();
  rewriter.setInsertionPoint(before);
  auto type = cast<RankedTensorType>(matrix.getType());
  SmallVector<Value> rows;
  if (type.isDynamicDim(0))
    rows.push_back(tensor::DimOp::create(rewriter, loc, ofRows, 0));
  Value init = tensor::EmptyOp::create(rewriter, loc, type, rows);
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  return linalg::GenericOp::create(rewriter, loc, type, matrix, init, maps, loops,
                                   [](OpBuilder &b, Location loc, ValueRange arguments) {
                                     linalg::YieldOp::create(b, loc, arguments.front());
                                   });
}

/// Has elementwise operations alone read a gather: its rows are in no memory.
void read(tensor::GatherOp op, RewriterBase &rewriter) {
  for (Operation *user : llvm::to_vector(op->getUsers()))
    if (auto dim = dyn_cast<tensor::DimOp>(user)) // the rows are those of the row numbers
      rewriter.modifyOpInPlace(dim, [&] { dim.getSourceMutable().assign(op.getIndices()); });
  if (llvm::all_of(op->getUsers(), movesRows))
    return;
  linalg::GenericOp copy = copyOf(op.getResult(), op.getIndices(), op->getNextNode(), rewriter);
  rewriter.replaceUsesWithIf(op.getResult(), copy.getResult(0), [&](OpOperand &use) {
    return use.getOwner() != copy && !movesRows(use.getOwner());
  });
}

/// Has a kernel of its own write a scatter whose source others read, or that no kernel computes;
/// and has row numbers before the kernel that writes by them.
void write(tensor::ScatterOp op, RewriterBase &rewriter) {
  RankedTensorType type = op.getSourceType();
  Operation *source = op.getSource().getDefiningOp();
  bool isWritten =
      op.getSource().hasOneUse() && (isa_and_present<fp4::QuantizeOp>(source) || movesRows(source));
  if (isWritten) // a failure leaves them behind it, which the lowering reports
    return (void)moveValueDefinitions(rewriter, op.getIndices(), source);
  if (type.getRank() != 2 || !fp4::isElementType(type.getElementType()))
    return;
  linalg::GenericOp copy = copyOf(op.getSource(), op.getSource(), op, rewriter);
  rewriter.modifyOpInPlace(op, [&] { op.getSourceMutable().assign(copy.getResult(0)); });
}

} // namespace

void fp4::computeMovedRows(Operation *root, RewriterBase &rewriter) {
  auto gathers = collect<tensor::GatherOp>(root);
  auto scatters = collect<tensor::ScatterOp>(root);
  for (tensor::GatherOp op : gathers)
    if (whyNotGather(op).empty())
      read(op, rewriter);
  for (tensor::ScatterOp op : scatters)
    write(op, rewriter);
}
