//===- AttentionBuilder.h - The kernel of fp4.attention -------------------===//
#pragma once

#include "ResultStores.h"
#include "SumConversion.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/SharedKeys.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Numerics/Attention.h"

#include <array>
#include <numeric>
#include <string>

namespace fp4 {

/// Rows of a warpgroup of wgmma, columns of a swizzled row, and columns of which each thread has
/// some of a row.
inline constexpr int64_t kGroupRows = 64, kPanel = 64, kThreadColumns = 8;

/// Elements of an operand of a product, and of the scales of its blocks where tensor cores take
/// these.
struct OperandFormat {
  mlir::Type element, scale; ///< null: no scales
  int64_t block = 1;         ///< elements that share a scale

  bool isPacked() const { return element.getIntOrFloatBitWidth() == 4; }
  int64_t bytesOf(int64_t elements) const { return elements * element.getIntOrFloatBitWidth() / 8; }
  /// The layout of tiles of rows of `elements`: panels of 128 bytes, or of 64 or 32 where rows are
  /// not so wide.
  pipe::Layout layoutOf(int64_t elements) const {
    int64_t bytes = bytesOf(elements);
    return bytes % 128 == 0  ? pipe::Layout::Swizzle128B
           : bytes % 64 == 0 ? pipe::Layout::Swizzle64B
                             : pipe::Layout::Swizzle32B;
  }
  /// A box of rows that are as wide as the swizzle, of heads of `elements`.
  pipe::TensorMapType box(llvm::ArrayRef<int64_t> rows, int64_t elements) const {
    llvm::SmallVector<int64_t> shape(rows);
    shape.push_back(pipe::swizzleWidth(layoutOf(elements)) * 8 / element.getIntOrFloatBitWidth());
    return pipe::TensorMapType::get(shape, element, layoutOf(elements));
  }
  pipe::SharedType tile(int64_t rows, int64_t elements) const {
    return pipe::SharedType::get({rows, elements}, element, layoutOf(elements));
  }
  /// The scales of rows of `elements`, in whole scale tiles.
  pipe::SharedType scaleTile(int64_t rows, int64_t elements) const {
    int64_t columns = llvm::alignTo(llvm::divideCeil(elements, block), pipe::kScaleBlockColumns);
    return pipe::SharedType::get({int64_t(llvm::alignTo(rows, pipe::kScaleBlockRows)), columns},
                                 scale, pipe::Layout::Tiled128x4);
  }
};

/// An fp4.attention, and the tile of its plan.
struct Attention {
  Attention(AttentionOp op, const KernelPlan &plan)
      : op(op), plan(plan), rows(plan.tile[0]), keys(plan.tile[1]), tileHeads(plan.tile[2]),
        splits(std::max<int64_t>(1, plan.cluster[0])), slices(plan.split.kSlices.value_or(1)),
        results(resultsOf(op)) {}

  AttentionOp op;
  const KernelPlan &plan;
  int64_t rows, keys; ///< rows of a tile, and keys of a block
  int64_t tileHeads;  ///< heads of a token that are rows of a tile
  int64_t splits;     ///< CTAs that share the keys of a tile
  int64_t slices;     ///< parts of the keys of a tile, whose sums another kernel adds
  Results results;    ///< what becomes of the elements

  /// Returns true when accumulators are in tensor memory: another role than that of the threads
  /// multiplies.
  bool hasLanes() {
    auto roles = mlir::cast<pipe::RolePlanAttr>(plan.roles);
    return roles.getDriver(pipe::Engine::Tensor) != roles.getDriver(pipe::Engine::Threads);
  }
  /// Rows of which one role of threads has the numbers: of all warpgroups of wgmma, or of one with
  /// TMEM lanes.
  int64_t partRows() { return hasLanes() ? pipe::kMmaM : rows; }
  int64_t parts() { return rows / partRows(); }

