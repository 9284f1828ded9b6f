//===- RowSources.cpp - Tensors that a row kernel reads ---------------------===//
#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp4;

SmallVector<Operation *> fp4::stepsOf(Operation *op) {
  SmallVector<Operation *> steps;
  llvm::append_range(steps, prologuesOf(op));
  steps.push_back(op);
  return steps;
}

std::string fp4::whyOnePlan(Operation *op, RankedTensorType matrix) {
  if (!matrix.isDynamicDim(0))
    return "its rows are static";
  return llvm::any_of(stepsOf(op), isScattered) ? "its rows are scattered" : "";
}

SmallVector<RowSource> fp4::sourcesOf(Operation *op) {
  SmallVector<Operation *> steps = stepsOf(op);
  llvm::SetVector<RowSource> sources;
  auto add = [&](RowSource source) {
    if (!llvm::is_contained(steps, std::get<Value>(source).getDefiningOp()))
      sources.insert(source);
  };
  for (Operation *step : steps) {
    auto generic = dyn_cast<linalg::LinalgOp>(step);
    if (!generic) {
      MLIRContext *context = op->getContext();
      add({step->getOperand(0), getAffineDimExpr(0, context), getAffineDimExpr(1, context)});
      continue;
    }
    for (OpOperand *input : generic.getDpsInputOperands()) {
      auto [row, column] = indexPairOf(generic, input);
      if (row && column)
        add({input->get(), row, column});
    }
  }
  return sources.takeVector();
}

double fp4::wordsOfChunk(Value matrix) {
  return kRowChunk * double(cast<RankedTensorType>(matrix.getType()).getElementTypeBitWidth()) / 32;
}

int64_t fp4::keptWordsOfChunk(Operation *op) {
  int64_t words = 0;
  for (auto [tensor, row, column] : sourcesOf(op))
    words += int64_t(wordsOfChunk(tensor));
  return std::max<int64_t>(1, words);
}

int64_t fp4::keptWordsOfChunk(Operation *op, int64_t rows) {
  int64_t columns = widestMatrixOf(op).getDimSize(1), ofRow = 0, ofAll = 0;
  for (auto [tensor, row, column] : sourcesOf(op)) {
    if (rows > 1 && readsOtherHalf(column, columns, kRowChunk))
      continue;
    (sharesRows(row, rows) ? ofAll : ofRow) += int64_t(wordsOfChunk(tensor));
  }
  return std::max<int64_t>(1, ofAll + rows * ofRow);
}

/// Adds what `step` and the elementwise steps before it read of rows that all rows share.
static void addShared(Operation *step, ArrayRef<Operation *> steps,
                      llvm::SetVector<Value> &shared) {
  auto generic = dyn_cast<linalg::LinalgOp>(step);
  for (OpOperand &operand : step->getOpOperands()) {
    Operation *before = operand.get().getDefiningOp();
    if (generic && generic.isDpsInput(&operand))
      if (auto [row, column] = indexPairOf(generic, &operand); !row && column)
        shared.insert(operand.get());
    if (llvm::is_contained(steps, before) && !isRowReduction(before))
      addShared(before, steps, shared);
  }
}

int64_t fp4::sharedWordsOfChunk(Operation *op) {
  llvm::MapVector<Value, int64_t> readings;
  SmallVector<Operation *> steps = stepsOf(op);
  for (Operation *step : steps) {
    if (step != op && !isRowReduction(step))
      continue;
    llvm::SetVector<Value> shared;
    addShared(step, steps, shared);
    for (Value tensor : shared)
      ++readings[tensor];
  }
  double words = 0;
  for (auto [tensor, count] : readings)
    words += count > 1 ? wordsOfChunk(tensor) : 0;
  return int64_t(words);
}

bool fp4::needsRow(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return isa<AmaxOp>(op) || (quantize && (amaxOfRows(quantize) || quantize.hasF32Scales()));
}

bool fp4::hasScaleOfRow(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantize.hasF32Scales() && quantize.getBlock() &&
         quantize.getBlock()->back() == widestMatrixOf(op).getDimSize(1);
}

bool fp4::readsGather(Operation *op) {
  return llvm::any_of(sourcesOf(op), [](const RowSource &source) {
    return bool(gatherOf(std::get<Value>(source)));
  });
}

bool fp4::quantizesOneMatrix(Operation *op) {
  constexpr int64_t words = kRowChunk / 2;
  return isa<QuantizeOp>(op) && keptWordsOfChunk(op) <= words;
}

bool fp4::takesExponentials(Operation *op, Exponentials which) {
  return llvm::any_of(stepsOf(op), [&](Operation *step) {
    auto generic = dyn_cast<linalg::GenericOp>(step);
    return generic && llvm::any_of(generic.getBody()->getOps<math::ExpOp>(), [&](math::ExpOp exp) {
             return which == Exponentials::Any || !isApproximateExp(exp);
           });
  });
}

bool fp4::sumsApproximations(Operation *op) {
  return isRowReduction(op) && llvm::any_of(stepsOf(op), [](Operation *step) {
           return isRowReduction(step) &&
                  llvm::any_of(step->getRegion(0).getOps(),
                               [](Operation &inner) { return isApproximateExp(&inner); });
         });
}
