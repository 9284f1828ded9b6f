//===- Elementwise.cpp - Upstream elementwise operations that stream ------===//
//
// A linalg.generic that did not go into another kernel. A thread computes a run of elements of a
// row: as many as 32 bytes of the narrowest tensor hold, where that divides the row. Each operand
// is read in accesses of 16 bytes, or as one number where it is the same for the row. Lanes of a
// warp that have runs of one row access pieces that are neighbours, two of a run, and so whole
// sectors: an H200 takes 189 us for GELU(g) * u of 16384 x 8192 bf16, and 223
// where a lane has both halves of a sector. Pieces are computed and stored one by one, so that few
// numbers are in registers at a time.
//
//===----------------------------------------------------------------------===//
#include "ElementwiseEmitter.h"
#include "InlinePtx.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kRunBytes = 32;
constexpr unsigned kAccessBytes = 16;
constexpr int64_t kLanes = 32;
/// Pairs are what packed arithmetic takes. With 8 lanes at a time gelu on bf16 takes 66 registers
/// instead of 52 and, predicted on sm_100a, 7 % more time, and powf 9 %.
constexpr int64_t kLanesOfStreams = 2;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
int64_t bytesOf(RankedTensorType type) { return type.getElementTypeBitWidth() / 8; }

/// Every element has its own place in all operands.
bool readsInOrder(linalg::GenericOp op) {
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    return op.getMatchingIndexingMap(input).isIdentity();
  });
}

class Streamer {
public:
  Streamer(linalg::GenericOp op, LoweringContext &context)
      : op(op), linalgOp(cast<linalg::LinalgOp>(op.getOperation())),
        kernel(op, "elementwise", context), b(kernel.body()), result(typeOf(op.getResult(0))),
        noArithmetic(context.noArithmetic) {
    columns = result.getRank() ? result.getShape().back() : 1;
    if (result.hasStaticShape() && readsInOrder(op)) // one row
      columns = result.getNumElements();
    if (ShapedType::isDynamic(columns)) // elements in order
      columns = 1;
    int64_t narrowest = narrowestBytes();
    run = std::gcd(columns, kRunBytes / narrowest);
    bool hasTwoPieces = run * narrowest == kRunBytes && columns % (kLanes * run) == 0;
    width = hasTwoPieces ? run / 2 : run;
  }

  void lower() {
    SmallVector<Value> inputs, outputs;
    Value rows = findSize(0), lastColumns = result.getRank() == 2 ? findSize(1) : Value();
    for (Value input : op.getInputs())
      inputs.push_back(kernel.input(input));
    for (Value output : op.getResults())
      outputs.push_back(kernel.output(output, rows, lastColumns));
    Value items = countItems({rows, lastColumns});
    Value count = kernel.scalar(items);
    prefetch(inputs, count);
    policy = kernel.policyOfLoads(count, bytesOfRun());
    kernel.forEachItem(count, {}, [&](Value item, ValueRange) {
      lowerRun(inputs, outputs, item);
      return SmallVector<Value>();
    });
    kernel.launchItems(items);
  }

private:
  /// Bytes that a run loads of tensors that have its elements each.
  int64_t bytesOfRun() {
    int64_t bytes = 0;
    for (OpOperand *input : op.getDpsInputOperands())
      if (op.getMatchingIndexingMap(input).isIdentity())
        bytes += run * bytesOf(typeOf(input->get()));
    return bytes;
  }

  int64_t narrowestBytes() {
    int64_t narrowest = kRunBytes;
    for (Value value : llvm::concat<Value>(op.getInputs(), op.getResults()))
      narrowest = std::min(narrowest, bytesOf(typeOf(value)));
    return narrowest;
  }

  /// The dynamic size of a dimension of the result, that of an input: null where it is static.
  Value findSize(unsigned dim) {
    if (dim >= result.getRank() || !result.isDynamicDim(dim))
      return {};
    for (OpOperand *input : op.getDpsInputOperands())
      for (auto [i, of] : llvm::enumerate(dimensionsOf(linalgOp, input->getOperandNumber())))
        if (of == dim)
          return memref::DimOp::create(kernel.host(), kernel.buffer(input->get()), i);
    llvm_unreachable("the sizes of a result are those of an input");
  }

  Value countItems(ArrayRef<Value> dynamicSizes) {
    ImplicitLocOpBuilder &host = kernel.host();
    int64_t elements = 1;
    for (int64_t size : result.getShape())
      elements *= ShapedType::isDynamic(size) ? 1 : size;
    Value items = constIndex(host, elements / run);
    for (Value size : dynamicSizes)
      items = size ? arith::MulIOp::create(host, size, items).getResult() : items;
    return items;
  }

