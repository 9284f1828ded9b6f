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

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// Words in front of the offsets of queries, and of keys.
static constexpr StringLiteral kOffsetWords[] = {"query_offsets", "key_offsets"};

ParseResult fp4::parsePackedOffsets(OpAsmParser &parser,
                                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &offsets,
                                    SmallVectorImpl<Type> &types) {
  if (failed(parser.parseOptionalKeyword(kOffsetWords[0])))
    return success();
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseLParen() || parser.parseOperand(offsets.emplace_back()) ||
                   parser.parseColonType(types.emplace_back()) || parser.parseRParen());
  };
  return failure(parseOne() || parser.parseKeyword(kOffsetWords[1]) || parseOne());
}

void fp4::printPackedOffsets(OpAsmPrinter &printer, Operation *, OperandRange offsets,
                             TypeRange types) {
  llvm::ListSeparator space(" ");
  for (auto [word, operand, type] : llvm::zip(kOffsetWords, offsets, types))
    printer << StringRef(space) << word << "(" << operand << " : " << type << ")";
}

/// attention_backward (C10): offsets of queries and of keys, or none.
static LogicalResult verifyOffsets(AttentionBackwardOp op) {
  if (!op.isPacked())
    return success();
  if (op.getOffsets().size() != 2)
    return withNote(op.emitOpError("must have offsets of queries and of keys, but got ")
                        << op.getOffsets().size(),
                    "the keys of a sequence are those of its queries");
  for (auto [word, offsets] : llvm::zip(kOffsetWords, op.getOffsets())) {
    Checked list = operand(op, word, offsets);
    bool isList = list.type.getRank() == 1 && list.type.hasStaticShape() &&
                  list.type.getElementType().isInteger(32) && list.type.getDimSize(0) > 1;
    if (!isList || list.type != op.getQueryOffsets().getType()) // attention_backward (C10)
      return withNote(list.must("have an i32 for each sequence and one more, as 'query_offsets'"),
                      "sequence b has the tokens from offset b up to offset b + 1");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Elements, sizes, scores
//===----------------------------------------------------------------------===//

/// attention_backward (C1), (C2): dimensions and elements.
static LogicalResult verifyTokens(const Checked &value, Type element, bool isPacked) {
  ArrayRef<int64_t> shape = value.type.getShape();
  bool fits = value.type.getRank() == (isPacked ? 3 : 4) && !llvm::is_contained(shape, 0) &&
              !llvm::is_contained(shape.drop_front(isPacked), ShapedType::kDynamic);
  if (!fits && isPacked) // attention_backward (C1)
    return withNote(value.must("have 3 positive dimensions, of which the first may be dynamic"),
                    "write tokens of all sequences x heads x elements of a head");
  if (!fits)
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
  std::string count = ShapedType::isDynamic(size) ? "dynamic" : std::to_string(size);
  return withNote(value.must("have the " + count + " " + what + " of " + other.what),
                  "dimensions are batch, tokens, heads, and elements of a head");
}

/// attention_backward (C3), (C4): sizes that operands have in common.
static LogicalResult verifySizes(AttentionBackwardOp op, const Checked &query, const Checked &key,
                                 const Checked &value) {
  unsigned tokens = op.isPacked() ? 0 : 1;
  bool haveBatches = op.isPacked() || (succeeded(verifySame(key, 0, query, "batches")) &&
                                       succeeded(verifySame(value, 0, key, "batches")));
  if (!haveBatches || failed(verifySame(key, tokens + 2, query, "elements of a head")) ||
      failed(verifySame(value, tokens, key, "tokens")) ||
      failed(verifySame(value, tokens + 1, key, "heads")))
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
  if (failed(verifyOffsets(*this))) // attention_backward (C10)
    return failure();
  Checked query = operand(*this, "query", getQuery()), key = operand(*this, "key", getKey());
  Checked value = operand(*this, "value", getValue());
  Type element = query.type.getElementType();
  if (!element.isBF16() && !element.isF16())
    return withNote(query.must("have elements of type bf16 or f16"), // attention_backward (C2)
                    "convert it with arith.truncf");
  for (const Checked &tokens : {query, key, value})
    if (failed(verifyTokens(tokens, element, isPacked()))) // attention_backward (C1), (C2)
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
