//===- Amax.cpp - Kernels that reduce to, or compute, one number ----------===//
//
// fp4.amax: threads walk over the matrix in 32-byte chunks and reduce their maxima over the grid
// (GridMax.h). With groups of rows, every group has CTAs of its own, and chunks are as wide as rows
// allow, because groups begin where rows begin; the host sets the amaxes of groups without rows to
// zero. If only the device knows the rows of groups, the host sets all amaxes to zero, and CTAs
// raise in memory the amax of the group whose band they have (GroupBands.h). With an amax per row,
// every row has one CTA. With an amax per column, the host sets the result to zero, and a thread
// keeps the maxima of a chunk of columns over a band of rows, and raises each in memory.
//
// fp4.matmul_alpha is a kernel of one thread, or of one for each row that has an amax: its operands
// are in device memory and the host never waits for them.
//
//===----------------------------------------------------------------------===//
#include "ElementSource.h"
#include "GroupBands.h"
#include "Int32.h"
#include "Lowering.h"
#include "RecipeEmitter.h"
#include "Reduce/GridMax.h"
#include "Rowwise/RowBlocks.h"
#include "Scalars.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunkBytes = 32;
/// Rows that a thread reads for the amaxes of its columns.
constexpr int64_t kBandRows = 64;
/// Bytes of columns that a thread has there: few, so that a narrow matrix has many threads.
constexpr int64_t kColumnBytes = 8;
/// Bytes that divide a row with dynamic columns, where rows or columns have amaxes of their own.
constexpr int64_t kGivenChunkBytes = 16;

class AmaxEmitter {
public:
  /// `quantizer` computes the amax itself where it can, or is null.
  AmaxEmitter(AmaxOp op, QuantizeOp quantizer, LoweringContext &context)
      : op(op), quantizer(quantizer), kernel(op, "amax", context), b(kernel.body()), s(b, context.target),
        target(context.target), type(cast<RankedTensorType>(op.getInput().getType())),
        elementBytes(type.getElementTypeBitWidth() / 8), noArithmetic(context.noArithmetic) {
    rowBytes = type.isDynamicDim(1) ? 0 : type.getDimSize(1) * elementBytes;
    if (op.getOffsets())
      bands.emplace(op, op.getOffsets(), type.getDimSize(0), context);
  }

  void emit() {
    ImplicitLocOpBuilder &host = kernel.host();
    Value rows = kernel.hostRows(op.getInput()), columns = kernel.hostColumns(op.getInput());
    Value buffer = kernel.allocate(op.getAmax(), op.getPerRow() ? rows : columns);
    if (op.getPerColumn() || bands || (op.getGroups() && llvm::is_contained(*op.getGroups(), 0)))
      gpu::MemsetOp::create(host, TypeRange(), ValueRange(), buffer, constF32(host, 0));
    source.emplace(kernel, op.getInput(), noArithmetic);
    result = kernel.pointer(buffer, cast<RankedTensorType>(op.getAmax().getType()));
    if (op.getGroups())
      return emitGroups(*op.getGroups());
    if (bands)
      return emitBands();
    if (op.getPerRow())
      return emitRows(rows, columns);
    if (op.getPerColumn())
      return emitColumns(rows, columns);

    Value hostChunks = countChunks(rows);
    emitBody();
    Value blocks = gridMaxCtas(kernel, target, hostChunks); // at least one, for the residue
    if (quantizer) {
      Value isLeft = fitsAtOnce(quantizer, host, target, rows, kernel.hostColumns(op.getInput()));
      blocks = arith::SelectOp::create(host, isLeft, constIndex(host, 0), blocks);
    }
    kernel.launch(blocks);
  }

private:
  /// Chunks of the matrix, on the host. Chunks lie within rows if rows have gaps between them.
  Value countChunks(Value rows) {
    ImplicitLocOpBuilder &host = kernel.host();
    if (!source->isFlat()) {
      chunkBytes = chunkOfRow(kChunkBytes);
      Value perRow = constIndex(host, rowBytes / chunkBytes);
      Value hostChunks = arith::MulIOp::create(host, rows, perRow);
      chunks = kernel.scalar(hostChunks);
      return hostChunks;
    }
    Value columns = kernel.hostColumns(op.getInput());
    if (!columns)
      columns = constIndex(host, type.getDimSize(1));
    Value elements = arith::MulIOp::create(host, rows, columns);
    Value perChunk = constIndex(host, kChunkBytes / elementBytes);
    Value hostChunks = arith::DivUIOp::create(host, elements, perChunk);
    chunks = kernel.scalar(hostChunks);
    // Elements behind the last whole chunk; none where rows are known to be whole chunks.
    if (type.isDynamicDim(1) || rowBytes % kChunkBytes != 0)
      residue = kernel.scalar(arith::RemUIOp::create(host, elements, perChunk));
    return hostChunks;
  }

