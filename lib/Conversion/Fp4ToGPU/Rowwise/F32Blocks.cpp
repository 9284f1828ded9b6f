//===- F32Blocks.cpp - Quantizers whose blocks are under an f32 -----------===//
//
// A thread has 16 elements of a row, a chunk, at a time: 32 bytes of bf16 in, 16 bytes of codes
// out.
//
//   blocks of 1 x 128     one-shot grid of threads with a chunk each; eight neighbours have a block
//                         and exchange their maxima by shuffles
//   blocks of 128 x 128   a CTA for each; a thread has chunks of four rows, all of which are
//                         loaded before the first is used, and maxima meet in shared memory
//   blocks of whole rows  a part of a warp, some warps or a CTA for each; a thread keeps
//                         its chunks in registers until their maxima have met. The threads of a
//                         longer row read it twice
//
// Rows are whole chunks. Chunks of rows and columns that do not exist are zeros and not stored. The
// first two take dynamic columns, by whose blocks threads divide with a reciprocal of the host.
//
//===----------------------------------------------------------------------===//
#include "BlockQuantizer.h"
#include "ElementSource.h"
#include "HostDivisor.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"
#include "Reduce/GridMax.h"
#include "Rowwise/RowBlocks.h"
#include "SideQuantizer.h"

#include "fp4/Dialect/Utils/BufferTypes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kBlock = 128, kChunk = 16, kChunksPerBlock = kBlock / kChunk;
constexpr int64_t kAccessBytes = 16, kWords = kChunk / 4;
/// Chunks of a row that a thread loads at once, to cover the latency of memory, and words that it
/// has registers for.
constexpr int64_t kChunksInFlight = 4, kMostWords = 64;

class F32QuantizeKernel {
public:
  F32QuantizeKernel(QuantizeOp op, LoweringContext &context)
      : op(op), kernel(op, "quantize", context), b(kernel.body()), s(b, context.target),
        type(cast<RankedTensorType>(op.getInput().getType())), columns(type.getDimSize(1)),
        blocks(isOfWholeRows() ? 1 : llvm::divideCeil(columns, kBlock)),
        noArithmetic(context.noArithmetic) {
    data.bytes = columns;
  }

  void emit() {
    Value hostRows = kernel.hostRows(op.getInput());
    Value hostColumns = kernel.hostColumns(op.getInput());
    source.emplace(kernel, op.getInput(), noArithmetic);
    Value hostBlocks = hostColumns ? takeColumns(hostColumns) : constIndex(kernel.host(), blocks);
    data.base = kernel.output(op.getData(), hostRows, hostColumns);
    bool square = op.hasSquareBlocks();
    Value hostBands = ceilDiv(hostRows, square ? kBlock : 1);
    scales = kernel.output(op.getScales(), hostBands, hostBlocks);
    rows = kernel.scalar(hostRows);
    if (square)
      return emitSquares(hostBands, hostBlocks);
    if (isOfWholeRows())
      return emitWholeRows(hostRows);
    Value perRow = arith::MulIOp::create(kernel.host(), hostBlocks,
                                         constIndex(kernel.host(), kChunksPerBlock));
    emitRows(perRow);
    Value chunks = arith::MulIOp::create(kernel.host(), hostRows, perRow);
    kernel.launch(ceilDiv(chunks, kernel.numThreads()));
  }

private:
  struct Chunk {
    Int32 row, column;
    Value exists;
    SmallVector<Value> words;
  };

  bool isOfWholeRows() {
    return op.getBlock() && op.getBlock()->front() == 1 && op.getBlock()->back() != kBlock;
  }