  mlir::Type element() { return op.getQueryType().getElementType(); }
  /// The formats of the operands of both products: of queries and keys, and of powers and values.
  OperandFormat ofKeys() { return {element(), scaleOf(op.getQueryScales()), blockOfKeys()}; }
  OperandFormat ofValues() {
    bool areScaled = isBlockScaled() && op.getValueScales();
    return {op.getValueType().getElementType(),
            areScaled ? scaleOf(op.getValueScales()) : mlir::Type(), blockOfKeys()};
  }
  static constexpr int64_t kPackedBlock = 16;
  bool isBlockScaled() { return op.isBlockScaled(); }
  int64_t blockOfKeys() { return element().getIntOrFloatBitWidth() == 4 ? kPackedBlock : 32; }
  static mlir::Type scaleOf(mlir::Value scales) {
    return scales ? mlir::getElementTypeOrSelf(scales.getType()) : mlir::Type();
  }
  /// Columns of elements that threads convert, and quantize, at a time: those of 64 or 128 whose
  /// rows two warpgroups of wgmma gather (pipe.gather_rows), or a thread has.
  int64_t quantizedColumns() {
    constexpr int64_t wide = 2 * kPanel;
    bool isWide = hasLanes()
                      ? results.quantizer->hasF32Scales()
                      : valueElements() % wide == 0 && (!isPromoted() || partColumns() == wide);
    return isWide ? wide : kPanel;
  }
  /// Returns true when operands have 8 bits, and powers are multiplied by a power of two.
  bool isOfBytes() { return op.isOfBytes(); }
  /// Returns true when wgmma multiplies such operands: values are transposed, and sums of a block
  /// are promoted to fp32.
  bool isPromoted() { return isOfBytes() && !hasLanes(); }
  /// Returns true when values are columns of keys, and two roles have halves of them.
  bool isLatent() { return bool(op.getLatent()); }
  int64_t batches() { return op.getBatches(); }
  /// Sequences of queries in a row whose keys are one sequence.
  int64_t sharingSequences() { return getSharingSequences(op); }
  int64_t queryTokens() { return op.getQueryTokens(); }
  int64_t keyTokens() { return op.getKeyTokens(); }
  int64_t heads() { return op.getHeads(); }
  int64_t keyHeads() { return op.getKeyHeads(); }
  int64_t headsOfGroup() { return op.getHeadsOfGroup(); }
  int64_t queryElements() { return op.getElements(); }
  int64_t valueElements() { return op.getValueElements(); }

  bool isPacked() { return op.isPacked(); }
  bool hasPackedKeys() { return op.hasPackedKeys(); }
  bool isPaged() { return bool(op.getPages()); }
  int64_t pageTokens() { return op.getPageTokens(); }
  /// Keys of a box: a block of keys, or what of it lies together in a page.
  int64_t boxKeys() { return isPaged() ? std::gcd(pageTokens(), keys) : keys; }
  /// Returns true when boxes of keys end with their sequence, since the next one lies behind it.
  bool hasPlanes() {
    return hasPackedKeys() ||
           (!isPaged() && batches() > sharingSequences() && keyTokens() % keys != 0);
  }

  /// Tokens of a tile of queries and of a part of one, and tiles of a sequence.
  int64_t tileTokens() { return rows / tileHeads; }
  int64_t partTokens() { return partRows() / tileHeads; }
  int64_t tiles() { return int64_t(llvm::divideCeil(queryTokens(), tileTokens())); }
  /// Tiles of a token: one for each head, or for each group of heads, or for parts of a group.
  int64_t headTiles() { return tileHeads > 1 ? keyHeads() * tilesOfGroup() : heads(); }
  int64_t tilesOfGroup() { return int64_t(llvm::divideCeil(headsOfGroup(), tileHeads)); }
  /// Heads that are rows of a tile with several; others are beyond their group.
  int64_t existingHeads() { return std::min(tileHeads, headsOfGroup()); }
  int64_t works() {
    return (isPacked() ? tilesOfAll() : tiles() * batches()) * headTiles() * slices;
  }
  /// Tiles of packed sequences at most: each may end within one, and so may the rest of the tokens.
  int64_t tilesOfAll() { return queryTokens() / tileTokens() + batches() + 1; }

  /// Columns of tiles: those of a token, for each sequence and slice.
  int64_t lists() { return (isPacked() ? 1 : batches()) * headTiles() * slices; }

  /// Growth of an exponent of 2 before sums are scaled: powers stay below 2^kLazyGrowth.
  double growth() {
    if (KeyOrderAttr order = op.getOrderAttr())
      return order.getGrowth().getValueAsDouble();
    return hasLanes() && !isOfBytes() ? numerics::kLazyGrowth : 0;
  }
  /// The power of two by which powers of 8 bits are multiplied: those of a maximum that has grown
  /// are up to 2^kByteShift, whatever the growth.
  double shift() {
    return (ofValues().isPacked() ? numerics::kPackedShift : numerics::kByteShift) - growth();
  }

  /// Numbers of a row that are the sum of its powers: one for each thread of the row.
  int64_t sumColumns() { return hasLanes() ? 1 : kThreadColumns; }

