//===- WarpAttention.h - The kernel of few queries over keys --------------===//
#pragma once

#include "Attention/CacheRows.h"
#include "Attention/ScaledRows.h"
#include "Attention/WarpState.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Reduce/GridMax.h"
#include "Scalars.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

class WarpAttention {
public:
  WarpAttention(AttentionOp op, LoweringContext &context);
  void lower();

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Lanes that share a row of keys and of values.
  static constexpr int64_t kLanesOfKey = 4, kLanesOfValue = 8;
  /// The largest exponent of a number of f16: powers up to 2^15 keep more small ones than powers up
  /// to 1, and so do queries. Powers begin 2^kGrowth below.
  static constexpr int kHalfPower = 15;
  /// Numbers of an access to a state, and the most bytes of states in shared memory.
  static constexpr int64_t kNumbersOfQuad = 4, kMostStates = 44 << 10;
  /// Parts whose numbers a warp loads before it adds the first: all of a few, or a batch.
  static constexpr int64_t kFewParts = 16, kPartsOfBatch = 8;

  /// The sizes of the operation, and of its tiles.
  struct Sizes {
    int64_t tokens, heads, keyHeads, elements, valueElements, keys; ///< sizes of a sequence
    int64_t pages = 0, pageTokens = 0; ///< pages of a sequence, and tokens of a page
    int64_t batches, rows, tiles;      ///< tiles of eight rows
    int64_t rowTiles, parts, warps;
    int64_t strip; ///< heads of keys of a CTA: neighbouring warps have one each
    int64_t keysOfStep;

    int64_t headsOfGroup() const { return heads / keyHeads; }
    int64_t strips() const { return keyHeads / strip; }
    int64_t works() const { return batches * strips() * rowTiles; }
    int64_t warpsOfHead() const { return warps / strip; }
    int64_t valueTiles() const { return valueElements / kWarpRows; }
  };
  /// A CTA's part of the keys of a sequence.
  struct Work {
    Int32 number; ///< number of the result that the parts share
    Int32 batch, keyHead, firstRow;
    Value keys;       ///< keys of the sequence, signed
    Int32 begin, end; ///< steps
  };

  static Sizes sizesOf(AttentionOp op, const KernelPlan &plan);
  void setOperands();
  void setResults();
  void findWork();
  Value keysOfSequence(Int32 batch);
  Value endOfKeys(Int32 firstRow, Value keys);
  Int32 firstStepSeen(Int32 firstRow, Value keys);
  Value isSeen(Value key, Value limit);
  Value factorOf(Value operand, Value pointer);
  void findLimits();
  Int32 tokenOf(Int32 row);
  Int32 headOf(Int32 row);
  Int32 placeOf(Int32 row);
  void loadQueries();
  Values queryWords(Int32 row);
  bool scalesQueries() const;
  Value scaleQueries(Values &words);

  /// Words of a step: of keys, and of values, or of one of them.
  enum Words : unsigned { OfKeys = 1, OfValues = 2, OfBoth = 3 };
  int64_t countOf(Words words) const {
    int64_t ofKeys = scaledKeys ? instructionsOfStep() * wordsOfScaledKeys() : 2 * keys->words();
    return (words & OfKeys ? ofKeys : 0) + (words & OfValues ? 4 * values->words() : 0);
  }
  Value pageOf(Int32 step);
  Values load(Int32 step, Value page, Words words);
  Values loadRows(Int32 first, Words words);
  bool unrollsSteps();
  /// The results of the loop that has `results` when an iteration has two of its steps.
  static mlir::ValueRange unrolledByTwo(mlir::ValueRange results);
  WarpState passKeys();
  void addKeys(Int32 step, llvm::ArrayRef<Value> words, WarpState &state);
  llvm::SmallVector<Values> scoresOf(llvm::ArrayRef<Value> words, Int32 step);
  Values productsOf(int64_t tile, llvm::ArrayRef<Values> keys);
  Values finished(Values scores, int64_t tile, Int32 step);
  Int32 keyOf(Int32 step, int64_t number);
  void hide(int64_t tile, Int32 step, Values &scores);
  void raise(llvm::ArrayRef<Values> scores, WarpState &state);
  Value softcapped(Value number);
  Value biased(Value score, int64_t row, Int32 key);
  Value numberOfHead(Value list, int64_t row);
  Values powersOf(int64_t tile, llvm::ArrayRef<Value> distances, WarpState &state);
  void addValues(llvm::ArrayRef<Value> words, llvm::ArrayRef<Values> powers, WarpState &state);
  Value packed(Value low, Value high, mlir::Type type);

  // Steps whose keys are multiplied beside the values of the step before (WarpSteps.cpp).
  /// The growth of an exponent of 2 before sums are scaled: powers are up to 2^kGrowth.
  static constexpr int kGrowth = 4;
  struct Step;
  /// Returns true for codes with scales. FP8 takes few instructions, and is slower by it (H200).
  bool overlapsSteps() { return op.getKeyScales() && !op.isBlockScaled(); }
  WarpState passOverlapped();
  Step stepOf(mlir::ValueRange numbers);
  Values flat(const Step &step);
  Step next(Int32 number, const Step &step);
  Value mayHide(Int32 number);
  Values distancesOf(llvm::ArrayRef<Values> scores, WarpState &state);
  Values raised(Int32 number, const Step &step);

