//===- WarpMmas.cpp - Block-scaled GEMMs of mma.sync ------------------===//
//
// A warp multiplies its rows of A with its rows of B in steps of 32 bytes of K, 64 elements. The
// operands of a step are loaded before the instructions of the step before, so that ldmatrix and
// the tensor core overlap. The reads of a k tile are fenced, before loads of TMA that follow, while
// the instructions of the last step are still to come.
//
// A word of the scales' layout has the scales of one row for one step of NVFP4 and for two of
// MXFP4. MXFP8 and MXFP6, whose steps have 32 elements, have a word for four steps. Elements of 6
// bits take a byte each in memory, as they do in registers; elements of 4 bits beside them become
// bytes on their way (fp4/ISA/WarpOperands.h).
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "Common/TileLines.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/ISA/WarpOperands.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kLanes = 32;
/// Four unit scales of f8E8M0FNU.
constexpr int32_t kUnitScales = 0x7F7F7F7F;
/// Elements of a thread in an instruction.
constexpr int64_t kSums = 4;

/// The fragment of a warp in a tile.
struct WarpTile {
  int64_t rows, columns; ///< size of the fragment
  Int32 row, column;     ///< the first row and column in the tile
};

WarpTile warpTile(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state,
                  pipe::FragmentType fragment, int64_t tileRows) {
  int64_t rows = fragment.getShape()[0], columns = fragment.getShape()[1];
  Int32 warp = threadOfRole(b, op, state) / kLanes;
  int64_t below = tileRows / rows; // fragments below each other
  return {rows, columns, warp % below * rows, warp / below * columns};
}

Int32 laneOf(ImplicitLocOpBuilder &b) { return {b, NVVM::LaneIdOp::create(b, b.getI32Type())}; }

/// Gives the place of a warp to ops that otherwise count the rows of all warps of the role before.
struct LowerWarpPlace : PipePattern<pipe::PlaceOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PlaceOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getRows())
      return rewriter.notifyMatchFailure(op, "is the place of TMEM lanes");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    WarpTile tile = warpTile(b, op, state, cast<pipe::FragmentType>(op.getAccumulator().getType()),
                             int64_t(*op.getRows()));
    Int32 warp = threadOfRole(b, op, state) / kLanes;
    Value row = tile.row - warp * int64_t(hw::warpRowsA), column = tile.column;
    rewriter.replaceOp(op, {row, column});
    return success();
  }
};

/// The scales of an operand: their tile, and the first row in it whose scales this lane has.
struct ScaleTile {
  Value tile; ///< null for unit scales
  pipe::SharedType type;
  Int32 row;
  Value blocks; ///< scale tiles that exist; null where all do
};

/// Forms in which elements come into registers: 32 bytes of a row in a step, or a step of elements
/// of 4 and of 6 or 8 bits.
enum class DataForm { Alike, Codes, BesideCodes };

/// One operand of a warp: the places from which its lanes load data and scales.
class WarpOperand {
public:
  /// `rows` rows of `tile` from `firstRow` on; `line` is the address that this lane names for its
  /// loads. With `isA`, registers of the same k of two rows of 8 come one after the other.
  WarpOperand(ImplicitLocOpBuilder &b, Value tile, pipe::Layout layout, Int32 firstRow,
              int64_t rows, hw::MatrixLine<Int32> line, DataForm form, bool isA,
              const ScaleTile &scales)
      : b(b), rows(rows), width(pipe::swizzleWidth(layout)),
        line(tile, layout, firstRow + line.row), byte(line.byte), form(form), isA(isA),
        scales(scales) {}

  /// Loads registers of step `step`, four for each 16 rows.
  SmallVector<Value> loadData(int64_t step) const {
    if (form != DataForm::Alike)
      return orderOfInstructions(form == DataForm::Codes ? loadCodes(step) : loadBytes(step));
    SmallVector<Value> registers;
    Value first = line.at(byte ^ Int32(b, step * hw::warpRowBytes));
    for (int64_t row = 0; row < rows; row += hw::matrixRows)
      llvm::append_range(registers,
                         loadMatrices(b, offsetPointer(b, b.getLoc(), first, row * width)));
    return registers;
  }

