//===- AttentionOps.cpp - Attention: verifier ------------------------------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and of
// test/Dialect/Fp4/invalid-attention.mlir and invalid-attention-scales.mlir.
//
//===----------------------------------------------------------------------===//
#include "AttentionFactors.h"
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/AttentionEpilogue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/SharedKeys.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Scales of keys and values as `scales`, or those of all operands, or of queries and keys, as
/// `block_scales`.
ParseResult fp4::parseAttentionScales(OpAsmParser &parser, MaybeOperand &query, MaybeOperand &key,
                                      MaybeOperand &value, Type &queryType, Type &keyType,
                                      Type &valueType) {
  bool isOfBlocks = succeeded(parser.parseOptionalKeyword("block_scales"));
  if (!isOfBlocks && failed(parser.parseOptionalKeyword("scales")))
    return success();
  SmallVector<std::pair<MaybeOperand *, Type *>> places;
  if (isOfBlocks)
    places.push_back({&query, &queryType});
  places.push_back({&key, &keyType});
  places.push_back({&value, &valueType});
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLParen() || parser.parseOperandList(operands) ||
      parser.parseColonTypeList(types) || parser.parseRParen())
    return failure();
  if (operands.size() != types.size() || operands.size() > places.size() || operands.size() < 2)
    return withNote(parser.emitError(loc) << "expects " << (isOfBlocks ? "two or three" : "two")
                                          << " scales and their types, but got " << operands.size()
                                          << " and " << types.size(),
                    isOfBlocks ? "write scales of queries, keys and, if they have any, values"
                               : "write scales of keys and of values");
  for (auto [place, operand, type] : llvm::zip(places, operands, types)) {
    *place.first = operand;
    *place.second = type;
  }
  return success();
}

void fp4::printAttentionScales(OpAsmPrinter &printer, Operation *, Value query, Value key,
                               Value value, Type, Type, Type) {
  SmallVector<Value> scales;
  for (Value operand : {query, key, value})
    if (operand)
      scales.push_back(operand);
  if (scales.empty())
    return;
  printer << (query ? "block_scales(" : "scales(") << ValueRange(scales) << " : "
          << ValueRange(scales).getTypes() << ")";
}

ParseResult fp4::parseAttentionResult(OpAsmParser &parser, Type &result) {
  OptionalParseResult parsed = parser.parseOptionalType(result);
  return parsed.has_value() ? *parsed : success();
}

void fp4::printAttentionResult(OpAsmPrinter &printer, Operation *, Type result) {
  if (result)
    printer << result;
}

/// Places of the dimensions of an operand: of sequences or pages, which packed operands do not
/// have, of tokens, of heads, and of elements of a head.
struct Places {
  unsigned outer, tokens, heads, elements;
};
static Places placesOf(AttentionOp op, bool areKeys) {
  if (areKeys ? op.hasPackedKeys() : op.isPacked())
    return {0, 0, 1, 2};
  return areKeys && op.getHeadsFirst() ? Places{0, 2, 1, 3} : Places{0, 1, 2, 3};
}

/// attention (C1): four static dimensions, or three of which the first may be dynamic.
static LogicalResult verifyTokens(const Checked &value, bool isPacked) {
  ArrayRef<int64_t> shape = value.type.getShape();
  bool hasRank = value.type.getRank() == (isPacked ? 3 : 4);
  if (hasRank && !llvm::is_contained(shape, 0) &&
      !llvm::is_contained(shape.drop_front(isPacked), ShapedType::kDynamic))
    return success();
  if (isPacked)
    return withNote(value.must("have 3 positive dimensions, of which the first may be dynamic"),
                    "write tokens of all sequences x heads x elements of a head");
  return withNote(value.must("have 4 static, positive dimensions"),
                  "write batch x tokens x heads x elements of a head; tokens may be dynamic where "
                  "'query_offsets' and 'key_offsets' say which are of a sequence");
}