  // Operands whose blocks mma.sync scales (WarpBlocks.cpp).
  void loadScaledQueries();
  int64_t instructionsOfStep() const { return sizes.keysOfStep / kWarpRows; }
  int64_t wordsOfScaledKeys() const { return 2 * scaledKeys->words() + scaledKeys->scaleWords(); }
  Int32 keyOfRow(Int32 row, int64_t number);
  Values loadScaledKeys(Int32 first, int64_t number);
  Values scaledProductsOf(int64_t tile, llvm::ArrayRef<Value> words);
  Values productsOfKeys(int64_t tile, llvm::ArrayRef<Value> words);
  Int32 elementOfRow(Int32 row);
  Values loadScaledValues(Int32 step);
  WarpState passBlocks();
  Values loadKeysOfStep(Int32 step);
  void hideSome(Int32 step, llvm::SmallVector<Values> &scores);
  Values quantizedPowers(int64_t tile, llvm::ArrayRef<Value> distances, WarpState &state);
  Values asOperand(llvm::ArrayRef<Value> codes, llvm::ArrayRef<Value> scales);
  void addScaledValues(llvm::ArrayRef<Value> words, llvm::ArrayRef<Values> powers,
                       WarpState &state);

  // One state of all, and its results (WarpResults.cpp).
  float powerExponent();
  WarpState makeState() { return {s, b, sizes.tiles, sizes.valueTiles(), powerExponent()}; }
  int64_t membersOfState() const;
  int64_t linesOfState() const { return membersOfState() * kWarpColumns; }
  int64_t bytesOfState() { return makeState().size() * linesOfState() * 4; }
  /// States that shared memory has room for: one for each warp, or for half of them.
  int64_t slotsOfWarps() {
    return sizes.warps * bytesOfState() <= kMostStates ? sizes.warps : sizes.warps / 2;
  }
  Value placeOfQuad(Value pointer, Int32 quad);
  void forOwnQuads(int64_t quads, llvm::function_ref<void(Int32)> body);
  void storeQuad(llvm::ArrayRef<Value> numbers, Value place);
  void writeQuad(llvm::ArrayRef<Value> numbers, Value place);
  Values readQuad(Value pointer);
  void replaceWhen(Value condition, WarpState &state, llvm::function_ref<WarpState()> other);
  Values maximaOfWarps(const WarpState &state);
  void addStates();
  void reduceWarps(WarpState &state);
  void write(const WarpState &state, Value pointer);
  WarpState read(Value pointer);
  Value stateOfPart(Int32 part);
  using HeadsOfParts = llvm::function_ref<llvm::SmallVector<Values>(Int32, int64_t)>;
  bool hasFewParts() const { return sizes.parts <= kFewParts; }
  llvm::SmallVector<Values> loadHeads(Int32 first, int64_t count);
  llvm::SmallVector<Values> loadParts(Int32 quad, Int32 first, int64_t count);
  Values forBatches(Values carried,
                    llvm::function_ref<Values(Int32, int64_t, mlir::ValueRange)> body);
  void raiseToParts(WarpState &all, HeadsOfParts headsOf);
  Values powersOfPart(const Values &numbers, WarpState &all);
  void addSumsOfParts(WarpState &all, HeadsOfParts headsOf);
  Value powerOfQuad(Int32 quad, llvm::ArrayRef<Value> powers, int64_t row);
  Values sumOfParts(Int32 quad, WarpState &all, HeadsOfParts headsOf);
  Values resultsOfParts(WarpState &all, HeadsOfParts headsOf);
  WarpState stateOfParts();
  void reduceCtas(WarpState &state);
  Value isLastCta();
  Int32 rowOfLane(int64_t row);
  void addSinks(WarpState &state);
  void store(WarpState &state);
  Value elementsOf(const Values &numbers);
  Value addressOf(Int32 row, int64_t headBytes);
  void storeRow(const WarpState &state, int64_t row, Value inverse);
  void storeLogSum(WarpState &state, int64_t row);

  AttentionOp op;
  Sizes sizes;
  KernelBuilder kernel;
  mlir::ImplicitLocOpBuilder &b;
  Scalars s;
  mlir::Type element;
  std::optional<CacheRows> keys, values;
  std::optional<ScaledRows> scaledQueries, scaledKeys; ///< in place of `keys`, with block_scales
  std::optional<ScaledRows> scaledValues;              ///< in place of `values`, with scales there
  /// Pointers; null where there are none.
  Value query, result, lengths, pages, keyFactors, valueFactors, sinks, slopes, lse;
  Value resultPitch; ///< i64, bytes from a token's result to the next; null: without gaps
  Value shared, maxima, ticket, workspace, counters;
  Values epilogueInputs;             ///< pointers
  Value quantizeAmax, codes, scales; ///< a number, and pointers
  std::optional<Int32> lane, warp;
  std::optional<Work> work;
  Value factor, valueFactor;  ///< f32 factors of scores, in the exponent of 2, and of results
  Values factorsOfRow;        ///< factors of the scores of each row of the lane
  Values limits;              ///< end of the keys that each row of the lane sees
  Values places, slopesOfRow; ///< key at the place of each row, and its slope in the exponent of 2
  llvm::SmallVector<Values> queryOfTile; ///< words of operand B, and those of its scales
};

} // namespace fp4
