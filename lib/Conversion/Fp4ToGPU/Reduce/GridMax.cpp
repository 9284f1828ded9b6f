//===- GridMax.cpp - Maxima over all threads of a launch ------------------===//
#include "Reduce/GridMax.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Utils/BufferTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

Value fp4::gridMaxCtas(KernelBuilder &kernel, const hw::TargetModel &target, Value items) {
  ImplicitLocOpBuilder &host = kernel.host();
  Value blocks = arith::CeilDivUIOp::create(host, items, constIndex(host, kernel.itemsPerCta()));
  blocks = arith::MinUIOp::create(host, blocks, constIndex(host, target.sms * kernel.ctasPerSm()));
  return arith::MaxUIOp::create(host, blocks, constIndex(host, 1));
}

GroupedGrid::GroupedGrid(KernelBuilder &kernel, const hw::TargetModel &target,
                         ArrayRef<int64_t> items)
    : kernel(kernel), numGroups(static_cast<int64_t>(items.size())) {
  ImplicitLocOpBuilder &b = kernel.body();
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  int64_t all = std::accumulate(items.begin(), items.end(), int64_t(0)), first = 0;
  for (auto [group, count] : llvm::enumerate(items)) {
    if (count == 0)
      continue;
    // As gridMaxCtas, of which the group has its part.
    int64_t wanted = llvm::divideCeil(count, kernel.itemsPerCta());
    double part = static_cast<double>(count) / static_cast<double>(all);
    int64_t most = static_cast<int64_t>(part * target.sms * kernel.ctasPerSm());
    int64_t blocks = std::max<int64_t>(1, std::min(wanted, most));
    Share share{Int32(b, group), Int32(b, first), Int32(b, count), Int32(b, numBlocks),
                Int32(b, blocks)};
    if (mine) {
      Value isBefore = block < numBlocks;
      for (Int32 Share::*field :
           {&Share::group, &Share::firstItem, &Share::items, &Share::firstBlock, &Share::blocks})
        share.*field = select(isBefore, (*mine).*field, share.*field);
    }
    mine = share;
    first += count;
    numBlocks += blocks;
  }
}

ValueRange GroupedGrid::forEachItem(Value bound, ValueRange carried, KernelBuilder::ItemBody item) {
  ImplicitLocOpBuilder &b = kernel.body();
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Int32 first = (block - mine->firstBlock) * kernel.numThreads() + thread;
  return kernel.forEachItem(first, bound, mine->blocks * kernel.numThreads(), carried, item);
}

void fp4::emitWhen(ImplicitLocOpBuilder &b, Value condition, llvm::function_ref<void()> then) {
  auto branch = scf::IfOp::create(b, condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
}

static Value reduceWarp(ImplicitLocOpBuilder &b, Value bits) {
  return NVVM::ReduxOp::create(b, bits.getType(), bits, NVVM::ReduxKind::UMAX, constI32(b, -1));
}

Value fp4::magnitudeBits(ImplicitLocOpBuilder &b, Scalars &s, Value x) {
  return arith::MinUIOp::create(b, s.bits(x), s.integer(0x7FC00000));
}

/// Words for `groups` groups of CTAs; the pointer in the kernel.
static Value maxWords(KernelBuilder &kernel, int64_t groups, int64_t maxima) {
  auto type = RankedTensorType::get({groups * (maxima + 1)}, kernel.body().getI32Type());
  auto memory = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = allocateCounters(kernel.host(), kernel.host().getLoc(), memory);
  return kernel.pointer(buffer, type);
}

MaxCtas fp4::ctasOfGrid(KernelBuilder &kernel, int64_t maxima) {
  Value words = maxWords(kernel, /*groups=*/1, maxima);
  return {words, NVVM::GridDimXOp::create(kernel.body(), kernel.body().getI32Type())};
}

MaxCtas GroupedGrid::ctasOfGroup(int64_t maxima) {
  Value words = maxWords(kernel, numGroups, maxima);
  return {address(kernel.body(), words, mine->group, (maxima + 1) * 4), mine->blocks};
}

/// Counts this CTA, `offset` bytes behind the first word; what it was, and what the last one finds.
static std::pair<Value, Value> emitCount(ImplicitLocOpBuilder &b, MaxCtas blocks, int64_t offset) {
  Value most = arith::SubIOp::create(b, blocks.number, constI32(b, 1));
  Value counter = advance(b, blocks.words, offset);
  return {countAndSynchronize(b, b.getLoc(), counter, most), most};
}

/// Folds what this CTA has, `bits`, with what the others have; the last one stores it. One thread
/// is here: its atomics are in order. The count releases them, and the last one acquires them all:
/// it is alone with the words, and needs no atomics.
static void emitFold(ImplicitLocOpBuilder &b, Scalars &s, ArrayRef<Value> bits,
                     ArrayRef<Value> results, MaxCtas blocks) {
  auto word = [&](size_t i) { return advance(b, blocks.words, 4 * i); };
  for (auto [i, mine] : llvm::enumerate(bits))
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, word(i), mine,
                              LLVM::AtomicOrdering::monotonic, "device");
  auto [before, most] = emitCount(b, blocks, 4 * bits.size());
  emitWhen(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, most), [&] {
    for (auto [i, result] : llvm::enumerate(results)) {
      store(b, LLVM::LoadOp::create(b, b.getI32Type(), word(i), /*alignment=*/4), result, 4);
      store(b, s.integer(0), word(i), 4);
    }
  });
}