  /// Bytes that divide a row and that one load may take.
  int64_t chunkOfRow(int64_t widest) {
    return std::gcd(rowBytes, source->isComputed() ? widest : source->matrix().widestAccess(widest));
  }

  /// The words of `count` elements of a tensor from `pointer`, as wide as it allows.
  SmallVector<Value> loadElements(const ElementSource::Input &input, Value pointer, int64_t count) {
    int64_t bytes = count * input.elementBytes();
    if (bytes < 4) { // the other half of the word is zero
      Value half = load(b, b.getIntegerType(8 * bytes), pointer, bytes);
      return {arith::ExtUIOp::create(b, b.getI32Type(), half).getResult()};
    }
    return loadWords(b, pointer, bytes / 4, input.accessBytes(count, kChunkBytes));
  }

  /// The words of chunk number `chunk` of row `row`.
  SmallVector<Value> loadChunk(Value row, Value chunk, int64_t chunkBytes) {
    int64_t count = chunkBytes / elementBytes;
    return source->words(row, count, [&](const ElementSource::Input &input) {
      return loadElements(input, input.placeOf(b, row, chunk, count), count);
    });
  }

  /// The words of chunk number `chunk` of the matrix.
  SmallVector<Value> loadChunk(Value chunk, int64_t chunkBytes) {
    Int32 number(b, chunk);
    int64_t perRow = rowBytes / chunkBytes, count = chunkBytes / elementBytes;
    if (!source->isFlat())
      return loadChunk(number / perRow, number % perRow, chunkBytes);
    return source->words(/*row=*/Value(), count, [&](const ElementSource::Input &input) {
      Value from = address(b, input.rows.base, chunk, count * input.elementBytes());
      return loadElements(input, from, count);
    });
  }

  /// The larger of `amax` and that of chunk number `chunk`.
  Value includeChunk(Value amax, Value chunk, int64_t chunkBytes) {
    return larger(amax, s.amax(loadChunk(chunk, chunkBytes), type.getElementType(), keepsNaN()));
  }

  void emitBody() {
    Value amax = kernel.forEachItem(chunks, s.constant(0), [&](Value chunk, ValueRange carried) {
      return SmallVector<Value>{includeChunk(carried[0], chunk, chunkBytes)};
    })[0];
    if (residue)
      amax = includeResidue(amax);
    emitGridMax(kernel, s, amax, result, ctasOfGrid(kernel, target, /*maxima=*/1));
  }

  void emitGroups(ArrayRef<int64_t> groups) {
    int64_t chunkBytes = chunkOfRow(kChunkBytes);
    GroupedGrid grid(kernel, target, llvm::map_to_vector(groups, [&](int64_t rows) {
                       return rows * rowBytes / chunkBytes;
                     }));
    Value none = s.constant(0);
    Value amax = grid.forEachItem(grid.items(), none, [&](Value chunk, ValueRange carried) {
      Int32 inMatrix = grid.firstItem() + Int32(b, chunk);
      return SmallVector<Value>{includeChunk(carried[0], inMatrix, chunkBytes)};
    })[0];
    emitGridMax(kernel, s, amax, address(b, result, grid.group(), 4),
                grid.ctasOfGroup(/*maxima=*/1));
    kernel.launch(constIndex(kernel.host(), grid.blocks()));
  }

  /// Some CTAs for each band, which raise the amax of its group in memory. The items of a whole
  /// band are as many as plans give the threads of its CTAs; most bands of few rows have work for
  /// the first of them alone.
  void emitBands() {
    int64_t chunkBytes = chunkOfRow(kChunkBytes), perRow = rowBytes / chunkBytes;
    int64_t parts = llvm::divideCeil(GroupBands::kRows * perRow, kernel.itemsPerCta());
    bands->enter(kernel);
    Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    GroupBands::Band band = bands->find(block / parts);
    Int32 rows = minimum(band.endRow - band.firstRow, Int32(b, GroupBands::kRows));
    Int32 first = block % parts * kernel.numThreads(), items = rows * perRow;
    Value none = s.constant(0), step = constI32(b, parts * kernel.numThreads());
    auto include = [&](Value chunk, ValueRange carried) {
      Int32 inMatrix = band.firstRow * perRow + Int32(b, chunk);
      return SmallVector<Value>{includeChunk(carried[0], inMatrix, chunkBytes)};
    };
    Value amax = kernel.forEachItem(first + thread, items, step, none, include)[0];
    emitBlockMax(kernel, s, amax, [&](Value bits) {
      emitWhen(b, first < items, [&] { raiseBits(address(b, result, band.group, 4), bits); });
    });
    kernel.launch(constIndex(kernel.host(), bands->count() * parts));
  }