  /// Dynamic columns (an index), which are checked; the blocks of a row, an index.
  Value takeColumns(Value hostColumns) {
    kernel.expectColumns("input", hostColumns, unitOfColumns(op));
    given = kernel.scalar(hostColumns);
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), given);
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    source->matrix().pitch = arith::MulIOp::create(b, wide, constI64(b, bytes));
    data.pitch = wide;
    return ceilDiv(hostColumns, kBlock);
  }

  /// The columns in the kernel.
  Int32 width() { return given ? Int32(b, given) : Int32(b, columns); }

  /// `number` by `perRow`, an index, or by the constant that it is: the row, and the place in it.
  std::pair<Int32, Int32> split(Int32 number, Value perRow, int64_t known) {
    if (!given)
      return {number / known, number % known};
    HostDivisor divisor(kernel, perRow);
    Int32 row = divisor.quotient(number);
    return {row, number - row * divisor.divisor()};
  }

  Value ceilDiv(Value size, int64_t unit) {
    ImplicitLocOpBuilder &host = kernel.host();
    return unit == 1 ? size
                     : arith::CeilDivUIOp::create(host, size, constIndex(host, unit)).getResult();
  }

  Value codePlace(const Chunk &chunk) {
    return address(b, data.at(b, chunk.row), chunk.column, 1);
  }

  Value placeOf(const ElementSource::Input &input, const Int32 &row, const Int32 &column) {
    Value ofRow = input.hasRows ? input.rows.at(b, row) : input.rows.base;
    return address(b, ofRow, column, input.elementBytes());
  }

  /// Asks for the elements of a chunk that the thread will load.
  void prefetch(const Chunk &chunk) {
    if (!kernel.takesTurns())
      return;
    for (const ElementSource::Input &input : source->inputsOfRuns())
      if (input.hasRows)
        kernel.prefetch(placeOf(input, chunk.row, chunk.column), kChunk * input.elementBytes(),
                        chunk.exists);
  }

  /// The words of a chunk, zeros where it does not exist.
  void load(Chunk &chunk) {
    int64_t count = kChunk * type.getElementTypeBitWidth() / 32;
    SmallVector<Type> types(count, b.getI32Type());
    auto loaded = [&]() -> SmallVector<Value> {
      return source->words(chunk.row, kChunk, [&](const ElementSource::Input &input) {
        return loadWords(b, placeOf(input, chunk.row, chunk.column),
                         kChunk * input.elementBytes() / 4, kAccessBytes);
      });
    };
    auto zeros = [&] { return SmallVector<Value>(count, s.integer(0)); };
    llvm::append_range(chunk.words, chooseValues(b, types, chunk.exists, loaded, zeros));
  }

  bool keepsNaN() { return op.getRecipe().getDecisions().amaxNaN == numerics::NanPolicy::Propagate; }

  /// Bits of the amax of chunks: they order as magnitudes do, NaN last.
  Value amaxBits(ArrayRef<Chunk> chunks) {
    Value most;
    for (const Chunk &chunk : chunks) {
      Value amax = s.amax(chunk.words, type.getElementType(), keepsNaN());
      Value bits = magnitudeBits(b, s, amax);
      most = most ? arith::MaxUIOp::create(b, most, bits).getResult() : bits;
    }
    return most;
  }

  /// The largest of `lanes` neighbouring lanes.
  Value shuffleMax(Value bits, int64_t lanes) {
    for (int64_t distance = lanes / 2; distance; distance /= 2)
      bits = arith::MaxUIOp::create(b, bits, valueOfPartner(b, bits, distance));
    return bits;
  }

  /// Stores the codes of a chunk; returns the bits of its scale.
  Value encode(BlockQuantizer &quantizer, const Chunk &chunk, Value amax) {
    BlockQuantizer::Block block =
        noArithmetic ? mixBits(b, chunk.words, amax, kWords)
                     : quantizer.quantize(BlockElements::packed(s, chunk.words, type.getElementType()),
                                          amax);
    auto words = VectorType::get(kWords, b.getI32Type());
    Value codes = vector::FromElementsOp::create(b, words, block.codes);
    emitWhen(b, chunk.exists, [&] { store(b, codes, codePlace(chunk), kAccessBytes); });
    return noArithmetic ? s.bits(amax) : block.scale;
  }

  void storeScale(Value condition, Value bits, Int32 band, Int32 block) {
    emitWhen(b, condition, [&] {
      Value ofBand = given ? address(b, scales, band * ((width() + (kBlock - 1)) / kBlock), 4)
                           : address(b, scales, band, blocks * 4);
      store(b, bits, address(b, ofBand, block, 4), 4);
    });
  }

  void emitRows(Value perRow) {
    auto [row, inRow] = split(Int32(b, kernel.globalThread()), perRow, blocks * kChunksPerBlock);
    Chunk chunk{row, inRow * kChunk, {}, {}};
    chunk.exists = isInside(chunk);
    prefetch(chunk);
    load(chunk);
    Value bits = shuffleMax(amaxBits(chunk), kChunksPerBlock);
    BlockQuantizer quantizer(s, b, op.getRecipe().getDecisions());
    quantizer.setTensorAmax(s.constant(0));
    Value scale = encode(quantizer, chunk, s.fromBits(bits));
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, inRow % kChunksPerBlock,
                                          s.integer(0));
    storeScale(arith::AndIOp::create(b, isFirst, chunk.row < Int32(b, rows)), scale, chunk.row,
               inRow / kChunksPerBlock);
  }

  Value isInside(const Chunk &chunk) {
    return arith::AndIOp::create(b, chunk.row < Int32(b, rows), chunk.column < width());
  }

  void emitSquares(Value hostBands, Value hostBlocks) {
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    auto [band, block] =
        split(Int32(b, NVVM::BlockIdXOp::create(b, b.getI32Type())), hostBlocks, blocks);
    SmallVector<Chunk> chunks;
    int64_t rowsAtOnce = kernel.numThreads() / kChunksPerBlock;
    for (int64_t row = 0; row < kBlock; row += rowsAtOnce) {
      Chunk chunk{band * kBlock + row + thread / kChunksPerBlock,
                  block * kBlock + thread % kChunksPerBlock * kChunk, {}, {}};
      chunk.exists = isInside(chunk);
      load(chunk);
      chunks.push_back(chunk);
    }
    Value amax = s.fromBits(warpMax(thread, shuffleMax(amaxBits(chunks), kWarp), kernel.numThreads() / kWarp));
    BlockQuantizer quantizer(s, b, op.getRecipe().getDecisions());
    quantizer.setTensorAmax(s.constant(0));
    Value scale;
    for (const Chunk &chunk : chunks)
      scale = encode(quantizer, chunk, amax);
    storeScale(isZero(thread), scale, band, block);
    kernel.launch(arith::MulIOp::create(kernel.host(), hostBands, hostBlocks));
  }

  /// The threads of a row: those of the plan, or few enough that each has some chunks, and many
  /// enough that these fit in its registers. A row has a part of a warp, or several warps.
  int64_t threadsOfRow() {
    if (std::optional<int64_t> planned = kernel.lanesOfBlock())
      return *planned;
    int64_t some = llvm::divideCeil(columns / kChunk, kChunksInFlight);
    int64_t power = int64_t(llvm::PowerOf2Ceil(uint64_t(some)));
    return kernel.numThreads() % power == 0 ? power : kernel.numThreads();
  }

  void emitWholeRows(Value hostRows) {
    int64_t lanes = threadsOfRow(), rowsOfBlock = kernel.numThreads() / lanes;
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
    Int32 row = block * rowsOfBlock + thread / lanes, lane = thread % lanes;
    int64_t perThread = llvm::divideCeil(columns / kChunk, lanes);
    int64_t words = perThread * kChunk * type.getElementTypeBitWidth() / 32;
    Value scale = words <= kMostWords ? encodeKept(row, lane, perThread, lanes)
                                           : encodeTwice(row, lane, lanes);
    storeScale(arith::AndIOp::create(b, isZero(lane), row < Int32(b, rows)), scale, row, Int32(b, 0));
    kernel.launch(ceilDiv(hostRows, rowsOfBlock));
  }

  Chunk chunkOf(Int32 row, Int32 number) {
    Chunk chunk{row, number * kChunk, {}, {}};
    chunk.exists = isInside(chunk);
    return chunk;
  }
  Chunk loadedChunk(Int32 row, Int32 number) {
    Chunk chunk = chunkOf(row, number);
    load(chunk);
    return chunk;
  }

  BlockQuantizer rowQuantizer() {
    BlockQuantizer quantizer(s, b, op.getRecipe().getDecisions());
    quantizer.setTensorAmax(s.constant(0));
    return quantizer;
  }

  /// Every thread keeps its chunks until their maxima have met. The bits of the scale.
  Value encodeKept(Int32 row, Int32 lane, int64_t perThread, int64_t lanes) {
    SmallVector<Chunk> chunks;
    for (int64_t i = 0; i < perThread; ++i) {
      chunks.push_back(chunkOf(row, lane + i * lanes));
      prefetch(chunks.back());
    }
    for (Chunk &chunk : chunks)
      load(chunk);
    Value amax = rowMax(amaxBits(chunks), lanes);
    BlockQuantizer quantizer = rowQuantizer();
    Value scale;
    for (const Chunk &chunk : chunks)
      scale = encode(quantizer, chunk, amax);
    return scale;
  }

  /// The threads of a CTA walk over a row twice. The bits of the scale.
  Value encodeTwice(Int32 row, Int32 lane, int64_t lanes) {
    Value end = s.integer(columns / kChunk), step = s.integer(lanes), none = s.integer(0);
    Value bits = kernel.forEachItem(lane, end, step, none, [&](Value number, ValueRange most) {
      Value larger =
          arith::MaxUIOp::create(b, most[0], amaxBits(loadedChunk(row, Int32(b, number))));
      return SmallVector<Value>{larger};
    })[0];
    Value amax = rowMax(bits, lanes);
    return kernel.forEachItem(lane, end, step, none, [&](Value number, ValueRange) {
      BlockQuantizer quantizer = rowQuantizer();
      return SmallVector<Value>{encode(quantizer, loadedChunk(row, Int32(b, number)), amax)};
    })[0];
  }

  /// The largest of the threads of a row.
  Value rowMax(Value bits, int64_t lanes) {
    bits = shuffleMax(bits, std::min(lanes, kWarp));
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    return s.fromBits(lanes <= kWarp ? bits : warpMax(thread, bits, lanes / kWarp));
  }

  Value isZero(Value x) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, s.integer(0));
  }

  /// The largest of the maxima of the `warps` warps that work together.
  Value warpMax(Int32 thread, Value bits, int64_t warps) {
    Value shared = kernel.sharedWords(kernel.numThreads() / kWarp, "warp_max");
    emitWhen(b, isZero(thread % kWarp),
             [&] { store(b, bits, address(b, shared, thread / kWarp, 4), 4); });
    NVVM::Barrier0Op::create(b);
    Value first = address(b, shared, thread / (warps * kWarp) * warps, 4);
    for (int64_t warp = 0; warp < warps; ++warp) {
      Value other = LLVM::LoadOp::create(b, b.getI32Type(), advance(b, first, 4 * warp), 4);
      bits = arith::MaxUIOp::create(b, bits, other);
    }
    return bits;
  }

  QuantizeOp op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  RankedTensorType type;
  int64_t columns, blocks; ///< extents of a row, where they are static
  Value given;             ///< the columns where they are dynamic, i32
  bool noArithmetic;
  std::optional<ElementSource> source;
  InputRows data;
  Value scales, rows;
};

} // namespace

LogicalResult fp4::lowerF32Quantize(QuantizeOp op, LoweringContext &context) {
  F32QuantizeKernel(op, context).emit();
  return success();
}