  /// Loads the words of column `block` of the scale tiles, one for each 32 rows.
  SmallVector<Value> loadScales(int64_t block) const {
    if (!scales.tile)
      return SmallVector<Value>(llvm::divideCeil(rows, int64_t(hw::warpScaleRows)),
                                constantI32(b, b.getLoc(), kUnitScales));
    SmallVector<Value> words;
    Int32 column = existingBlock(scales.blocks, Int32(b, block));
    for (int64_t row = 0; row < rows; row += hw::warpScaleRows)
      words.push_back(loadScaleWord(b, scales.tile, scales.type, scales.row + row, column));
    return words;
  }

private:
  using Pair = std::array<Value, 2>; ///< both registers of 8 rows

  /// Loads elements of 4 bits, 16 bytes of a row in a step. 16 rows are named twice.
  SmallVector<Pair> loadCodes(int64_t step) const {
    SmallVector<Pair> pairs;
    Value first = line.at(byte ^ Int32(b, step * hw::warpRowBytes / 2));
    for (int64_t row = 0; row < rows; row += hw::warpScaleRows)
      for (Value word : loadMatrices(b, offsetPointer(b, b.getLoc(), first, row * width)))
        pairs.push_back({codesOf(word, 0), codesOf(word, 1)});
    pairs.resize(size_t(rows / hw::warpRowsB));
    return pairs;
  }

  Value codesOf(Value word, unsigned i) const {
    Value bits = constantI32(b, b.getLoc(), std::abs(hw::codeShift(i)));
    Value shifted = hw::codeShift(i) > 0 ? arith::ShLIOp::create(b, word, bits).getResult()
                                         : arith::ShRUIOp::create(b, word, bits).getResult();
    return arith::AndIOp::create(b, shifted, constantI32(b, b.getLoc(), hw::codeMask));
  }

  /// Loads elements of a byte each, eight of a row in a step.
  SmallVector<Pair> loadBytes(int64_t step) const {
    SmallVector<Pair> pairs;
    Value first = line.at(byte ^ Int32(b, step * hw::warpRowBytes));
    auto select = [&](ArrayRef<Value> words, unsigned i) -> Value {
      return NVVM::PermuteOp::create(b, b.getI32Type(), words[0], words[1],
                                     constantI32(b, b.getLoc(), hw::besideCodes(i)),
                                     NVVM::PermuteMode::DEFAULT);
    };
    for (int64_t row = 0; row < rows; row += hw::warpRowsB) {
      SmallVector<Value> words =
          loadSharedWords(b, offsetPointer(b, b.getLoc(), first, row * width), 2);
      pairs.push_back({select(words, 0), select(words, 1)});
    }
    return pairs;
  }

  SmallVector<Value> orderOfInstructions(ArrayRef<Pair> pairs) const {
    SmallVector<Value> registers;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      auto [first, second] = pairs[i];
      auto [below, secondBelow] = pairs[i + 1];
      if (isA)
        llvm::append_values(registers, first, below, second, secondBelow);
      else
        llvm::append_values(registers, first, second, below, secondBelow);
    }
    return registers;
  }

  ImplicitLocOpBuilder &b;
  int64_t rows, width;
  TileLine line;
  Int32 byte;
  DataForm form;
  bool isA;
  ScaleTile scales;
};

/// The form of `tile` beside `other`.
DataForm formOf(pipe::SharedType tile, pipe::SharedType other) {
  bool isPacked = isa<Float4E2M1FNType>(tile.getElementType());
  if (isPacked == isa<Float4E2M1FNType>(other.getElementType()))
    return DataForm::Alike;
  return isPacked ? DataForm::Codes : DataForm::BesideCodes;
}