  /// Chunks of `chunkBytes` in a row, on the host. Dynamic columns are whole ones.
  Value countChunksOfRow(int64_t chunkBytes, Value columns) {
    ImplicitLocOpBuilder &host = kernel.host();
    if (!columns)
      return constIndex(host, rowBytes / chunkBytes);
    kernel.expectColumns("input", columns, chunkBytes / elementBytes);
    return arith::DivUIOp::create(host, columns, constIndex(host, chunkBytes / elementBytes));
  }

  /// A CTA for each row.
  void emitRows(Value hostRows, Value columns) {
    int64_t chunkBytes = columns ? kGivenChunkBytes : chunkOfRow(kChunkBytes);
    Int32 row(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    Value hostChunks = countChunksOfRow(chunkBytes, columns);
    Int32 chunksOfRow = inKernel(hostChunks, columns);
    Value none = s.constant(0), step = constI32(b, kernel.numThreads());
    auto include = [&](Value chunk, ValueRange carried) {
      Int32 inMatrix = row * chunksOfRow + Int32(b, chunk);
      return SmallVector<Value>{includeChunk(carried[0], inMatrix, chunkBytes)};
    };
    Value amax = kernel.forEachItem(thread, chunksOfRow, step, none, include)[0];
    emitGridMax(kernel, s, amax, address(b, result, row, 4), /*blocks=*/std::nullopt);
    kernel.launch(hostRows);
  }

  /// A number of the host, which the kernel gets where `columns` are dynamic.
  Int32 inKernel(Value number, Value columns) {
    return columns ? Int32(b, kernel.scalar(number)) : Int32(b, *getConstantIntValue(number));
  }

  /// A thread for each chunk of columns and band of rows.
  void emitColumns(Value hostRows, Value columns) {
    ImplicitLocOpBuilder &host = kernel.host();
    int64_t chunkBytes = columns ? kGivenChunkBytes : chunkOfRow(kColumnBytes);
    Value hostChunks = countChunksOfRow(chunkBytes, columns);
    Int32 chunks = inKernel(hostChunks, columns);
    Value bands = arith::CeilDivUIOp::create(host, hostRows, constIndex(host, kBandRows));
    Value hostItems = arith::MulIOp::create(host, bands, hostChunks);
    Value rows = kernel.scalar(hostRows), items = kernel.scalar(hostItems);
    SmallVector<Value> none(chunkBytes / elementBytes, s.constant(0));
    kernel.forEachItem(items, {}, [&](Value item, ValueRange) {
      Int32 index(b, item), chunk = index % chunks, firstRow = index / chunks * kBandRows;
      Int32 endRow = minimum(firstRow + kBandRows, Int32(b, rows));
      auto include = [&](Value row, ValueRange amaxes) {
        return largerOfEach(amaxes, columns ? loadChunk(Int32(b, row) * chunks + chunk, chunkBytes)
                                            : loadChunk(row, chunk, chunkBytes));
      };
      ValueRange amaxes = kernel.forEachItem(firstRow, endRow, constI32(b, 1), none, include);
      for (auto [i, amax] : llvm::enumerate(amaxes))
        raise(address(b, result, chunk * static_cast<int64_t>(none.size()) + int64_t(i), 4), amax);
      return SmallVector<Value>{};
    });
    kernel.launchItems(hostItems);
  }

  /// The larger of each of `amaxes` and the magnitude of the element of its column.
  SmallVector<Value> largerOfEach(ValueRange amaxes, ArrayRef<Value> words) {
    SmallVector<Value> result; // a word of half a column's chunk is widened to two elements
    for (auto [amax, element] : llvm::zip(amaxes, s.widen(words, type.getElementType())))
      result.push_back(larger(amax, s.absolute(element)));
    return result;
  }

  /// Raises the fp32 at `pointer` to `amax`.
  void raise(Value pointer, Value amax) { raiseBits(pointer, magnitudeBits(b, s, amax)); }
  void raiseBits(Value pointer, Value bits) {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, pointer, bits,
                              LLVM::AtomicOrdering::monotonic, "device");
  }