  int64_t blocks() { return int64_t(llvm::divideCeil(keyTokens(), keys)); }
  /// Columns of the result that a CTA of a cluster adds up at a time.
  int64_t columnsOfPiece() {
    bool isEven = valueElements() % (splits * kThreadColumns) == 0;
    return isEven ? valueElements() / splits : kThreadColumns;
  }
  /// Keys that a query sees at most; 0: all.
  int64_t window() { return int64_t(op.getWindow().value_or(0)); }
  /// Returns true when there is no key that a query does not see.
  bool seesAll() { return !op.getCausal() && !op.getLengths() && !isPacked(); }
  /// Parts of the keys of a tile, by CTAs of a cluster or by slices.
  int64_t partsOfKeys() { return splits * slices; }
  /// Returns true when a CTA may have blocks that no query sees.
  bool mayHideBlocks() { return !seesAll() || blocks() % partsOfKeys() != 0; }
  /// Returns true when blocks in front of the last one of a tile may have keys that some query does
  /// not see: a sequence that ends, wherever it does, hides keys of the last one alone.
  bool hidesBeforeLast() { return window() || (op.getCausal() && queryTokens() > 1); }
  /// Returns true when blocks with hidden keys pass in a loop of their own. A branch around masks
  /// in each block keeps ptxas from computing maxima while values are multiplied: without it heads
  /// of 192 and 128 are 2 to 3 % faster on an H200, and those of 128 with blocks of 160 keys, or of
  /// 256, 4 % slower, whose sums, scores and powers have more registers.
  bool loopsApart() {
    constexpr int64_t mostRegisters = 176, rowsOfTwoGroups = 2 * kGroupRows;
    int64_t registers = valueElements() / 2 + keys * 3 / 4;
    return rows == rowsOfTwoGroups && registers <= mostRegisters && !window() && !isOfBytes();
  }
  /// Returns true when the sums of a block are scaled with the products of the next one. Scaling
  /// sums of 16-bit floats while the products of its keys run, beside a wait there, saves 2 to 5 %
  /// on an H200.
  bool scalesLate() { return isPromoted() || (rows > kGroupRows && !isLatent() && !hasLanes()); }
  /// Returns true when no block has masks.
  bool isWhole() { return !mayHideBlocks() && keyTokens() % keys == 0; }