  /// Asks for the elements of its own that the first item of the thread will load.
  void prefetch(ValueRange inputs, Value count) {
    if (!kernel.takesTurns())
      return;
    Int32 item(b, kernel.globalThread());
    Value exists = item < Int32(b, count);
    for (auto [operand, pointer] : llvm::zip_equal(op.getDpsInputOperands(), inputs)) {
      RankedTensorType type = typeOf(operand->get());
      if (!op.getMatchingIndexingMap(operand).isIdentity())
        continue;
      Value from = address(b, pointer, firstOfRun(item), bytesOf(type));
      for (int64_t piece = 0; piece < run / width; ++piece)
        kernel.prefetch(pieceOf(from, piece, type), width * bytesOf(type), exists);
    }
  }

  /// Computes a run piece by piece. All operands are loaded before the first is widened: ptxas
  /// takes loads behind arithmetic for ones that may come later.
  void lowerRun(ValueRange inputs, ValueRange outputs, Value item) {
    SmallVector<SmallVector<Value>> loaded(run / width);
    for (auto [i, input] : llvm::enumerate(inputs))
      load(loaded, input, i, item);
    for (auto [piece, values] : llvm::enumerate(loaded))
      for (auto [value, output, tensor] :
           llvm::zip_equal(compute(values), outputs, op.getResults()))
        store(value, output, item, int64_t(piece), typeOf(tensor));
  }

  /// The results of a piece, in their types.
  SmallVector<Value> compute(ArrayRef<Value> loaded) {
    if (noArithmetic && width * narrowestBytes() >= 4)
      return mixed(loaded);
    SmallVector<Value> arguments =
        llvm::map_to_vector(loaded, [&](Value value) { return widenToF32(b, value); });
    SmallVector<Value> values = emitQuickElementwise(b, *op.getBody(), arguments, kLanesOfStreams);
    for (auto [value, tensor] : llvm::zip_equal(values, op.getResults()))
      value = narrowTo(b, value, typeOf(tensor).getElementType());
    return values;
  }

  /// The results of a twin: words of all operands.
  SmallVector<Value> mixed(ArrayRef<Value> loaded) {
    SmallVector<Value> results;
    for (Value tensor : op.getResults()) {
      RankedTensorType type = typeOf(tensor);
      SmallVector<Value> words(width * bytesOf(type) / 4, constI32(b, 0));
      for (Value value : loaded)
        for (auto [i, word] : llvm::enumerate(packedWords(b, value)))
          words[i % words.size()] = arith::XOrIOp::create(b, words[i % words.size()], word);
      auto ofWords = VectorType::get(int64_t(words.size()), b.getI32Type());
      Value whole = vector::FromElementsOp::create(b, ofWords, words);
      results.push_back(vector::BitCastOp::create(b, ofPiece(type), whole));
    }
    return results;
  }

  VectorType ofPiece(RankedTensorType type) {
    return VectorType::get(width, type.getElementType());
  }

  /// The first element of a run, counted in the row or in all elements.
  Int32 firstOfRun(Int32 item) {
    if (width == run)
      return item * run;
    Int32 lane = item % kLanes;
    return (item - lane) * run + lane * width;
  }

  /// A piece of the run at `first`: between two stand those of all lanes.
  Value pieceOf(Value first, int64_t piece, RankedTensorType type) {
    return advance(b, first, piece * kLanes * width * bytesOf(type));
  }

  /// The number of the first element that a run reads of an operand with these dimensions.
  Int32 firstElement(Value item, ArrayRef<unsigned> dims, RankedTensorType type) {
    int64_t rank = result.getRank();
    bool isWhole = static_cast<int64_t>(dims.size()) == rank;
    if (isWhole && !llvm::is_contained(dims, kSameForAll))
      return firstOfRun(Int32(b, item));
    Int32 row = Int32(b, item) / (columns / run), offset(b, 0);
    Int32 column = firstOfRun(Int32(b, item) % (columns / run));
    SmallVector<Int32> coordinates(rank, column);
    for (int64_t dim = rank - 2; dim >= 0; --dim) {
      coordinates[dim] = dim == 0 ? row : row % result.getDimSize(dim);
      row = dim == 0 ? row : row / result.getDimSize(dim);
    }
    for (auto [i, dim] : llvm::enumerate(dims))
      if (dim != kSameForAll)
        offset = offset * (i == 0 ? 1 : type.getDimSize(i)) + coordinates[dim];
    return offset;
  }

