//===- AttentionBackwardOp.cpp - Gradients of attention: verifier ----------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-attention-backward.mlir.
//
//===----------------------------------------------------------------------===//
#include "AttentionFactors.h"
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// attention_backward (C1), (C2): dimensions and elements.
static LogicalResult verifyTokens(const Checked &value, Type element) {
  ArrayRef<int64_t> shape = value.type.getShape();
  if (value.type.getRank() != 4 || llvm::is_contained(shape, 0) ||
      llvm::is_contained(shape, ShapedType::kDynamic)) // attention_backward (C1)
    return withNote(value.must("have 4 static, positive dimensions"),
                    "write batch x tokens x heads x elements of a head");
  if (value.type.getElementType() == element && !value.type.getEncoding())
    return success();
  return withNote(value.must("have the elements of operand 'query', bf16 or f16"), // (C2)
                  "convert it with arith.truncf or arith.extf");
}

/// attention_backward (C3): dimension `place` of `value` has the size of that of `other`.
static LogicalResult verifySame(const Checked &value, unsigned place, const Checked &other,
                                StringRef what) {
  int64_t size = other.type.getDimSize(place);
  if (value.type.getDimSize(place) == size)
    return success();
  return withNote(value.must("have the " + Twine(size) + " " + what + " of " + other.what),
                  "dimensions are batch, tokens, heads, and elements of a head");
}

/// attention_backward (C3), (C4): sizes that operands have in common.
static LogicalResult verifySizes(AttentionBackwardOp op, const Checked &query, const Checked &key,
                                 const Checked &value) {
  if (failed(verifySame(key, 0, query, "batches")) ||
      failed(verifySame(key, 3, query, "elements of a head")) ||
      failed(verifySame(value, 0, key, "batches")) || failed(verifySame(value, 1, key, "tokens")) ||
      failed(verifySame(value, 2, key, "heads")))
    return failure();
  if (op.getHeads() % op.getKeyHeads() == 0)
    return success();
  return withNote(query.must("have a multiple of the " + Twine(op.getKeyHeads()) +
                             " heads of operand 'key'"), // (C4)
                  "the same number of query heads shares each head of keys");
}

/// attention_backward (C5), (C8), (C9): scores, and the keys that queries see.
static LogicalResult verifyScores(AttentionBackwardOp op) {
  const APFloat &scale = op.getScale();
  if (!scale.isFiniteNonZero() || scale.isNegative()) // attention_backward (C5)
    return withNote(op.emitOpError("scale must be a finite, positive number, but got ")
                        << scale.convertToFloat(),
                    "write the scale of fp4.attention");
  std::optional<APFloat> softcap = op.getSoftcap();
  if (softcap && (!softcap->isFiniteNonZero() || softcap->isNegative())) // attention_backward (C9)
    return withNote(op.emitOpError("softcap must be a finite, positive number, but got ")
                        << softcap->convertToFloat(),
                    "leave 'softcap' out, and scores have no limit");
  if (!op.getWindow())
    return success();
  auto window = int64_t(*op.getWindow());
  if (window < 1)
    return withNote(op.emitOpError("window must have a key or more, but got ") << window,
                    "leave 'window' out, and a query sees all keys up to its own"); // (C8)
  if (op.getCausal())
    return success();
  return withNote(op.emitOpError("window must come with 'causal', but got none"),
                  "a window ends with the key of its query: write 'causal', or leave 'window' out");
}

double AttentionBackwardOp::getExponentFactor() { return exponentFactorOf(*this); }
double AttentionBackwardOp::getTangentFactor() { return tangentFactorOf(*this); }

LogicalResult AttentionBackwardOp::verify() {
  Checked query = operand(*this, "query", getQuery()), key = operand(*this, "key", getKey());
  Checked value = operand(*this, "value", getValue());
  Type element = query.type.getElementType();
  if (!element.isBF16() && !element.isF16())
    return withNote(query.must("have elements of type bf16 or f16"), // attention_backward (C2)
                    "convert it with arith.truncf");
  for (const Checked &tokens : {query, key, value})
    if (failed(verifyTokens(tokens, element))) // attention_backward (C1), (C2)
      return failure();
  if (failed(verifySizes(*this, query, key, value)) || failed(verifyScores(*this)))
    return failure();
  SmallVector<int64_t> shape(query.type.getShape());
  shape.back() = getValueElements();
  if (failed(verifyType(operand(*this, "output", getOutput()),
                        query.type.clone(shape)))) // attention_backward (C6)
    return failure();
  auto ofRows =
      RankedTensorType::get(query.type.getShape().drop_back(), Float32Type::get(getContext()));
  return verifyType(operand(*this, "lse", getLse()), ofRows,
                    "pass the second result of fp4.attention"); // attention_backward (C7)
}