  pipe::TensorMapType boxOfQueries() {
    return tileHeads > 1 ? ofKeys().box({partTokens(), tileHeads}, queryElements())
                         : ofKeys().box({partRows()}, queryElements());
  }
  /// Keys of other sequences are hidden: those of packed elements have no planes.
  bool keysHavePlanes() { return hasPlanes() && element().getIntOrFloatBitWidth() >= 8; }
  bool valuesHavePlanes() { return hasPlanes() && !op.hasValueRows(); }
  pipe::TensorMapType boxOfKeys() {
    return keysHavePlanes() ? ofKeys().box({1, keys}, queryElements())
                            : ofKeys().box({boxKeys()}, queryElements());
  }
  pipe::TensorMapType boxOfValues() {
    if (op.hasValueRows())
      return ofValues().box({valueElements()}, keys);
    return valuesHavePlanes() ? ofValues().box({1, keys}, op.getValueType().getShape().back())
                              : ofValues().box({boxKeys()}, op.getValueType().getShape().back());
  }
  pipe::SharedType tileOfQueries() { return ofKeys().tile(partRows(), queryElements()); }
  pipe::SharedType tileOfKeys() { return ofKeys().tile(keys, queryElements()); }
  pipe::SharedType tileOfValues() {
    return op.hasValueRows() ? ofValues().tile(valueElements(), keys)
                             : ofValues().tile(keys, valueElements());
  }
  /// Columns of values whose sums of a block threads promote at a time, in bytes: registers have
  /// room for those of 128 beside the sums of as many, and for fewer beside more. Columns of a role
  /// of latent values.
  int64_t partColumns() {
    if (isLatent() && !isOfBytes())
      return valueElements() / 2;
    return valueElements() <= 128 && !isLatent() ? valueElements() : kPanel;
  }
  /// The elements of all tokens, and such elements as an argument beside its pitch.
  pipe::GlobalType elements() {
    return pipe::GlobalType::get({op.getResultRows(), op.getResultColumns()}, results.type);
  }
  pipe::GlobalType elementsWithGaps() { return Gemm::withoutSizes(elements()); }
  /// Tiles in the registers of a warpgroup.
  pipe::FragmentKind kind() {
    return hasLanes() ? pipe::FragmentKind::Lanes : pipe::FragmentKind::Wgmma;
  }
  mlir::RankedTensorType numbers(int64_t columns) {
    return pipe::DistributionAttr::tensorOf(kind(), columns, mlir::Float32Type::get(context()));
  }
  mlir::MLIRContext *context() { return op.getContext(); }
};

/// A tile of queries: its place, and the keys of its sequence.
struct QueryTile {
  mlir::Value row, rowsEnd; ///< first token of the tile among all, and the end of its sequence
  mlir::Value left;         ///< tokens of the sequence from `row` on
  mlir::Value batch, keyBatch; ///< sequence, and that of its keys
  mlir::Value head, keyHead;   ///< first head of the tile, and the head of its keys
  mlir::Value slice;         ///< part of the keys; null: all
  mlir::Value keys;          ///< keys of the sequence
  mlir::Value keysEnd;       ///< end of the keys among those of all packed sequences
  mlir::Value valueFactor;   ///< factor of the values of the head (f32); null: 1
  mlir::Value slopes;        ///< slope of each row, in the scale of products, negative; null: none
};

/// First rows of the boxes of a block of keys.
using BlockRows = llvm::SmallVector<mlir::Value>;

/// First rows that are kept from block to block of keys, of a cache.
struct KeptRows {
  BlockRows rows; ///< first rows of the last block
  BlockRows next; ///< first rows of the next block, whose pages are read a block ahead
};

/// Numbers that a tile carries from block to block of keys.
struct RowState {
  mlir::Value maximum; ///< origin of the powers so far, a number for each row
  mlir::Value sum;     ///< sum of the powers that each thread has
  mlir::Value powers;  ///< powers of the last block, whose values come while the next one begins
  mlir::Value scales;  ///< scales of the blocks of powers; null: none
  mlir::Value shrink;  ///< factor by which the last block multiplies sums; carried with scalesLate
  KeptRows kept;
};

/// Rows of a tile that a role of threads has, by the name of the role: none for its driver.
struct QueryPart {
  QueryTile tile;
  mlir::Value query;
  mlir::Value scales; ///< scales of blocks in tensor memory; null: none
  std::string role;
};

/// A tile in shared memory, or of powers in tensor memory, that tensor cores multiply.
struct LaneOperand {
  mlir::Value data;
  mlir::Value scales; ///< scales of blocks in tensor memory, of powers in shared; null: none
  mlir::Value row;    ///< row of the scale tile at which the scales begin; null: the first
};

/// Arguments of the kernel; null where there are none.
struct AttentionArguments {
  AttentionArguments(Attention &attention, mlir::gpu::GPUFuncOp func);

  mlir::Value queries, keys, values, result; ///< tensor maps, and a buffer
  mlir::Value pitch;                         ///< bytes from row to row of `result` (i64); null: no gap
  std::array<mlir::Value, 3> scales;         ///< of blocks of queries, keys and values
  mlir::Value lengths, pages;
  mlir::Value table, places;       ///< tiles of packed queries (GroupTiles.h), and their number
  mlir::Value keyOffsets, keyRows; ///< offsets of packed keys, and the number of all keys
  mlir::Value keyFactors, valueFactors;
  mlir::Value sinks, slopes, lse;
  mlir::Value wholes; ///< sums of powers of each slice, whose exponents are in `lse`
  llvm::SmallVector<mlir::Value> inputs; ///< of the epilogue region
  ResultArguments derived;
};

/// Sums of some columns of values: of all blocks, and of one in bytes, else null.
struct PromotedSums {
  mlir::Value sums, products;
};

/// Launches the kernel that adds the sums of slices of keys. `buffers` are the sums of values, the
/// exponents of 2 that they are scaled by, the sums of powers, the sinks, if there are any, the
/// results, the first of which may be strided, and the inputs of the epilogue region.
void combineSlices(mlir::RewriterBase &rewriter, Attention &attention,
                   const hw::TargetModel &target, mlir::ValueRange buffers);

/// Loads of tiles of queries, keys and values (AttentionLoads.cpp).
class AttentionLoads {
public:
  AttentionLoads(TileBuilder &b, Attention &attention, const AttentionArguments &args)
      : b(b), attention(attention), args(args) {}

