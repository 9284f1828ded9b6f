//===- AttentionBytes.cpp - Attention of e4m3 with wgmma --------------------===//
//
// Tensor cores take operands of 8 bits whose elements of K follow one another, so that a role of
// its own transposes each block of values (pipe.transpose_tile). Powers are 2^8 times as large as
// elsewhere, up to 256, so that e4m3 has more of the small ones; sums of powers are, too.
//
// The accumulator of e4m3 keeps 14 bits of a sum. Products of powers and one block of values are
// added to sums of fp32 in registers: sums = fma(sums, shrink, products), where `shrink` is what
// the maximum of the block has made of earlier sums. Columns of values pass one part after the
// other where registers have no room for all sums twice.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Makes the sums of a tile: one fragment, or in bytes one of each part, with that of a block.
Value AttentionBuilder::makeSums() {
  promoted.clear();
  if (!attention.isPromoted())
    return fragment(attention.valueElements());
  for (int64_t first = 0; first < attention.valueElements(); first += attention.partColumns()) {
    Value sums = fragment(attention.partColumns());
    promoted.push_back({sums, fragment(attention.partColumns())});
  }
  return {};
}

/// The factor of the head of keys of a tile in `factors`: one for all, for each head, or for each
/// head of each sequence.
Value AttentionBuilder::factorOf(const QueryTile &tile, Value factors) {
  int64_t count = cast<GlobalType>(factors.getType()).getShape()[0];
  Value place = b.constant(0);
  if (count > attention.keyHeads())
    place = b.add(b.mul(tile.batch, attention.keyHeads()), tile.keyHead);
  else if (count > 1)
    place = tile.keyHead;
  return b.entry(factors, place);
}

void AttentionBuilder::takeFactors(QueryTile &tile) {
  keyFactor = Value();
  if (!args.keyFactors)
    return;
  keyFactor = factorOf(tile, args.keyFactors);
  tile.valueFactor = factorOf(tile, args.valueFactors);
}

/// The values of a block, transposed: a tile for each part of their columns. Two roles that have
/// halves of latent values have rings of their own, which are filled in turn.
SmallVector<Value> AttentionBuilder::transposedParts(Value values) {
  int64_t columns = attention.partColumns();
  SharedType type = attention.ofValues().tile(columns, attention.keys);
  SmallVector<Value> tiles(promoted.size());
  size_t halves = attention.isLatent() ? 2 : 1, ofHalf = promoted.size() / halves;
  for (size_t i = 0; i < promoted.size(); ++i) {
    size_t half = i % halves, part = half * ofHalf + i / halves;
    auto transposed =
        TransposeTileOp::create(b, type, values, int64_t(part) * columns, /*dest=*/Value());
    transposed->setAttr(kRingAttr, b.getStringAttr(half ? "transposed_values" : "transposed"));
    transposed->setAttr(PipeDialect::kRoleAttr, b.getStringAttr(kTransposeRole));
    tiles[part] = transposed.getResult();
  }
  return tiles;
}

/// Adds a part of the values of a block, times the powers of `state`, to its sums, which `state`
/// says how to scale.
void AttentionBuilder::addPart(size_t number, ArrayRef<Value> values, const RowState &state) {
  const PromotedSums &part = promoted[number];
  MmaOp::create(b, part.products, state.powers, values[number]);
  Value shrink = toColumns(state.shrink, attention.partColumns());
  Value sums = math::FmaOp::create(b, read(part.sums), shrink, read(part.products));
  WriteOp::create(b, sums, part.sums, uint64_t(0)).setComplete(true);
}

/// Adds all parts but for the first, which is multiplied together with the next block of keys: it
/// comes last, because powers are in registers until then.
SmallVector<Value> AttentionBuilder::addOtherParts(const QueryTile &tile, const BlockRows &rows,
                                                   const RowState &state) {
  SmallVector<Value> values = transposedParts(loads.value(tile, rows));
  for (size_t part = 1; part < promoted.size(); ++part)
    addPart(part, values, state);
  return values;
}
