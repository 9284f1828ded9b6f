//===- AttentionLoads.cpp - Queries, keys and values ----------------------===//
//
// Keys and values are rows of matrices of all tokens, a head a range of columns. Boxes of queries
// may reach into the next sequence, or into heads of other keys, whose rows are computed and not
// stored. Boxes of keys may not, because a value times zero is no zero if it is no number: where a
// block may reach beyond its sequence, sequences are planes. Keys behind the last row load as zero.
// Packed sequences are planes that end with them (pipe.make_tensor_map).
//
// The keys of a block that lie in one page of a cache are a box. A box behind the length of its
// sequence is one behind the last row of the cache, so that no page is read for it.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/Rings.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Value AttentionLoads::query(const QueryTile &tile) {
  SharedType type = attention.tile(attention.partRows(), attention.queryElements());
  if (attention.tileHeads == 1)
    return LoadOp::create(b, type, args.queries, tile.row,
                          b.mul(tile.head, attention.queryElements()),
                          /*existing=*/Value())
        .getResult();
  auto loaded =
      LoadOp::create(b, type, args.queries, tile.head, b.constant(0), /*existing=*/Value());
  loaded.getPlaneMutable().assign(tile.row);
  return loaded.getResult();
}

BlockRows AttentionLoads::rowsOf(const QueryTile &tile, Value block) {
  Value first = b.mul(block, attention.keys);
  BlockRows rows;
  for (int64_t key = 0; key < attention.keys; key += attention.boxKeys())
    rows.push_back(rowOfKey(tile, key ? b.add(first, b.constant(key)) : first));
  return rows;
}

Value AttentionLoads::key(const QueryTile &tile, const BlockRows &rows) {
  return load(args.keys, tile, rows, attention.queryElements(), "keys");
}

Value AttentionLoads::value(const QueryTile &tile, const BlockRows &rows) {
  return load(args.values, tile, rows, attention.valueElements(), "values");
}

Value AttentionLoads::load(Value map, const QueryTile &tile, const BlockRows &rows,
                           int64_t elements, StringRef ring) {
  Value column = attention.op.getHeadsFirst() ? b.constant(0) : b.mul(tile.keyHead, elements);
  auto loaded = LoadOp::create(b, attention.tile(attention.keys, elements), map, rows.front(),
                               column, /*existing=*/Value());
  if (attention.hasPlanes())
    loaded.getPlaneMutable().assign(tile.keysEnd ? tile.keysEnd : tile.batch);
  loaded.getBelowMutable().assign(ArrayRef(rows).drop_front());
  loaded->setAttr(kRingAttr, b.getStringAttr(ring));
  return loaded.getResult();
}

/// The row of key `key` of a sequence in its matrix, or in its plane. A block that no query sees is
/// behind all rows.
Value AttentionLoads::rowOfKey(const QueryTile &tile, Value key) {
  if (attention.isPaged())
    return rowInPage(tile, key);
  if (attention.hasPackedKeys())
    return b.add(key, b.sub(args.keyRows, tile.keys));
  Value row = key;
  if (!attention.hasPlanes())
    row = b.add(b.mul(tile.batch, attention.keyTokens()), key);
  if (attention.partsOfKeys() == 1 || !attention.mayHideBlocks())
    return row;
  Value isSeen = b.compare(arith::CmpIPredicate::slt, key, tile.keys);
  Value end = b.constant(attention.batches() * attention.keyTokens());
  return arith::SelectOp::create(b, isSeen, row, end);
}

Value AttentionLoads::rowInPage(const QueryTile &tile, Value key) {
  int64_t tokens = attention.pageTokens(), pagesOfSequence = attention.op.getPagesOfSequence();
  Value number = b.min(b.div(key, tokens), pagesOfSequence - 1);
  Value index = b.add(b.mul(tile.batch, pagesOfSequence), number);
  Value page = b.entry(args.pages, index);
  int64_t lists = attention.op.getHeadsFirst() ? attention.keyHeads() : 1; // of a page
  if (lists > 1)
    page = b.add(b.mul(page, lists), tile.keyHead);
  Value row = b.add(b.mul(page, tokens), b.rem(key, tokens));
  Value isSeen = b.compare(arith::CmpIPredicate::slt, key, tile.keys);
  Value end = b.constant(attention.op.getKeyType().getDimSize(0) * lists * tokens);
  return arith::SelectOp::create(b, isSeen, row, end);
}

/// `number` as one from 0 to `most`, whatever it is.
Value AttentionLoads::limited(Value number, Value most) {
  Value some = arith::MaxSIOp::create(b, number, b.constant(0));
  return arith::MinSIOp::create(b, some, most);
}

/// Queries behind all packed sequences have no keys. Offsets that are wrong give some keys or none.
void AttentionLoads::findKeys(QueryTile &tile) {
  Value all = b.constant(attention.keyTokens()), isRest;
  if (attention.isPacked()) {
    isRest = b.compare(arith::CmpIPredicate::eq, tile.batch, b.constant(attention.batches()));
    tile.batch = b.min(tile.batch, attention.batches() - 1);
  }
  if (attention.hasPackedKeys()) {
    Value next = b.entry(args.keyOffsets, b.add(tile.batch, b.constant(1)));
    tile.keysEnd = limited(next, args.keyRows);
    Value begin = limited(b.entry(args.keyOffsets, tile.batch), tile.keysEnd);
    tile.keys = b.sub(tile.keysEnd, begin);
  } else {
    tile.keys = args.lengths ? limited(b.entry(args.lengths, tile.batch), all) : all;
  }
  if (isRest)
    tile.keys = arith::SelectOp::create(b, isRest, b.constant(0), tile.keys);
}