/// attention (C2): elements of keys, or of values, which are those of keys.
static LogicalResult verifyElements(const Checked &value, Type query, Type key) {
  Type element = value.type.getElementType();
  bool isCode = isa<Float8E4M3FNType, Float4E2M1FNType>(element) && !isa<Float8E4M3FNType>(query);
  if ((element == query || isCode) && element == key && !value.type.getEncoding())
    return success();
  if (isCode || element == query)
    return withNote(value.must("have the elements of operand 'key'"),
                    "keys and values are of one format");
  return withNote(value.must("have elements of the query, bf16 or f16, or f8E4M3FN or f4E2M1FN"),
                  "convert it with arith.truncf or arith.extf, or quantize it");
}

/// Checks that dimension `place` of `value` has the size of dimension `ofOther` of `other`.
static LogicalResult verifySame(const Checked &value, unsigned place, const Checked &other,
                                unsigned ofOther, StringRef what) {
  int64_t size = other.type.getDimSize(ofOther);
  if (value.type.getDimSize(place) == size)
    return success();
  std::string count = ShapedType::isDynamic(size) ? "dynamic" : std::to_string(size);
  return withNote(value.must("have the " + count + " " + what + " of " + other.what),
                  "dimensions are batch, tokens, heads, and elements of a head");
}

/// attention (C3): sequences of keys, each of one or more sequences of queries in a row.
static LogicalResult verifyBatches(AttentionOp op, const Checked &query, const Checked &key) {
  int64_t sequences = key.type.getDimSize(0);
  bool mayShare = !op.isQuantized() && !op.isOfBytes() && !op.getLatent();
  if (sequences > 0 && mayShare && op.getBatches() % sequences == 0)
    return success();
  return verifySame(key, 0, query, 0, "batches");
}

/// attention (C3), (C4): sizes that operands have in common.
static LogicalResult verifySizes(AttentionOp op, const Checked &query, const Checked &key,
                                 const Checked &value) {
  Places ofQuery = placesOf(op, /*areKeys=*/false), ofKeys = placesOf(op, /*areKeys=*/true);
  Places ofValues = op.hasValueRows() ? Places{0, 3, 1, 2} : ofKeys;
  bool isPaged = bool(op.getPages()), hasBatches = !isPaged && !op.hasPackedKeys();
  if ((hasBatches && (failed(verifyBatches(op, query, key)) ||
                      failed(verifySame(value, 0, key, 0, "batches")))) ||
      (isPaged && failed(verifySame(value, 0, key, 0, "pages"))) ||
      failed(verifySame(key, ofKeys.elements, query, ofQuery.elements, "elements of a head")) ||
      failed(verifySame(value, ofValues.tokens, key, ofKeys.tokens, "tokens")) ||
      failed(verifySame(value, ofValues.heads, key, ofKeys.heads, "heads")))
    return failure();
  if (op.getHeads() % op.getKeyHeads() == 0)
    return success();
  return withNote(query.must("have a multiple of the " + Twine(op.getKeyHeads()) +
                             " heads of operand 'key'"), // (C4)
                  "the same number of query heads shares each head of keys");
}

/// attention (C15): offsets, those of queries or of keys.
static LogicalResult verifyList(const Checked &offsets, Type ofQueries) {
  bool isList = offsets.type.getRank() == 1 && offsets.type.hasStaticShape() &&
                offsets.type.getElementType().isInteger(32) && offsets.type.getDimSize(0) > 1;
  if (isList && offsets.type == ofQueries)
    return success();
  return withNote(offsets.must("have an i32 for each sequence and one more, as 'query_offsets'"),
                  "sequence b has the tokens from offset b up to offset b + 1");
}

