//===- RowCopies.cpp - Rows that wait in shared memory --------------------===//
//
// One bulk copy for each matrix brings a row to shared memory, and completes on an mbarrier that
// all threads wait for. A row that waits there takes no registers, so that an SM has more CTAs than
// where it waits in registers. Copies by threads (cp.async) take an H200 156 us for NVFP4 of 16384
// rows of 8192 elements, and bulk copies 94.
//
//===----------------------------------------------------------------------===//
#include "Reduce/GridMax.h"
#include "Rows/RowElements.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kChunk = RowTeam::kChunk, kAccessBytes = 16;

void RowElements::beginCopies() {
  constexpr int64_t words = 2; // an mbarrier
  copies = kernel.sharedWords(words, "copies");
  for (auto &[key, source] : sources)
    if (isKeptRow(source))
      source.copied = kernel.sharedWords(
          bytesOfRow(source) / 4, "row_" + std::to_string(&source - &sources.begin()->second));
  emitWhen(b, rowTeam.lane() < 1,
           [&] { NVVM::MBarrierInitOp::create(b, copies, constI32(b, 1), /*predicate=*/Value()); });
}

int64_t RowElements::bytesOfRow(const Source &source) {
  return rowTeam.columns() * source.type.getElementTypeBitWidth() / 8;
}

/// Returns true when loads of rows, or copies of them, may have a policy: with one, an H200 takes
/// 379 us in place of 386 for RMSNorm to FP8 of 128 of 65536 x 8192 bf16, whose rows are copied.
/// But it takes 153 us in place of 144 for the gradient of a cross entropy of 16384 x 8192 bf16,
/// whose elements take exponentials, 140 in place of 139 for a rotation, which reads other columns,
/// and 26.4 in place of 25.8 for a cross entropy of 4096 rows, which stores no matrix.
bool RowElements::streamsRows(Operation *op) {
  auto takesExponentials = [](auto &step) {
    auto exponentials = step.second.getBody()->template getOps<math::ExpOp>();
    return llvm::any_of(exponentials, [](math::ExpOp op) { return !isApproximateExp(op); });
  };
  auto readsOtherColumns = [](auto &source) { return bool(source.second.operand.column); };
  bool waitInRegisters = kernel.hasStrips() && !kernel.hasStages();
  bool storesNumbers = kernel.hasStages() && op && isRowReduction(op);
  return !waitInRegisters && !storesNumbers && llvm::none_of(stepOf, takesExponentials) &&
         llvm::none_of(sources, readsOtherColumns);
}

/// Bytes of a row of all matrices that registers keep.
int64_t RowElements::bytesOfRows() {
  int64_t bytes = 0;
  for (auto &[key, source] : sources)
    if (isKeptRow(source))
      bytes += bytesOfRow(source);
  return bytes;
}

void RowElements::copyRow() {
  int64_t bytes = 0;
  for (auto &[key, source] : sources)
    bytes += source.copied ? bytesOfRow(source) : 0;
  emitWhen(b, rowTeam.lane() < 1, [&] {
    NVVM::FenceProxyOp::create( // threads read the words of the row before, or made the mbarrier
        b, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
    NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), copies, constI32(b, bytes),
                                           NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                           /*predicate=*/Value());
    for (auto &[key, source] : sources)
      if (source.copied)
        NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
            b, source.copied, rowOf(source), copies, constI32(b, bytesOfRow(source)),
            /*multicastMask=*/Value(), /*l2CacheHint=*/policy);
  });
}

static void waitFor(ImplicitLocOpBuilder &b, Value barrier, Value parity) {
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard restore(b);
  b.createBlock(&loop.getBefore());
  Value done = NVVM::MBarrierTryWaitOp::create(b, b.getI1Type(), barrier, parity,
                                               /*ticks=*/Value(), NVVM::MemScopeKind::CTA,
                                               /*relaxed=*/false);
  Value again = arith::XOrIOp::create(b, done, arith::ConstantIntOp::create(b, 1, 1));
  scf::ConditionOp::create(b, again, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

SmallVector<Value> RowElements::copiedRow(Int32 turn) {
  waitFor(b, copies, turn % 2);
  SmallVector<Value> words;
  auto type = VectorType::get(kAccessBytes / 4, b.getI32Type());
  for (auto &[key, source] : sources) {
    if (!source.copied)
      continue;
    int64_t bytes = kChunk * source.type.getElementTypeBitWidth() / 8;
    rowTeam.forEachChunk(/*unrolled=*/true, [&, &source = source](const Chunk &chunk) {
      Int32 number = chunk.number;
      if (chunk.exists)
        number = minimum(number, Int32(b, rowTeam.columns() / kChunk - 1));
      Value first = address(b, source.copied, number, bytes);
      for (int64_t byte = 0; byte < bytes; byte += kAccessBytes) {
        Value piece =
            LLVM::LoadOp::create(b, type, advance(b, first, byte), /*alignment=*/kAccessBytes);
        for (int64_t word = 0; word < type.getNumElements(); ++word)
          words.push_back(vector::ExtractOp::create(b, piece, word));
      }
    });
  }
  return words;
}