  /// Adds an operand to the pieces of a run.
  void load(MutableArrayRef<SmallVector<Value>> pieces, Value pointer, unsigned number,
            Value item) {
    RankedTensorType type = typeOf(op.getInputs()[number]);
    SmallVector<unsigned> dims = dimensionsOf(linalgOp, number);
    Value from = address(b, pointer, firstElement(item, dims, type), bytesOf(type));
    bool isSame = !llvm::is_contained(dims, static_cast<unsigned>(result.getRank() - 1));
    Value same;
    if (isSame || run == 1)
      same = vector::BroadcastOp::create(b, ofPiece(type),
                                         fp4::load(b, type.getElementType(), from, bytesOf(type)));
    for (auto [piece, values] : llvm::enumerate(pieces))
      values.push_back(same ? same : loadPiece(pieceOf(from, int64_t(piece), type), type));
  }

  Value loadPiece(Value from, RankedTensorType type) {
    if (!policy || width * bytesOf(type) != kAccessBytes)
      return fp4::load(b, ofPiece(type), from, alignment(type));
    SmallVector<Value> words = loadUnder(b, policy, from);
    auto ofWords = VectorType::get(int64_t(words.size()), b.getI32Type());
    Value whole = vector::FromElementsOp::create(b, ofWords, words);
    return vector::BitCastOp::create(b, ofPiece(type), whole);
  }

  void store(Value value, Value pointer, Value item, int64_t piece, RankedTensorType type) {
    Value to = address(b, pointer, firstOfRun(Int32(b, item)), bytesOf(type));
    if (bytesOf(type) == 1) // memory has bytes
      value = vector::BitCastOp::create(b, VectorType::get(width, b.getI8Type()), value);
    fp4::store(b, value, pieceOf(to, piece, type), alignment(type));
  }

  unsigned alignment(RankedTensorType type) {
    return std::min<unsigned>(kAccessBytes, width * bytesOf(type));
  }

  linalg::GenericOp op;
  linalg::LinalgOp linalgOp;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  RankedTensorType result;
  bool noArithmetic;
  Value policy; ///< KernelBuilder::policyOfLoads, or null
  int64_t columns, run;
  int64_t width; ///< elements of a piece: a run, or half of one
};

} // namespace

/// Adds a note on an operation that reads computed conditions or integers, and so keeps them in
/// memory.
static void noteReader(InFlightDiagnostic &diag, Operation &reader) {
  Diagnostic &note = diag.attachNote(reader.getLoc());
  note << "'" << reader.getName() << "' reads these and ";
  if (OpTrait::hasElementwiseMappableTraits(&reader))
    note << "has no kernel; these have one: " << elementwiseOperations();
  else
    note << "is not elementwise";
}

/// A thread finds its row by the number of columns. Elements of matrices are counted where each has
/// its own place in all operands.
static bool needsColumns(linalg::GenericOp op) {
  return llvm::any_of(op.getResultTypes(), [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    bool isDynamic =
        tensor.getRank() && !ShapedType::isStaticShape(tensor.getShape().drop_front());
    return isDynamic && (tensor.getRank() > 2 || !readsInOrder(op));
  });
}

/// Reports a reduction that no kernel by rows computes.
static LogicalResult refuseReduction(linalg::GenericOp op) {
  InFlightDiagnostic diag = op.emitOpError("has no kernel: ")
                            << whyNotRowReduction(cast<linalg::LinalgOp>(op.getOperation()));
  diag.attachNote() << "kernels reduce the columns of each row of a matrix to one f32, and begin "
                       "with a constant: transpose the matrix before, or convert its elements";
  return diag;
}

LogicalResult fp4::lowerElementwise(linalg::GenericOp op, LoweringContext &context) {
  if (op.getNumReductionLoops() > 0)
    return refuseReduction(op);
  std::string reason = whyNotElementwise(cast<linalg::LinalgOp>(op.getOperation()));
  if (reason.empty() && needsColumns(op))
    reason = "only its first dimension may be dynamic where an operand has fewer elements";
  if (reason.empty() && op.getInputs().empty())
    reason = "the operation reads no tensor";
  if (reason.empty())
    reason = whyNotInMemory(cast<linalg::LinalgOp>(op.getOperation()));
  if (!reason.empty()) {
    InFlightDiagnostic diag = op.emitOpError("has no kernel: ") << reason;
    diag.attachNote() << "kernels of linalg are elementwise: every result and input is indexed by "
                         "parallel loops in their order";
    for (Value result : op.getResults())
      if (isKernelOnlyType(getElementTypeOrSelf(result)) && !result.use_empty())
        noteReader(diag, **result.user_begin());
    return diag;
  }
  remark::passed(op.getLoc(), remark::RemarkOpts::name("elementwise").category("fp4-fuse"))
      << "a kernel of its own streams through memory";
  Streamer(op, context).lower();
  return success();
}
