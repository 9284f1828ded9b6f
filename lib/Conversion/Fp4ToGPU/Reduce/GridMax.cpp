//===- GridMax.cpp - Maxima over all threads of a launch ------------------===//
#include "Reduce/GridMax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

static constexpr int64_t kWarp = 32;

Value fp4::gridMaxBlocks(KernelBuilder &kernel, const hw::TargetModel &target, Value items) {
  ImplicitLocOpBuilder &host = kernel.host();
  Value blocks = arith::CeilDivUIOp::create(host, items, constIndex(host, kernel.itemsPerBlock()));
  blocks = arith::MinUIOp::create(
      host, blocks, constIndex(host, target.multiprocessors * kernel.blocksPerMultiprocessor()));
  return arith::MaxUIOp::create(host, blocks, constIndex(host, 1));
}

GroupedGrid::GroupedGrid(KernelBuilder &kernel, const hw::TargetModel &target,
                         ArrayRef<int64_t> items)
    : kernel(kernel) {
  ImplicitLocOpBuilder &b = kernel.body();
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  int64_t all = std::accumulate(items.begin(), items.end(), int64_t(0)), first = 0;
  for (auto [group, count] : llvm::enumerate(items)) {
    if (count == 0)
      continue;
    // As gridMaxBlocks, of which the group has its part.
    int64_t wanted = llvm::divideCeil(count, kernel.itemsPerBlock());
    double part = static_cast<double>(count) / static_cast<double>(all);
    int64_t most =
        static_cast<int64_t>(part * target.multiprocessors * kernel.blocksPerMultiprocessor());
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

void fp4::emitGridMax(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> values,
                      ArrayRef<Value> results) {
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
    for (auto [i, result] : llvm::enumerate(results)) {
      Value warpBits =
          LLVM::LoadOp::create(b, b.getI32Type(), address(b, slots(i), slot, 4), /*alignment=*/4);
      Value blockBits = reduceWarp(b, warpBits);
      emitWhen(b, isFirstLane, [&] {
        LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, result, blockBits,
                                  LLVM::AtomicOrdering::monotonic, "device");
      });
    }
  });
}