/// Has the first thread of a CTA execute the code of `then`, given the bits of the CTA's maxima.
static void reduceBlock(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> values,
                        function_ref<void(ArrayRef<Value>)> then) {
  ImplicitLocOpBuilder &b = kernel.body();
  const int64_t warps = kernel.numThreads() / kWarp;
  Value shared = kernel.sharedWords(warps * values.size(), "warp_max");
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value lane = arith::AndIOp::create(b, thread, s.integer(kWarp - 1));
  Value isFirstLane = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, s.integer(0));
  auto slots = [&](size_t i) { return advance(b, shared, i * warps * 4); };
  for (auto [i, value] : llvm::enumerate(values)) {
    Value warpBits = reduceWarp(b, magnitudeBits(b, s, value));
    emitWhen(b, isFirstLane, [&] {
      Value warp = arith::ShRUIOp::create(b, thread, s.integer(5));
      store(b, warpBits, address(b, slots(i), warp, 4), 4);
    });
  }
  NVVM::Barrier0Op::create(b);
  Value isFirstWarp = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, s.integer(kWarp));
  emitWhen(b, isFirstWarp, [&] {
    Value slot = arith::AndIOp::create(b, thread, s.integer(warps - 1));
    SmallVector<Value> bits;
    for (size_t i = 0; i < values.size(); ++i) {
      Value warpBits =
          LLVM::LoadOp::create(b, b.getI32Type(), address(b, slots(i), slot, 4), /*alignment=*/4);
      bits.push_back(reduceWarp(b, warpBits));
    }
    emitWhen(b, isFirstLane, [&] { then(bits); });
  });
}

void fp4::emitBlockMax(KernelBuilder &kernel, Scalars &s, Value value,
                       function_ref<void(Value)> then) {
  reduceBlock(kernel, s, value, [&](ArrayRef<Value> bits) { then(bits.front()); });
}

void fp4::emitGridMax(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> values,
                      ArrayRef<Value> results, std::optional<MaxCtas> blocks) {
  ImplicitLocOpBuilder &b = kernel.body();
  reduceBlock(kernel, s, values, [&](ArrayRef<Value> bits) {
    if (blocks)
      return emitFold(b, s, bits, results, *blocks);
    for (auto [mine, result] : llvm::zip_equal(bits, results))
      store(b, mine, result, 4);
  });
}

/// Waits until a counter is zero again.
static void emitWaitForZero(ImplicitLocOpBuilder &b, Scalars &s, Value counter) {
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard restore(b);
  b.createBlock(&loop.getBefore());
  Value count = loadAndAcquire(b, b.getLoc(), counter);
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, count, s.integer(0));
  scf::ConditionOp::create(b, some, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

Value fp4::emitMaxOfAll(KernelBuilder &kernel, Scalars &s, Value value, Value result) {
  ImplicitLocOpBuilder &b = kernel.body();
  // The maximum and, above it, the CTAs that have read it; those that have come.
  MaxCtas blocks = ctasOfGrid(kernel, /*maxima=*/2);
  constexpr int64_t come = 8;
  Value known = kernel.sharedWords(1, "grid_max");
  auto atomic = [&](LLVM::AtomicBinOp kind, Value operand) -> Value {
    return LLVM::AtomicRMWOp::create(b, kind, blocks.words, operand, LLVM::AtomicOrdering::monotonic,
                                     "device");
  };
  auto wide = [&](int64_t x) -> Value { return arith::ConstantIntOp::create(b, b.getI64Type(), x); };
  reduceBlock(kernel, s, value, [&](ArrayRef<Value> bits) {
    atomic(LLVM::AtomicBinOp::umax, arith::ExtUIOp::create(b, b.getI64Type(), bits.front()));
    Value most = emitCount(b, blocks, come).second;
    emitWaitForZero(b, s, advance(b, blocks.words, come));
    Value both = atomic(LLVM::AtomicBinOp::add, wide(int64_t(1) << 32));
    Value largest = arith::TruncIOp::create(b, b.getI32Type(), both);
    store(b, largest, known, 4);
    Value before = arith::TruncIOp::create(b, b.getI32Type(), arith::ShRUIOp::create(b, both, wide(32)));
    emitWhen(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, most), [&] {
      atomic(LLVM::AtomicBinOp::xchg, wide(0)); // nobody reads the word any more
      store(b, largest, result, 4);
    });
  });
  NVVM::Barrier0Op::create(b);
  return LLVM::LoadOp::create(b, b.getF32Type(), known, /*alignment=*/4);
}
