//===- AttentionOps.cpp - Attention: verifier ------------------------------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-attention.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Dimensions of an operand: batch, tokens, heads, and elements of a head.
enum Dimension : unsigned { Batch, Tokens, Heads, Elements, kRank };

/// attention (C1), (C2): four static dimensions, of elements of the query.
static LogicalResult verifyTokens(const Checked &value, Type element) {
  if (value.type.getRank() != kRank || !value.type.hasStaticShape() ||
      llvm::is_contained(value.type.getShape(), 0))
    return withNote(value.must("have 4 static, positive dimensions"), // attention (C1)
                    "write batch x tokens x heads x elements of a head");
  if (value.type.getElementType() != element || value.type.getEncoding())
    return withNote(value.must("have elements of the query, bf16 or f16"), // attention (C2)
                    "convert it with arith.truncf or arith.extf");
  return success();
}

/// Checks that `value` has the size of `other` in `dimension`.
static LogicalResult verifySame(const Checked &value, const Checked &other, unsigned dimension,
                                StringRef what) {
  int64_t size = other.type.getDimSize(dimension);
  if (value.type.getDimSize(dimension) == size)
    return success();
  return withNote(value.must("have the " + Twine(size) + " " + what + " of " + other.what),
                  "dimensions are batch, tokens, heads, and elements of a head");
}

/// attention (C7), (C8): numbers of each sequence.
static LogicalResult verifySequences(AttentionOp op, int64_t batches) {
  MLIRContext *context = op.getContext();
  auto numbers = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, IntegerType::get(context, 32));
  };
  if (Value lengths = op.getLengths(); lengths && lengths.getType() != numbers({batches}))
    return withNote(operand(op, "lengths", lengths)
                        .must("have the " + Twine(batches) + " batches of operand 'query', i32"),
                    "write the number of keys of each sequence"); // (C7)
  Value pages = op.getPages();
  if (!pages)
    return success();
  auto type = cast<RankedTensorType>(pages.getType());
  if (type.getRank() != 2 || !type.hasStaticShape() || type.getDimSize(1) < 1 ||
      type != numbers({batches, type.getDimSize(1)})) // (C7)
    return withNote(operand(op, "pages", pages)
                        .must("have a row for each of the " + Twine(batches) +
                              " batches of operand 'query', i32"),
                    "write the pages of each sequence, in the order of its keys");
  if (op.getLengths())
    return success();
  return withNote(op.emitOpError("operand 'pages' must come with 'lengths', but got none"),
                  "a sequence ends in the middle of a page"); // (C8)
}

LogicalResult AttentionOp::verify() {
  Checked query = operand(*this, "query", getQuery()), key = operand(*this, "key", getKey());
  Checked value = operand(*this, "value", getValue());
  Type element = query.type.getElementType();
  if (!element.isBF16() && !element.isF16())
    return withNote(query.must("have elements of type bf16 or f16"), // attention (C2)
                    "convert it with arith.truncf");
  for (const Checked &tokens : {query, key, value})
    if (failed(verifyTokens(tokens, element))) // attention (C1), (C2)
      return failure();
  bool isPaged = bool(getPages());
  if ((!isPaged && failed(verifySame(key, query, Batch, "batches"))) || // attention (C3)
      failed(verifySame(value, isPaged ? key : query, Batch, isPaged ? "pages" : "batches")) ||
      failed(verifySame(key, query, Elements, "elements of a head")) ||
      failed(verifySame(value, key, Tokens, "tokens")) ||
      failed(verifySame(value, key, Heads, "heads")))
    return failure();
  if (query.type.getDimSize(Heads) % key.type.getDimSize(Heads)) // attention (C4)
    return withNote(query.must("have a multiple of the " + Twine(key.type.getDimSize(Heads)) +
                               " heads of operand 'key'"),
                    "the same number of query heads shares each head of keys");
  if (APFloat scale = getScale(); !scale.isFiniteNonZero() || scale.isNegative()) // attention (C5)
    return withNote(emitOpError("scale must be a finite, positive number, but got ")
                        << scale.convertToFloat(),
                    "1 over the square root of the elements of a head is usual; with 0 all keys have "
                    "one weight");
  if (failed(verifySequences(*this, query.type.getDimSize(Batch))))
    return failure();
  SmallVector<int64_t> shape(query.type.getShape());
  shape[Elements] = value.type.getDimSize(Elements);
  return verifyType(result(*this, "result", getResult()),
                    query.type.clone(shape)); // attention (C6)
}
