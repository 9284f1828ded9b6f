//===- GridMax.cpp - Maxima over all threads of a launch ------------------===//
#include "Reduce/GridMax.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

/// The largest grid of a kernel that gridMaxCtas launches.
static int64_t mostCtas(KernelBuilder &kernel, const hw::TargetModel &target) {
  return target.sms * kernel.ctasPerSm();
}

Value fp4::gridMaxCtas(KernelBuilder &kernel, const hw::TargetModel &target, Value items) {
  ImplicitLocOpBuilder &host = kernel.host();
  Value blocks = arith::CeilDivUIOp::create(host, items, constIndex(host, kernel.itemsPerCta()));
  blocks = arith::MinUIOp::create(host, blocks, constIndex(host, mostCtas(kernel, target)));
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

/// Returns the pointer in the kernel to `words` words that are 0 when it begins.
static Value maxWords(KernelBuilder &kernel, int64_t words) {
  auto type = RankedTensorType::get({words}, kernel.body().getI32Type());
  auto memory = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = allocateCounters(kernel.host(), kernel.host().getLoc(), memory);
  return kernel.pointer(buffer, type);
}

MaxCtas fp4::ctasOfGrid(KernelBuilder &kernel, const hw::TargetModel &target, int64_t maxima) {
  ImplicitLocOpBuilder &b = kernel.body();
  Value words = maxWords(kernel, mostCtas(kernel, target) * maxima);
  return {words, NVVM::BlockIdXOp::create(b, b.getI32Type()),
          NVVM::GridDimXOp::create(b, b.getI32Type())};
}

MaxCtas GroupedGrid::ctasOfGroup(int64_t maxima) {
  ImplicitLocOpBuilder &b = kernel.body();
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Value words = maxWords(kernel, numBlocks * maxima);
  return {address(b, words, mine->firstBlock, maxima * 4), block - mine->firstBlock, mine->blocks};
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
    Value warpBits = reduceWarp(b, value);
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
  Value bits = magnitudeBits(kernel.body(), s, value);
  reduceBlock(kernel, s, bits, [&](ArrayRef<Value> bits) { then(bits.front()); });
}

//===----------------------------------------------------------------------===//
// Maxima that CTAs leave to the first one
//===----------------------------------------------------------------------===//

/// The bit by which a word that a CTA has left differs from 0. Magnitudes have no sign.
static constexpr int64_t kLeft = int64_t(1) << 31;

/// Words that several CTAs read and write at a time.
static Value loadShared(ImplicitLocOpBuilder &b, Value pointer) {
  return LLVM::LoadOp::create(b, b.getI32Type(), pointer, /*alignment=*/4, /*isVolatile=*/false,
                              /*isNonTemporal=*/false, /*isInvariant=*/false,
                              /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic,
                              "device");
}
static void storeShared(ImplicitLocOpBuilder &b, Value word, Value pointer) {
  LLVM::StoreOp::create(b, word, pointer, /*alignment=*/4, /*isVolatile=*/false,
                        /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                        LLVM::AtomicOrdering::monotonic, "device");
}

/// Waits until each of the words at `pointers` has been left; returns them.
static SmallVector<Value> emitWait(ImplicitLocOpBuilder &b, Scalars &s, ArrayRef<Value> pointers) {
  SmallVector<Type> types(pointers.size(), b.getI32Type());
  auto loop = scf::WhileOp::create(b, types, ValueRange());
  OpBuilder::InsertionGuard restore(b);
  b.createBlock(&loop.getBefore());
  SmallVector<Value> words;
  Value missing;
  for (Value pointer : pointers) {
    words.push_back(loadShared(b, pointer));
    Value isMissing =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, words.back(), s.integer(0));
    missing = missing ? arith::OrIOp::create(b, missing, isMissing).getResult() : isMissing;
  }
  scf::ConditionOp::create(b, missing, words);
  SmallVector<Location> locations(pointers.size(), b.getLoc());
  b.createBlock(&loop.getAfter(), {}, types, locations);
  scf::YieldOp::create(b);
  return loop.getResults();
}

/// The larger of each of `bits`, and of what the CTAs behind the first one leave; clears their
/// words. The threads of the first CTA share the CTAs out among themselves.
static SmallVector<Value> emitCollect(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> bits,
                                      MaxCtas ctas) {
  ImplicitLocOpBuilder &b = kernel.body();
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value first = arith::AddIOp::create(b, thread, s.integer(1));
  auto maxima = static_cast<int64_t>(bits.size());
  return kernel.forEachItem(
      first, ctas.number, s.integer(kernel.numThreads()), bits, [&](Value cta, ValueRange carried) {
        Value words = address(b, ctas.words, cta, 4 * maxima);
        auto pointers = llvm::map_to_vector(llvm::seq(maxima),
                                            [&](int64_t i) { return advance(b, words, 4 * i); });
        SmallVector<Value> found;
        for (auto [mine, word] : llvm::zip_equal(carried, emitWait(b, s, pointers)))
          found.push_back(arith::MaxUIOp::create(
              b, mine, arith::AndIOp::create(b, word, s.integer(kLeft - 1))));
        for (Value pointer : pointers)
          storeShared(b, s.integer(0), pointer);
        return found;
      });
}

