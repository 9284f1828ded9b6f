//===- OperandIndices.cpp - Indices of operands ---------------------------===//
#include "OperandIndices.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp4;

namespace {

/// "((d1+64)%128)": an expression of the dimensions of the result.
void spellIndex(AffineExpr index, llvm::raw_ostream &stream) {
  if (auto dim = dyn_cast<AffineDimExpr>(index)) {
    stream << "d" << dim.getPosition();
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary) {
    stream << cast<AffineConstantExpr>(index).getValue();
    return;
  }
  stream << "(";
  spellIndex(binary.getLHS(), stream);
  stream << (index.getKind() == AffineExprKind::Add        ? "+"
             : index.getKind() == AffineExprKind::Mul      ? "*"
             : index.getKind() == AffineExprKind::FloorDiv ? "/"
                                                           : "%");
  spellIndex(binary.getRHS(), stream);
  stream << ")";
}

/// "0,1", "x,1", "(d0/4),1" or "-": where an operand is read; x is the index 0, and numbers are
/// dimensions of the result.
std::string spellIndices(ArrayRef<AffineExpr> indices) {
  if (indices.empty())
    return "-";
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      indices, stream,
      [&](AffineExpr index) {
        auto dim = dyn_cast<AffineDimExpr>(index);
        if (dim)
          stream << dim.getPosition();
        else if (isa<AffineConstantExpr>(index))
          stream << "x";
        else
          spellIndex(index, stream);
      },
      ",");
  return text;
}

} // namespace

std::string fp4::spellInputs(linalg::LinalgOp op) {
  SmallVector<std::string> words;
  for (OpOperand *input : op.getDpsInputOperands())
    words.push_back(spellIndices(op.getMatchingIndexingMap(input).getResults()));
  for (unsigned loop : loopsReadBy(*op.getBlock()))
    words.push_back("i" + std::to_string(loop));
  return llvm::join(words, " ");
}

std::string fp4::spellSame(unsigned count, int64_t rank, MLIRContext *context) {
  AffineMap map = AffineMap::getMultiDimIdentityMap(rank, context);
  return llvm::join(SmallVector<std::string>(count, spellIndices(map.getResults())), " ");
}