hw::MatrixLine<Int32> lineOf(DataForm form, Int32 lane, int64_t rows, hw::MatrixLine<Int32> alike) {
  if (form == DataForm::BesideCodes)
    return hw::lineBesideCodes(lane);
  if (form == DataForm::Alike)
    return alike;
  return hw::matrixLineOfCodes(rows < int64_t(hw::warpScaleRows) ? lane % rows : lane);
}

/// The operands of one step in registers.
struct StepOperands {
  SmallVector<Value> a, b, scalesA, scalesB;
};

struct LowerMmaSync : MmaPattern<hw::MmaForm::MmaSync> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    WarpTile tile = warpTile(b, op, state, op.getAccumulatorAs<pipe::FragmentType>(),
                             op.getAAs<pipe::SharedType>().getRows());
    WarpOperand ofA = operandA(b, op, adaptor, tile), ofB = operandB(b, op, adaptor, tile);
    SmallVector<Value> sums =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), /*isFirst=*/true);
    int64_t steps = op.getAAs<pipe::SharedType>().getColumns() / op.getStepK();
    StepOperands now = loadStep(op, ofA, ofB, 0, {});
    for (int64_t step = 0; step < steps; ++step) {
      StepOperands next;
      if (step + 1 < steps)
        next = loadStep(op, ofA, ofB, step + 1, now);
      else
        emitProxyFence(b, op.getLoc());
      multiply(b, op, tile, now, step, sums);
      now = next;
    }
    storeElements(b, adaptor.getAccumulator(), sums);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The types and sizes of an instruction.
  struct Form {
    NVVM::MMABlockScaleKind kind;
    NVVM::ScaleVecSize vector;
    NVVM::BlockScaleFormat scales;
    NVVM::MMATypes a, b;
    int64_t stepsOfWord; ///< steps that a word of scales serves
  };

  static NVVM::MMATypes typeOf(pipe::SharedType tile) {
    Type element = tile.getElementType();
    return isa<Float8E4M3FNType>(element)   ? NVVM::MMATypes::e4m3
           : isa<Float8E5M2Type>(element)   ? NVVM::MMATypes::e5m2
           : isa<Float6E2M3FNType>(element) ? NVVM::MMATypes::e2m3
           : isa<Float6E3M2FNType>(element) ? NVVM::MMATypes::e3m2
                                            : NVVM::MMATypes::e2m1;
  }

  static Form formOf(pipe::MmaOp op) {
    NVVM::MMATypes a = typeOf(op.getAAs<pipe::SharedType>()), b = typeOf(op.getB().getType());
    if (op.getAtom()->kind == hw::MmaKind::MXF8F6F4)
      return {NVVM::MMABlockScaleKind::MXF8F6F4,
              NVVM::ScaleVecSize::X1,
              NVVM::BlockScaleFormat::UE8M0,
              a,
              b,
              /*stepsOfWord=*/4};
    if (isa<Float8E4M3FNType>(op.getBScalesAs<pipe::SharedType>().getElementType()))
      return {NVVM::MMABlockScaleKind::MXF4NVF4,
              NVVM::ScaleVecSize::X4,
              NVVM::BlockScaleFormat::UE4M3,
              a,
              b,
              /*stepsOfWord=*/1};
    return {NVVM::MMABlockScaleKind::MXF4NVF4,
            NVVM::ScaleVecSize::X2,
            NVVM::BlockScaleFormat::UE8M0,
            a,
            b,
            /*stepsOfWord=*/2};
  }

  static WarpOperand operandA(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                              const WarpTile &tile) {
    Int32 lane = laneOf(b);
    bool isShort = tile.rows < int64_t(hw::warpScaleRows);
    Int32 row = tile.row + (isShort ? hw::scaleRowOfShortA(lane) : hw::scaleRowOfA(lane));
    if (adaptor.getAScaleRow())
      row = row + Int32(b, adaptor.getAScaleRow());
    ScaleTile scales = {adaptor.getAScales(), op.getBScalesAs<pipe::SharedType>(), row,
                        adaptor.getExisting()};
    if (op.getAScales())
      scales.type = op.getAScalesAs<pipe::SharedType>();
    DataForm form = ::formOf(op.getAAs<pipe::SharedType>(), op.getB().getType());
    return {b,        adaptor.getA(), op.getAAs<pipe::SharedType>().getLayout(),
            tile.row, tile.rows,      lineOf(form, lane, tile.rows, hw::matrixLineOfA(lane)),
            form,     /*isA=*/true,   scales};
  }

  static WarpOperand operandB(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                              const WarpTile &tile) {
    Int32 lane = laneOf(b);
    Int32 row = tile.column + hw::scaleRowOfB(lane);
    if (adaptor.getBScaleRow())
      row = row + Int32(b, adaptor.getBScaleRow());
    ScaleTile scales = {adaptor.getBScales(), op.getBScalesAs<pipe::SharedType>(), row,
                        adaptor.getExisting()};
    DataForm form = ::formOf(op.getB().getType(), op.getAAs<pipe::SharedType>());
    return {b,           adaptor.getB(), op.getB().getType().getLayout(),
            tile.column, tile.columns,   lineOf(form, lane, tile.columns, hw::matrixLineOfB(lane)),
            form,        /*isA=*/false,  scales};
  }

  /// Loads the operands of a step. `before` has those of the step before, with whose scales this
  /// one may share words.
  static StepOperands loadStep(pipe::MmaOp op, const WarpOperand &ofA, const WarpOperand &ofB,
                               int64_t step, const StepOperands &before) {
    StepOperands loaded = {ofA.loadData(step), ofB.loadData(step), before.scalesA, before.scalesB};
    if (int64_t steps = formOf(op).stepsOfWord; step % steps == 0) {
      loaded.scalesA = ofA.loadScales(step / steps);
      loaded.scalesB = ofB.loadScales(step / steps);
    }
    return loaded;
  }

  /// Multiplies every 16 rows of A with every 8 of B.
  static void multiply(ImplicitLocOpBuilder &b, pipe::MmaOp op, const WarpTile &tile,
                       const StepOperands &step, int64_t number, MutableArrayRef<Value> sums) {
    int64_t perRow = tile.columns / hw::warpRowsB;
    int64_t steps = formOf(op).stepsOfWord;
    int64_t byte = number % steps * 4 / steps; // of the scales in their word
    for (int64_t i = 0; i < tile.rows / hw::warpRowsA; ++i)
      for (int64_t j = 0; j < perRow; ++j)
        multiplyOne(b, op, ArrayRef(step.a).slice(4 * i, 4), ArrayRef(step.b).slice(2 * j, 2),
                    {step.scalesA[i / 2], byte, i % 2}, {step.scalesB[j / 4], byte, j % 4},
                    sums.slice((i * perRow + j) * kSums, kSums));
  }

  /// A register of scales, the first byte, and the thread id.
  struct Scales {
    Value word;
    int64_t byte, thread;
  };

  static void multiplyOne(ImplicitLocOpBuilder &b, pipe::MmaOp op, ArrayRef<Value> left,
                          ArrayRef<Value> right, Scales ofLeft, Scales ofRight,
                          MutableArrayRef<Value> sums) {
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI16IntegerAttr(int16_t(value)));
    };
    SmallVector<Type> floats(kSums, b.getF32Type());
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), floats);
    Form form = formOf(op);
    const int64_t shape[] = {16, 8, op.getStepK()};
    Value result = NVVM::MmaBlockScaleOp::create(
        b, type, left, right, ValueRange(ArrayRef<Value>(sums)), ofLeft.word, number(ofLeft.byte),
        number(ofLeft.thread), ofRight.word, number(ofRight.byte), number(ofRight.thread), shape,
        std::array{form.a, form.b}, form.vector, form.scales, form.kind);
    for (int64_t i = 0; i < kSums; ++i)
      sums[i] = LLVM::ExtractValueOp::create(b, result, i);
  }
};

} // namespace

void fp4::populateWarpMmaPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                  const KernelState &state) {
  patterns.add<LowerMmaSync, LowerWarpPlace>(converter, patterns.getContext(), state);
}