  mlir::Value query(const QueryTile &tile);
  /// The rows of a block, and its keys and values.
  BlockRows rowsOf(const QueryTile &tile, mlir::Value block);
  mlir::Value key(const QueryTile &tile, const BlockRows &rows);
  mlir::Value value(const QueryTile &tile, const BlockRows &rows);
  /// The values of a block, of all keys a row for each element of a head.
  mlir::Value valueRows(const QueryTile &tile, mlir::Value block);
  /// Scales of blocks of a tile of queries, and of a block of keys or values.
  mlir::Value queryScales(const QueryTile &tile);
  mlir::Value keyScales(const QueryTile &tile, mlir::Value block);
  mlir::Value valueScales(const QueryTile &tile, mlir::Value block);
  /// Finds the keys of the sequence of a tile.
  void findKeys(QueryTile &tile);

private:
  mlir::Value load(mlir::Value map, const QueryTile &tile, const BlockRows &rows,
                   pipe::SharedType type, llvm::StringRef ring);
  mlir::Value loadScales(mlir::Value scales, pipe::SharedType type, mlir::Value rowBlock,
                         mlir::Value column, llvm::StringRef ring);
  mlir::Value rowOfKey(const QueryTile &tile, mlir::Value key);
  mlir::Value rowInPage(const QueryTile &tile, mlir::Value key);
  mlir::Value limited(mlir::Value number, mlir::Value most);

  TileBuilder &b;
  Attention &attention;
  const AttentionArguments &args;
};

/// Keys of a block that some query of the tile does not see; Maybe: a branch finds out.
enum class HiddenKeys { None, Maybe, Some };

class AttentionBuilder {
public:
  AttentionBuilder(mlir::gpu::GPUFuncOp func, Attention &attention)
      : b(func, attention.plan, attention.op.getLoc()), attention(attention), args(attention, func),
        loads(b, attention, args), conversion(b, attention.results, args.inputs, noRows) {}
  void build();

private:
  using Value = mlir::Value;

  /// Blocks of keys that a CTA takes, of which it takes the last one first.
  struct Range {
    Value begin, end;
  };

  QueryTile tileOf(Value number, Value head, Value tiles);
  void placeTile(QueryTile &tile, Value number);
  void buildTile(QueryTile tile);
  void inRole(llvm::StringRef role, llvm::ArrayRef<pipe::Engine> engines,
              llvm::function_ref<void()> body);
  RowState passBlocks(const QueryTile &tile, const Range &range, Value sums);
  Value countBlocks(const QueryTile &tile);
  Value firstBlockSeen(const QueryTile &tile);
  Range rangeOf(const QueryTile &tile);
  void keepRows(KeptRows &kept, const QueryTile &tile, Value block, const BlockRows &rows);
  BlockRows rowsAgain(const BlockRows &kept, const QueryTile &tile, Value block);
  Value countHidden(const QueryTile &tile, Value last, Value count);
  Value scoresOf(const QueryTile &tile, Value block, Value key, Value query, HiddenKeys hidden);
  Value scoresOf(const QueryTile &tile, Value block, Value products,
                 HiddenKeys hidden = HiddenKeys::Maybe);
  RowState firstWeights(Value scores);
  RowState nextMaximum(Value scores, const RowState &before);
  void addWeights(RowState &after, Value scores, const RowState &before);
  std::pair<Value, RowState> firstBlock(const QueryTile &tile, Value block);
  RowState nextBlock(const QueryTile &tile, Value block, Value query, Value sums, RowState before,
                     HiddenKeys hidden);
  Value originOf(Value maximum);
  Value powersOf(Value scores, Value maximum);
  void multiplyValues(const QueryTile &tile, const BlockRows &rows, const RowState &state,
                      Value sums);
  Value endForFirstQuery(const QueryTile &tile);
  Value softcapped(Value products);
  Value slopesOf(const QueryTile &tile);
  Value biased(const QueryTile &tile, Value firstKey, Value products);
  Value isMasked(const QueryTile &tile, Value firstKey);
  Value masked(const QueryTile &tile, Value firstKey, Value products);
  Value hide(const QueryTile &tile, Value firstKey, Value products);
  Value tokensOf(mlir::RankedTensorType type);

  // Operands of 8 bits (AttentionBytes.cpp).
  Value makeSums();
  void takeFactors(QueryTile &tile);
  Value factorOf(const QueryTile &tile, Value factors);
  llvm::SmallVector<Value> transposedParts(Value values);
  void addPart(size_t number, llvm::ArrayRef<Value> values, const RowState &state);
  llvm::SmallVector<Value> addOtherParts(const QueryTile &tile, const BlockRows &rows,
                                         const RowState &state);
  Value powerShift() { return splat(1, float(attention.shift())); }

