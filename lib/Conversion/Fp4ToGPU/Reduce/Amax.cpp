//===- Amax.cpp - Kernels that reduce to, or compute, one number ----------===//
//
// fp4.amax: the host sets the result to zero. Threads walk over the matrix in 32-byte chunks and
// reduce their maxima over the grid (GridMax.h). With groups of rows, every group has thread blocks
// of its own, and chunks are as wide as rows allow, because groups begin where rows begin. With an
// amax per row, every row has one thread block.
//
// fp4.matmul_alpha is a one-thread kernel: its operands are in device memory
// and the host never waits for them.
//
//===----------------------------------------------------------------------===//
#include "Reduce/GridMax.h"
#include "Int32.h"
#include "Lowering.h"
#include "Scalars.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunkBytes = 32;

class AmaxKernel {
public:
  AmaxKernel(AmaxOp op, LoweringContext &context)
      : op(op), kernel(op, "amax", context.symbols), b(kernel.body()), s(b, context.target),
        target(context.target), type(cast<RankedTensorType>(op.getInput().getType())),
        elementBytes(type.getElementTypeBitWidth() / 8) {}

  void emit() {
    ImplicitLocOpBuilder &host = kernel.host();
    Value rows = kernel.hostRows(op.getInput());
    Value buffer = kernel.allocate(op.getAmax(), op.getPerRow() ? rows : Value());
    gpu::MemsetOp::create(host, TypeRange(), ValueRange(), buffer, constF32(host, 0));
    input = kernel.input(op.getInput());
    result = kernel.pointer(buffer, cast<RankedTensorType>(op.getAmax().getType()));
    if (op.getGroups())
      return emitGroups(*op.getGroups());
    if (op.getPerRow())
      return emitRows(rows);

    Value elements = arith::MulIOp::create(host, rows, constIndex(host, type.getDimSize(1)));
    Value perChunk = constIndex(host, kChunkBytes / elementBytes);
    Value hostChunks = arith::DivUIOp::create(host, elements, perChunk);
    chunks = kernel.scalar(hostChunks);
    // Elements behind the last whole chunk; none where rows are whole chunks.
    if (type.getDimSize(1) * elementBytes % kChunkBytes != 0)
      tail = kernel.scalar(arith::RemUIOp::create(host, elements, perChunk));
    emitBody();
    kernel.launch(gridMaxBlocks(kernel, target, hostChunks)); // one at least: the tail is its work
  }

private:
  /// The larger of `amax` and that of chunk number `chunk`.
  Value includeChunk(Value amax, Value chunk, int64_t chunkBytes) {
    Value pointer = address(b, input, chunk, chunkBytes);
    SmallVector<Value> lanes;
    if (chunkBytes < 4) { // the other half of the word is zero
      Value half = load(b, b.getIntegerType(8 * chunkBytes), pointer, chunkBytes);
      lanes.push_back(arith::ExtUIOp::create(b, b.getI32Type(), half));
    } else {
      auto words = VectorType::get(chunkBytes / 4, b.getI32Type());
      Value data = load(b, words, pointer, chunkBytes);
      for (int64_t lane = 0; lane < words.getNumElements(); ++lane)
        lanes.push_back(vector::ExtractOp::create(b, data, lane));
    }
    return larger(amax, s.amax(lanes, type.getElementType(), keepsNaN()));
  }

  void emitBody() {
    Value amax = kernel.forEachItem(chunks, s.constant(0), [&](Value chunk, ValueRange carried) {
      return SmallVector<Value>{includeChunk(carried[0], chunk, kChunkBytes)};
    })[0];
    if (tail)
      amax = includeTail(amax);
    emitGridMax(kernel, s, amax, result);
  }

  void emitGroups(ArrayRef<int64_t> groups) {
    int64_t rowBytes = type.getDimSize(1) * elementBytes;
    int64_t chunkBytes = std::gcd(rowBytes, kChunkBytes);
    GroupedGrid grid(kernel, target, llvm::map_to_vector(groups, [&](int64_t rows) {
                       return rows * rowBytes / chunkBytes;
                     }));
    Value none = s.constant(0);
    Value amax = grid.forEachItem(grid.items(), none, [&](Value chunk, ValueRange carried) {
      Int32 inMatrix = grid.firstItem() + Int32(b, chunk);
      return SmallVector<Value>{includeChunk(carried[0], inMatrix, chunkBytes)};
    })[0];
    emitGridMax(kernel, s, amax, address(b, result, grid.group(), 4));
    kernel.launch(constIndex(kernel.host(), grid.blocks()));
  }

  /// A thread block for each row.
  void emitRows(Value hostRows) {
    int64_t rowBytes = type.getDimSize(1) * elementBytes;
    int64_t chunkBytes = std::gcd(rowBytes, kChunkBytes);
    Int32 row(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
    Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    Int32 chunksOfRow(b, rowBytes / chunkBytes);
    Value none = s.constant(0), step = constI32(b, kThreads);
    auto include = [&](Value chunk, ValueRange carried) {
      Int32 inMatrix = row * chunksOfRow + Int32(b, chunk);
      return SmallVector<Value>{includeChunk(carried[0], inMatrix, chunkBytes)};
    };
    Value amax = kernel.forEachItem(thread, chunksOfRow, step, none, include)[0];
    emitGridMax(kernel, s, amax, address(b, result, row, 4));
    kernel.launch(hostRows);
  }

  /// The first threads of the grid take one element of the tail each.
  Value includeTail(Value amax) {
    Value thread = kernel.globalThread();
    Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, tail);
    auto branch = scf::IfOp::create(b, b.getF32Type(), isMine, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value start = address(b, input, chunks, kChunkBytes);
    Value element =
        load(b, type.getElementType(), address(b, start, thread, elementBytes), elementBytes);
    if (!element.getType().isF32())
      element = arith::ExtFOp::create(b, b.getF32Type(), element);
    scf::YieldOp::create(b, larger(amax, s.absolute(element)));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, amax);
    return branch.getResult(0);
  }

  bool keepsNaN() { return op.getNan() == NanPolicy::Propagate; }
  Value larger(Value x, Value y) {
    return keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
  }

  AmaxOp op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  const hw::TargetModel &target;
  RankedTensorType type;
  int64_t elementBytes;
  Value input, result, chunks, tail;
};

/// Makes thread 0 of a one-block kernel execute what `then` emits.
void onFirstThread(KernelBuilder &kernel, llvm::function_ref<void()> then) {
  ImplicitLocOpBuilder &b = kernel.body();
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, constI32(b, 0));
  auto branch = scf::IfOp::create(b, isFirst);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    then();
  }
  kernel.launch(constIndex(kernel.host(), 1));
}

} // namespace

LogicalResult fp4::lowerAmax(AmaxOp op, LoweringContext &context) {
  AmaxKernel(op, context).emit();
  return success();
}

LogicalResult fp4::lowerMatmulAlpha(MatmulAlphaOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "matmul_alpha", context.symbols);
  ImplicitLocOpBuilder &b = kernel.body();
  Scalars s(b, context.target);
  Value lhs = kernel.input(op.getLhsAmax()), rhs = kernel.input(op.getRhsAmax());
  Value result = kernel.output(op.getAlpha(), /*rows=*/Value());
  onFirstThread(kernel, [&] {
    Value product = s.multiply(load(b, b.getF32Type(), lhs, 4), load(b, b.getF32Type(), rhs, 4));
    store(b, s.multiply(product, s.constant(op.getFactor())), result, 4);
  });
  return success();
}