/// attention (C15): the places of packed sequences.
static LogicalResult verifyOffsets(AttentionOp op) {
  Value ofQueries = op.getQueryOffsets(), ofKeys = op.getKeyOffsets();
  if (!ofQueries && !ofKeys)
    return success();
  if (!ofQueries || (!ofKeys && !op.getPages()))
    return withNote(op.emitOpError("operand '")
                        << (ofQueries ? "query_offsets" : "key_offsets") << "' must come with '"
                        << (ofQueries ? "key_offsets' or 'pages" : "query_offsets")
                        << "', but got none",
                    "offsets say which keys the queries of each sequence see");
  if (failed(verifyList(operand(op, "query_offsets", ofQueries), ofQueries.getType())) ||
      (ofKeys && failed(verifyList(operand(op, "key_offsets", ofKeys), ofQueries.getType()))))
    return failure();
  for (auto [name, other] :
       {std::pair("lengths", op.getLengths()), std::pair("pages", op.getPages())})
    if (ofKeys && other)
      return withNote(op.emitOpError("operand '")
                          << name << "' must be left out beside 'key_offsets', but got "
                          << other.getType(),
                      "offsets say how many keys each sequence has");
  return success();
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

/// attention (C17): the order of dimensions of pages.
static LogicalResult verifyOrder(AttentionOp op) {
  if (!op.getHeadsFirst() || op.getPages())
    return success();
  return withNote(op.emitOpError("heads_first must come with 'pages', but got none"),
                  "heads are in front of tokens in pages alone");
}

/// attention (C18): values that are elements of keys.
static LogicalResult verifyLatent(AttentionOp op) {
  if (!op.getLatent())
    return success();
  auto latent = int64_t(*op.getLatent());
  if (op.getKey() != op.getValue() || op.isQuantized())
    return withNote(op.emitOpError("latent must come with one operand 'key' and 'value', of the "
                                   "elements of operand 'query', but got ")
                        << (op.isQuantized() ? "codes" : "two"),
                    "write the latent cache twice: its rows are keys, and their first elements "
                    "values");
  if (latent >= 1 && latent <= op.getElements())
    return success();
  return withNote(op.emitOpError("latent must be from 1 to the ")
                      << op.getElements() << " elements of a head of operand 'key', but got "
                      << latent,
                  "write the elements of a head of values, such as 512");
}

/// Elements of a block with scales of `scale`: those that (C9) allows, else 0.
static int64_t blockOf(Type query, Type code, Type scale) {
  bool isPacked = isa<Float4E2M1FNType>(code);
  if (isPacked && isa<Float8E4M3FNType>(scale))
    return blockSize(Format::NVFP4);
  bool isMX = isa<Float8E8M0FNUType>(scale) && query.isBF16();
  return isMX && (isPacked || isa<Float8E4M3FNType>(code)) ? blockSize(Format::MXFP4) : 0;
}

int64_t AttentionOp::getBlockSize() {
  return getKeyScales() ? blockOf(getQueryType().getElementType(), getKeyType().getElementType(),
                                  getElementTypeOrSelf(getKeyScales().getType()))
                        : 0;
}

/// Checks that operands that keys and values have are given for both, and beside codes alone.
static LogicalResult verifyTogether(AttentionOp op, StringRef what, Value ofKeys, Value ofValues) {
  if (!ofKeys && !ofValues)
    return success();
  if (!ofKeys || !ofValues)
    return withNote(op.emitOpError("operands 'key_" + what + "' and 'value_" + what +
                                   "' must come together, but got one"),
                    "keys and values are of one format");
  if (op.isQuantized() || op.isOfBytes())
    return success();
  return withNote(op.emitOpError("operand 'key_" + what +
                                 "' must come with keys of f8E4M3FN or f4E2M1FN, but got ")
                      << op.getKeyType(),
                  "elements of the query's type are as they are");
}

/// attention (C9): scales of the blocks of `codes`.
static LogicalResult verifyScales(AttentionOp op, const Checked &scales, const Checked &codes) {
  Type query = op.getQueryType().getElementType();
  int64_t block = blockOf(query, codes.type.getElementType(), scales.type.getElementType());
  if (!block)
    return withNote(scales.must("have elements f8E4M3FN beside f4E2M1FN, or f8E8M0FNU beside a "
                                "query of bf16"),
                    "NVFP4 has a scale of f8E4M3FN for 16 elements, MXFP4 and MXFP8 one of "
                    "f8E8M0FNU for 32");
  SmallVector<int64_t> shape(codes.type.getShape());
  shape.back() = int64_t(llvm::divideCeil(shape.back(), block));
  return verifyType(scales, RankedTensorType::get(shape, scales.type.getElementType()),
                    "write a scale for each " + std::to_string(block) + " elements of a head");
}

/// attention (C10): a factor for all heads, or for each, of all sequences; beside queries of
/// f8E4M3FN also of each sequence.
static LogicalResult verifyFactors(AttentionOp op, const Checked &factors) {
  int64_t heads = op.getKeyHeads();
  ArrayRef<int64_t> shape = factors.type.getShape();
  bool isList = shape.size() == 1 && (shape[0] == 1 || shape[0] == heads);
  bool isOfSequences = op.isOfBytes() && shape == ArrayRef({op.getBatches(), heads});
  if (factors.type.getElementType().isF32() && (isList || isOfSequences))
    return success();
  std::string more = op.isOfBytes() ? ", or as many for each of the " +
                                          std::to_string(op.getBatches()) + " sequences"
                                    : "";
  return withNote(factors.must("have 1 f32, or the " + Twine(heads) +
                               " of the heads of operand "
                               "'key'" +
                               more),
                  "a factor multiplies all keys, or all values, of a head");
}

/// attention (C9), (C10): scales and factors of quantized keys and values.
static LogicalResult verifyQuantized(AttentionOp op, const Checked &key, const Checked &value) {
  if (op.hasPackedKeys() && op.isQuantized())
    return withNote(key.must("have the elements of operand 'query' beside 'key_offsets'"), // (C15)
                    "codes are of caches, which have 'lengths' and 'pages'");
  if ((!op.isBlockScaled() &&
       failed(verifyTogether(op, "scales", op.getKeyScales(), op.getValueScales()))) ||
      failed(verifyTogether(op, "factors", op.getKeyFactors(), op.getValueFactors())))
    return failure();
  if (!op.getKeyScales() && isa<Float4E2M1FNType>(key.type.getElementType()))
    return withNote(
        op.emitOpError("operand 'key' of f4E2M1FN must come with 'scales', but got none"),
        "pass the scales of the blocks of keys and values");
  for (auto [name, scales, codes] : {std::tuple("key_scales", op.getKeyScales(), &key),
                                     std::tuple("value_scales", op.getValueScales(), &value)})
    if (scales && !op.isBlockScaled() &&
        failed(verifyScales(op, operand(op, name, scales), *codes)))
      return failure();
  for (auto [name, factors] : {std::pair("key_factors", op.getKeyFactors()),
                               std::pair("value_factors", op.getValueFactors())})
    if (factors && failed(verifyFactors(op, operand(op, name, factors))))
      return failure();
  return success();
}

/// attention (C19): scales of blocks of `matrices` matrices of `rows` rows of `elements` elements.
static LogicalResult verifyBlockScales(AttentionOp op, StringRef name, Value scales,
                                       int64_t matrices, int64_t rows, int64_t elements) {
  constexpr int64_t rowsOfTile = 128;
  bool isPacked = isa<Float4E2M1FNType>(op.getQueryType().getElementType());
  MLIRContext *context = op.getContext();
  Type element = isPacked ? Type(Float8E4M3FNType::get(context)) : Float8E8M0FNUType::get(context);
  int64_t block = blockSize(isPacked ? Format::NVFP4 : Format::MXFP8E4M3);
  SmallVector<int64_t> shape = {matrices * int64_t(llvm::alignTo(rows, rowsOfTile)),
                                int64_t(llvm::divideCeil(elements, block))};
  return verifyType(
      operand(op, name, scales),
      withScaleLayout(RankedTensorType::get(shape, element), ScaleLayout::Tiled128x4),
      "each head of a sequence has a multiple of 128 rows, of its tokens, or of values "
      "its elements");
}

/// attention (C19): elements and scales of operands whose blocks tensor cores scale.
static LogicalResult verifyBlockScaled(AttentionOp op, const Checked &query, const Checked &key,
                                       const Checked &value) {
  Type ofQuery = query.type.getElementType(), ofValue = value.type.getElementType();
  if (op.getPages() || op.isPacked() || op.getLatent())
    return withNote(op.emitOpError() << "block_scales must come without 'pages', offsets and "
                                        "'latent', but got "
                                     << (op.getPages()   ? "'pages'"
                                         : op.isPacked() ? "'query_offsets'"
                                                         : "'latent'"),
                    "tiles of 128 rows have their scales together: pad each sequence");
  bool isPacked = isa<Float4E2M1FNType>(ofQuery);
  if (!isPacked && !isa<Float8E4M3FNType>(ofQuery))
    return withNote(query.must("have elements f8E4M3FN or f4E2M1FN beside 'block_scales'"),
                    "fp4.quantize makes codes and scales of MXFP8 or NVFP4");
  if (key.type.getElementType() != ofQuery)
    return withNote(key.must("have the elements of operand 'query' beside 'block_scales'"),
                    "one instruction multiplies both");
  bool fits = op.getValueScales() ? ofValue == ofQuery : isa<Float8E4M3FNType>(ofValue);
  if (!fits)
    return withNote(value.must("have elements f8E4M3FN without scales, or those of operand 'query' "
                               "with scales"),
                    "powers are e4m3 beside values without scales, and else of the format of all");
  int64_t batches = op.getBatches(), heads = op.getHeads(), keyHeads = op.getKeyHeads();
  int64_t tokens = op.getQueryTokens(), keys = op.getKeyTokens(), elements = op.getElements();
  if (failed(verifyBlockScales(op, "query_scales", op.getQueryScales(), batches * heads, tokens,
                               elements)) ||
      failed(verifyBlockScales(op, "key_scales", op.getKeyScales(), batches * keyHeads, keys,
                               elements)))
    return failure();
  return op.getValueScales() ? verifyBlockScales(op, "value_scales", op.getValueScales(),
                                                 batches * keyHeads, op.getValueElements(), keys)
                             : success();
}

/// A number by which scores are multiplied or limited.
static LogicalResult verifyPositive(AttentionOp op, StringRef name, const APFloat &number,
                                    StringRef remedy) {
  if (number.isFiniteNonZero() && !number.isNegative())
    return success();
  return withNote(op.emitOpError() << name << " must be a finite, positive number, but got "
                                   << number.convertToFloat(),
                  remedy);
}

/// attention (C12): a window of the keys that a causal mask leaves.
static LogicalResult verifyWindow(AttentionOp op) {
  if (!op.getWindow())
    return success();
  auto window = int64_t(*op.getWindow());
  if (window < 1)
    return withNote(op.emitOpError("window must have a key or more, but got ") << window,
                    "leave 'window' out, and a query sees all keys up to its own");
  if (op.getCausal())
    return success();
  return withNote(op.emitOpError("window must come with 'causal', but got none"),
                  "a window ends with the key of its query: write 'causal', or leave 'window' out");
}

/// attention (C13), (C14), (C16): numbers of heads of queries, and of their tokens.
static LogicalResult verifyHeads(AttentionOp op, ArrayRef<int64_t> query) {
  auto numbers = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Float32Type::get(op.getContext()));
  };
  if (Value sinks = op.getSinks())
    if (failed(verifyType(operand(op, "sinks", sinks), numbers(op.getHeads()),
                          "write the logit of each head of operand 'query'"))) // (C13)
      return failure();
  if (Value slopes = op.getSlopes())
    if (failed(verifyType(operand(op, "slopes", slopes), numbers(op.getHeads()),
                          "write the slope of each head of operand 'query'"))) // (C16)
      return failure();
  if (Value lse = op.getLse())
    return verifyType(result(op, "lse", lse), numbers(query.drop_back())); // (C14)
  return success();
}

