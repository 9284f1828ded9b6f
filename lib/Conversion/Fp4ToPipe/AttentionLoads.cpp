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
  SharedType type = attention.tileOfQueries();
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
  if (attention.hasPlanes() && !attention.keysHavePlanes()) {
    BlockRows ofAll;
    for (Value row : rows)
      ofAll.push_back(b.add(b.mul(tile.keyBatch, attention.keyTokens()), row));
    return load(args.keys, tile, ofAll, attention.tileOfKeys(), "keys");
  }
  return load(args.keys, tile, rows, attention.tileOfKeys(), "keys");
}

Value AttentionLoads::value(const QueryTile &tile, const BlockRows &rows) {
  return load(args.values, tile, rows, attention.tileOfValues(), "values");
}

Value AttentionLoads::valueRows(const QueryTile &tile, Value block) {
  Value head = b.add(b.mul(tile.batch, attention.keyHeads()), tile.keyHead);
  auto loaded = LoadOp::create(b, attention.tileOfValues(), args.values,
                               b.mul(head, attention.valueElements()), b.mul(block, attention.keys),
                               /*existing=*/Value());
  loaded->setAttr(kRingAttr, b.getStringAttr("values"));
  return loaded.getResult();
}

/// The scales of a matrix, which has whole scale tiles of 128 rows: from `rowBlock` on, and from
/// `column`, which counts scale tiles too.
Value AttentionLoads::loadScales(Value scales, SharedType type, Value rowBlock, Value column,
                                 StringRef ring) {
  auto loaded = LoadOp::create(b, type, scales, rowBlock, column, /*existing=*/Value());
  if (!ring.empty())
    loaded->setAttr(kRingAttr, b.getStringAttr(ring));
  return loaded.getResult();
}

/// A part of a tile may lie behind the last query.
Value AttentionLoads::queryScales(const QueryTile &tile) {
  auto blocks = int64_t(llvm::divideCeil(attention.queryTokens(), kScaleBlockRows));
  Value first = b.sub(b.constant(attention.queryTokens()), tile.left);
  Value block = b.min(b.div(first, kScaleBlockRows), blocks - 1);
  Value head = b.add(b.mul(tile.batch, attention.heads()), tile.head);
  return loadScales(args.scales[0],
                    attention.ofKeys().scaleTile(attention.partRows(), attention.queryElements()),
                    b.add(b.mul(head, blocks), block), b.constant(0), /*ring=*/"");
}

Value AttentionLoads::keyScales(const QueryTile &tile, Value block) {
  auto blocks = int64_t(llvm::divideCeil(attention.keyTokens(), kScaleBlockRows));
  Value head = b.add(b.mul(tile.batch, attention.keyHeads()), tile.keyHead);
  Value first = b.div(b.mul(block, attention.keys), kScaleBlockRows);
  return loadScales(args.scales[1],
                    attention.ofKeys().scaleTile(attention.keys, attention.queryElements()),
                    b.add(b.mul(head, blocks), first), b.constant(0), "key_scales");
}

Value AttentionLoads::valueScales(const QueryTile &tile, Value block) {
  auto blocks = int64_t(llvm::divideCeil(attention.valueElements(), kScaleBlockRows));
  Value head = b.add(b.mul(tile.batch, attention.keyHeads()), tile.keyHead);
  SharedType type = attention.ofValues().scaleTile(attention.valueElements(), attention.keys);
  return loadScales(args.scales[2], type, b.mul(head, blocks),
                    b.mul(block, type.getColumns() / kScaleBlockColumns), "value_scales");
}

Value AttentionLoads::load(Value map, const QueryTile &tile, const BlockRows &rows, SharedType type,
                           StringRef ring) {
  int64_t elements = type.getColumns();
  Value column = attention.op.getHeadsFirst() ? b.constant(0) : b.mul(tile.keyHead, elements);
  auto loaded = LoadOp::create(b, type, map, rows.front(), column, /*existing=*/Value());
  if (cast<TensorMapType>(map.getType()).hasPlanes())
    loaded.getPlaneMutable().assign(tile.keysEnd ? tile.keysEnd : tile.keyBatch);
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
    row = b.add(b.mul(tile.keyBatch, attention.keyTokens()), key);
  if (attention.partsOfKeys() == 1 || !attention.mayHideBlocks())
    return row;
  Value isSeen = b.compare(arith::CmpIPredicate::slt, key, tile.keys);
  int64_t sequences = attention.batches() / attention.sharingSequences();
  Value end = b.constant(sequences * attention.keyTokens());
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
  int64_t sharing = attention.sharingSequences();
  tile.keyBatch = sharing > 1 ? b.div(tile.batch, sharing) : tile.batch;
  if (isRest)
    tile.keys = arith::SelectOp::create(b, isRest, b.constant(0), tile.keys);
}