  // Values that are columns of keys (AttentionLatent.cpp).
  void buildLatent(const QueryTile &tile);
  void inHalf(size_t number, llvm::function_ref<void()> body);
  void makeParts();
  void addLatent(const QueryTile &tile, Value block, Value query, RowState &state);
  void addColumns(size_t number, llvm::ArrayRef<Value> values, const RowState &state);
  Value handOver(Value numbers);
  Value taken(Value staged);
  void storeParts(const QueryTile &tile, Value factors);
  void finishLatent(const QueryTile &tile, const RowState &state);
  void inValues(llvm::function_ref<void()> body);

  // Accumulators in tensor memory (AttentionLanes.cpp).
  using LaneStates = llvm::SmallVector<RowState, 2>; ///< state of each part; the first keeps rows
  void buildLanes(const QueryTile &tile);
  llvm::SmallVector<QueryPart> partsOf(const QueryTile &tile);
  void inPart(size_t number, llvm::ArrayRef<QueryPart> parts, llvm::function_ref<void()> body);
  LaneStates passLanes(llvm::ArrayRef<QueryPart> parts, const QueryTile &tile, const Range &range);
  LaneStates firstLanes(llvm::ArrayRef<QueryPart> parts, const QueryTile &tile, Value block);
  LaneStates nextLanes(llvm::ArrayRef<QueryPart> parts, const QueryTile &tile, Value block,
                       Value more, const LaneStates &before);
  llvm::SmallVector<LaneOperand> writePowers(llvm::ArrayRef<QueryPart> parts,
                                             const LaneStates &states);
  Value multiplyKeys(const QueryPart &part, size_t number, const LaneOperand &keys);
  Value multiplyPowers(size_t number, const LaneOperand &powers, const LaneOperand &values,
                       Value more);
  LaneOperand keysOf(const QueryTile &tile, Value block, const BlockRows &rows);
  LaneOperand valuesOf(const QueryTile &tile, Value block, const BlockRows &rows);
  Value copyScales(Value scales);
  void roundPowers(RowState &state);
  Value laneScores(const QueryPart &part, Value block, Value products);

  // Sums of all keys (AttentionSums.cpp).
  void finish(const QueryTile &tile, Value sums, Value maximum, Value sum);
  void reduceInCluster(const QueryTile &tile, Value sums, Value maximum, Value whole);
  void reduce(Value fragment, int64_t columns, bool maximum);
  Value reduceRow(Value number, bool maximum);
  Value ownPiece(Value fragment);
  Value closeRows(const QueryTile &tile, Value maximum, Value whole);
  Value ofHeads(const QueryTile &tile, Value list);
  void storeLogSums(const QueryTile &tile, Value exponent, Value whole);
  void storeNumbers(const QueryTile &tile, Value numbers, Value dest);
  Value inverseOf(Value whole);
  void store(const QueryTile &tile, Value sums, int64_t first, int64_t columns, Value inverse);
  void storeColumns(const QueryTile &tile, Value sums, int64_t first, Value inverse);
  void quantizeColumns(const QueryTile &tile, Value elements, Value column);

  // Tiles in registers.
  Value splat(int64_t columns, float number);
  Value nothing(int64_t columns) { return splat(columns, -std::numeric_limits<float>::infinity()); }
  Value fragment(int64_t columns);
  Value read(Value sums, int64_t first, int64_t columns); ///< columns of a fragment, or of TMEM
  Value read(Value fragment) {
    return read(fragment, 0, mlir::cast<pipe::FragmentType>(fragment.getType()).getShape()[1]);
  }
  Value toColumns(Value rows, int64_t columns);
  Value sumOfRow(Value value, int64_t columns);
  Value maximumOfRow(Value value);
  Value exp2(Value value);
  Value rounded(Value numbers, mlir::Type element);
  void scale(Value sums, Value factors);
  /// The factor of scores, in the exponent of 2.
  Value factor(int64_t columns);

  TileBuilder b;
  Attention &attention;
  AttentionArguments args;
  AttentionLoads loads;
  const Value noRows; ///< inputs of the epilogue region have none
  SumConversion conversion;
  std::optional<BlockStores> stores;        ///< codes and scales of the elements
  Value keyFactor;                          ///< factor of products of the tile (f32); null: 1
  llvm::SmallVector<PromotedSums> promoted; ///< sums of the tile, in bytes or latent
};

} // namespace fp4