/// attention (C5), (C11), (C12): scores, and the keys that queries see.
static LogicalResult verifySoftmax(AttentionOp op) {
  if (failed(verifyPositive(op, "scale", op.getScale(), // attention (C5)
                            "1 over the square root of the elements of a head is usual; with 0 all "
                            "keys have one weight")) ||
      (op.getSoftcap() && failed(verifyPositive(op, "softcap", *op.getSoftcap(), // (C11)
                                                "leave 'softcap' out, and scores have no limit"))))
    return failure();
  return verifyWindow(op); // (C12)
}

/// Rows of a tile that threads quantize, and elements of a row that they have together.
static constexpr int64_t kQuantizedRows = 128, kSection = 64;

bool fp4::quantizesInLanes(AttentionOp op) {
  bool isFew = op.getQueryTokens() < kQuantizedRows && !op.isPacked() && !op.isOfBytes();
  return op.getLatent() || op.isQuantized() || isFew;
}

/// Why a kernel that has a row in several lanes does not quantize; empty where it does.
static std::string whyNotInLanes(AttentionOp op, bool areTiled) {
  constexpr int64_t keysOfSlice = 64;
  if (areTiled)
    return "kernels of few queries leave scales row-major, and nobody clears what pads tiles";
  if (op.getLatent() && (op.isPacked() || op.getOrder() || op.getKeyTokens() <= keysOfSlice))
    return "slices of latent keys are added up where there are several, of equal sequences";
  return op.isPacked() ? "packed queries of fewer than 128 tokens share tiles" : "";
}