/// The first CTA collects the maxima of all, and the others keep `bits`.
static SmallVector<Value> collectInFirst(KernelBuilder &kernel, Scalars &s, Value isFirst,
                                         ArrayRef<Value> bits, MaxCtas ctas) {
  auto all = scf::IfOp::create(
      kernel.body(), isFirst,
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, emitCollect(kernel, s, bits, ctas));
      },
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, bits); });
  return all.getResults();
}

/// Emits `then` for the threads where `condition` holds, and `otherwise` for the others.
static void emitEither(ImplicitLocOpBuilder &b, Value condition, function_ref<void()> then,
                       function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

/// Leaves the maxima of a CTA to the first one.
static void leave(ImplicitLocOpBuilder &b, Scalars &s, ArrayRef<Value> bits, MaxCtas ctas) {
  Value words = address(b, ctas.words, ctas.index, 4 * static_cast<int64_t>(bits.size()));
  for (auto [i, mine] : llvm::enumerate(bits))
    storeShared(b, arith::OrIOp::create(b, mine, s.integer(kLeft)), advance(b, words, 4 * i));
}

static Value isZero(ImplicitLocOpBuilder &b, Scalars &s, Value index) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, s.integer(0));
}

void fp4::emitGridMax(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> values,
                      ArrayRef<Value> results, std::optional<MaxCtas> ctas) {
  ImplicitLocOpBuilder &b = kernel.body();
  auto bits = llvm::map_to_vector(values, [&](Value x) { return magnitudeBits(b, s, x); });
  auto storeResults = [&](ArrayRef<Value> bits) {
    for (auto [mine, result] : llvm::zip_equal(bits, results))
      store(b, mine, result, 4);
  };
  if (!ctas)
    return reduceBlock(kernel, s, bits, storeResults);
  Value isFirst = isZero(b, s, ctas->index);
  bits = collectInFirst(kernel, s, isFirst, bits, *ctas);
  reduceBlock(kernel, s, bits, [&](ArrayRef<Value> bits) {
    emitEither(b, isFirst, [&] { storeResults(bits); }, [&] { leave(b, s, bits, *ctas); });
  });
}

//===----------------------------------------------------------------------===//
// A maximum that every CTA waits for
//===----------------------------------------------------------------------===//

/// Words from the answer to a CTA to that of the next one, which no other CTA loads meanwhile.
static constexpr int64_t kAnswerWords = 8;

/// The answer of the first CTA, whose word becomes 0 again.
static Value takeAnswer(ImplicitLocOpBuilder &b, Scalars &s, Value pointer) {
  Value word = emitWait(b, s, pointer).front();
  storeShared(b, s.integer(0), pointer);
  return arith::AndIOp::create(b, word, s.integer(kLeft - 1));
}

Value fp4::emitMaxOfAll(KernelBuilder &kernel, Scalars &s, Value value, Value result) {
  ImplicitLocOpBuilder &b = kernel.body();
  Value index = NVVM::BlockIdXOp::create(b, b.getI32Type());
  Value number = NVVM::GridDimXOp::create(b, b.getI32Type());
  // One allocation: two of the same launch may be the same memory.
  Value words = maxWords(kernel, kAmaxMostCtas * (1 + kAnswerWords));
  Value answers = advance(b, words, 4 * kAmaxMostCtas);
  MaxCtas ctas = {words, index, number};
  auto answer = [&](Value cta) { return address(b, answers, cta, 4 * kAnswerWords); };
  Value known = kernel.sharedWords(1, "grid_max"), isFirst = isZero(b, s, index);
  SmallVector<Value> bits = collectInFirst(kernel, s, isFirst, magnitudeBits(b, s, value), ctas);
  reduceBlock(kernel, s, bits, [&](ArrayRef<Value> bits) {
    auto keep = [&](Value largest) { store(b, largest, known, 4); };
    auto storeAmax = [&] {
      keep(bits.front());
      store(b, bits.front(), result, 4);
    };
    emitEither(b, isFirst, storeAmax, [&] {
      leave(b, s, bits, ctas);
      keep(takeAnswer(b, s, answer(index)));
    });
  });
  NVVM::Barrier0Op::create(b);
  Value largest = LLVM::LoadOp::create(b, b.getI32Type(), known, /*alignment=*/4);
  emitWhen(b, isFirst, [&] {
    Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    Value first = arith::AddIOp::create(b, thread, s.integer(1));
    Value word = arith::OrIOp::create(b, largest, s.integer(kLeft));
    kernel.forEachItem(first, number, s.integer(kernel.numThreads()), {},
                       [&](Value cta, ValueRange) {
                         storeShared(b, word, answer(cta));
                         return SmallVector<Value>{};
                       });
  });
  return arith::BitcastOp::create(b, b.getF32Type(), largest);
}