  /// The first threads of the grid take one element of the residue each.
  Value includeResidue(Value amax) {
    Value thread = kernel.globalThread();
    Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, residue);
    auto withElement = [&] {
      auto words = source->words(/*row=*/Value(), 1, [&](const ElementSource::Input &input) {
        int64_t bytes = input.elementBytes();
        Value start = address(b, input.rows.base, chunks, kChunkBytes / elementBytes * bytes);
        return loadElements(input, address(b, start, thread, bytes), 1);
      });
      Value element = s.widen(words, type.getElementType()).front();
      return larger(amax, s.absolute(element));
    };
    return chooseValue(b, b.getF32Type(), isMine, withElement, [&] { return amax; });
  }

  bool keepsNaN() { return op.getNan() == NanPolicy::Propagate; }
  Value larger(Value x, Value y) {
    return keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
  }

  AmaxOp op;
  QuantizeOp quantizer;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  const hw::TargetModel &target;
  RankedTensorType type;
  int64_t elementBytes, rowBytes, chunkBytes = kChunkBytes;
  bool noArithmetic;
  std::optional<ElementSource> source;
  std::optional<GroupBands> bands; ///< bands of groups that only the device knows
  Value result, chunks, residue;
};

/// Makes thread 0 of a kernel with one item execute what `then` emits.
void onFirstThread(KernelBuilder &kernel, llvm::function_ref<void()> then) {
  ImplicitLocOpBuilder &b = kernel.body();
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, constI32(b, 0));
  emitWhen(b, isFirst, then);
  kernel.launchItems(constIndex(kernel.host(), 1));
}

} // namespace

LogicalResult fp4::lowerAmax(AmaxOp op, LoweringContext &context) {
  QuantizeOp quantizer = quantizerOf(op, context);
  if (quantizer)
    context.withAmax[quantizer] = op.getNan();
  AmaxEmitter(op, quantizer, context).emit();
  return success();
}

/// Term of alpha for an operand with this amax.
static Value emitAlphaTerm(Scalars &s, ImplicitLocOpBuilder &b, const numerics::Recipe &recipe,
                           Value amax) {
  RecipeEmitter term(s, b, numerics::makeAlphaTerm(recipe));
  term.set(RecipeOp::TensorAmax, amax);
  term.emit(numerics::Stage::Tensor);
  return term[term.program().element];
}

/// numerics::matmulAlpha of two amaxes.
static Value emitAlpha(MatmulAlphaOp op, Scalars &s, ImplicitLocOpBuilder &b, Value lhsAmax,
                       Value rhsAmax) {
  numerics::Recipe lhs = op.getLhsDecisions(), rhs = op.getRhsDecisions();
  Value product = s.multiply(emitAlphaTerm(s, b, lhs, lhsAmax), emitAlphaTerm(s, b, rhs, rhsAmax));
  switch (lhs.alpha) {
  case numerics::AlphaRule::AmaxProduct:
    return s.multiply(product, s.constant(numerics::alphaFactor(lhs.e4m3Max, rhs.e4m3Max)));
  case numerics::AlphaRule::DecodeScales:
    return product;
  case numerics::AlphaRule::OverEncodeScales:
    return s.divide(s.constant(1), product);
  }
  return product;
}

LogicalResult fp4::lowerMatmulAlpha(MatmulAlphaOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "matmul_alpha", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Scalars s(b, context.target);
  auto isLine = [](Value amax) { return cast<RankedTensorType>(amax.getType()).getRank() == 1; };
  Value lhs = kernel.input(op.getLhsAmax()), rhs = kernel.input(op.getRhsAmax());
  if (!isLine(op.getLhsAmax()) && !isLine(op.getRhsAmax())) {
    Value result = kernel.output(op.getAlpha(), /*rows=*/Value());
    onFirstThread(kernel, [&] {
      Value lhsAmax = load(b, b.getF32Type(), lhs, 4), rhsAmax = load(b, b.getF32Type(), rhs, 4);
      store(b, emitAlpha(op, s, b, lhsAmax, rhsAmax), result, 4);
    });
    return success();
  }
  bool ofLhs = isLine(op.getLhsAmax());
  Value numbers = kernel.hostRows(ofLhs ? op.getLhsAmax() : op.getRhsAmax());
  Value result = kernel.output(op.getAlpha(), numbers, numbers);
  Value end = kernel.scalar(numbers);
  kernel.forEachItem(end, {}, [&](Value item, ValueRange) {
    auto amaxOf = [&](Value amaxes, bool isLine) {
      return load(b, b.getF32Type(), isLine ? address(b, amaxes, item, 4) : amaxes, 4);
    };
    Value lhsAmax = amaxOf(lhs, ofLhs), rhsAmax = amaxOf(rhs, !ofLhs || op.getPerGroup());
    Value alpha = emitAlpha(op, s, b, lhsAmax, rhsAmax);
    store(b, alpha, address(b, result, item, 4), 4);
    return SmallVector<Value>{};
  });
  kernel.launchItems(numbers);
  return success();
}