std::string fp4::whyNotQuantized(AttentionOp op, RecipeAttr recipe, RankedTensorType scales) {
  int64_t elements = op.getValueElements(),
          block = numerics::blockSizeOf(recipe.getDecisions().format), tokens = op.getQueryTokens();
  bool areTiled = scaleLayout(scales) == ScaleLayout::Tiled128x4;
  bool mayShareTiles = op.isPacked() || (op.getBatches() > 1 && tokens % kQuantizedRows);
  if (elements % kSection || elements % block)
    return "heads of " + std::to_string(elements) + " elements are no whole blocks of " +
           std::to_string(std::max(kSection, block));
  if (quantizesInLanes(op))
    return whyNotInLanes(op, areTiled);
  if (tokens < kQuantizedRows)
    return "queries of fewer than 128 tokens share tiles with those of other heads";
  return areTiled && mayShareTiles ? "sequences have parts of one tile of 128 rows of scales" : "";
}

double AttentionOp::getExponentFactor() { return exponentFactorOf(*this); }
double AttentionOp::getTangentFactor() { return tangentFactorOf(*this); }

LogicalResult AttentionOp::verify() {
  Checked query = operand(*this, "query", getQuery()), key = operand(*this, "key", getKey());
  Checked value = operand(*this, "value", getValue());
  Type element = query.type.getElementType();
  if (!element.isBF16() && !element.isF16() && !isa<Float8E4M3FNType>(element) && !isBlockScaled())
    return withNote(query.must("have elements of type bf16, f16 or f8E4M3FN"), // attention (C2)
                    "convert it with arith.truncf");
  if (failed(verifyTokens(query, isPacked())) || failed(verifyTokens(key, hasPackedKeys())) ||
      failed(verifyTokens(value, hasPackedKeys()))) // attention (C1)
    return failure();
  if (query.type.getEncoding())
    return withNote(query.must("have no layout"), "layouts are of scales"); // attention (C2)
  for (const Checked &tokens : {key, value})
    if (!isBlockScaled() &&
        failed(verifyElements(tokens, element, key.type.getElementType()))) // attention (C2)
      return failure();
  if (failed(verifyOrder(*this)) || failed(verifyOffsets(*this)) || failed(verifyLatent(*this)) ||
      failed(verifySizes(*this, query, key, value)) || // attention (C3), (C4)
      failed(verifySoftmax(*this)) || failed(verifyHeads(*this, query.type.getShape())) ||
      failed(verifySequences(*this, getBatches())) || failed(verifyQuantized(*this, key, value)) ||
      (isBlockScaled() && failed(verifyBlockScaled(*this, query, key, value))))
    return failure();
  SmallVector<int64_t> shape(query.type.getShape());
  shape.back() = getValueElements();
  if (!getResult()) // which the epilogue region has not
    return success();
  Type ofResult = getEpilogueBody().empty() ? getPlainElementType() : getElementType();
  return verifyType(result(*this, "result", getResult()),
                    query.type.clone(shape, ofResult)); // attention (C6)
}

LogicalResult AttentionOp::verifyRegions() {
  return verifyRegion(*this); // attention (C20), (C21)
}
