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
    : kernel(kernel) {
  ImplicitLocOpBuilder &b = kernel.body();
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  int64_t all = std::accumulate(items.begin(), items.end(), int64_t(0)), first = 0;
  for (auto [group, count] : llvm::enumerate(items)) {
    if (count == 0)
      continue;
    // The CTAs of gridMaxCtas, of which the group has its part.
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
    Value slot = llvm::isPowerOf2_64(warps)
                     ? arith::AndIOp::create(b, thread, s.integer(warps - 1)).getResult()
                     : arith::MinUIOp::create(b, thread, s.integer(warps - 1)).getResult();
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

/// The message of a CTA: `maxima` magnitudes of 32 bits in one integer. Magnitudes have no sign, so
/// that the highest bit says that the integer is there.
struct Message {
  ImplicitLocOpBuilder &b;
  int64_t maxima;

  IntegerType type() const { return b.getIntegerType(32 * maxima); }
  Value constant(int64_t value) const {
    return arith::ConstantIntOp::create(b, type(), value).getResult();
  }
  Value flag() const { return constant(llvm::minIntN(32 * maxima)); }

  Value pack(ArrayRef<Value> bits) const {
    Value message = flag();
    for (auto [i, mine] : llvm::enumerate(bits)) {
      Value wide = maxima > 1 ? arith::ExtUIOp::create(b, type(), mine).getResult() : mine;
      Value there = i ? arith::ShLIOp::create(b, wide, constant(32 * i)).getResult() : wide;
      message = arith::OrIOp::create(b, message, there);
    }
    return message;
  }

  SmallVector<Value> unpack(Value message) const {
    Value all = arith::XOrIOp::create(b, message, flag());
    SmallVector<Value> bits;
    for (int64_t i = 0; i < maxima; ++i) {
      Value here = i ? arith::ShRUIOp::create(b, all, constant(32 * i)).getResult() : all;
      bits.push_back(maxima > 1 ? arith::TruncIOp::create(b, b.getI32Type(), here).getResult()
                                : here);
    }
    return bits;
  }

  /// Stores to memory that other CTAs load meanwhile.
  void store(Value message, Value pointer) const {
    LLVM::StoreOp::create(b, message, pointer, /*alignment=*/4 * maxima, /*isVolatile=*/false,
                          /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                          LLVM::AtomicOrdering::monotonic, "device");
  }

  /// Waits until there is a message, clears its place, and returns its magnitudes.
  SmallVector<Value> take(Value pointer) const {
    auto loop = scf::WhileOp::create(b, type(), ValueRange());
    {
      OpBuilder::InsertionGuard restore(b);
      b.createBlock(&loop.getBefore());
      Value message = LLVM::LoadOp::create(
          b, type(), pointer, /*alignment=*/4 * maxima, /*isVolatile=*/false,
          /*isNonTemporal=*/false, /*isInvariant=*/false, /*isInvariantGroup=*/false,
          LLVM::AtomicOrdering::monotonic, "device");
      Value isMissing = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, message, constant(0));
      scf::ConditionOp::create(b, isMissing, message);
      b.createBlock(&loop.getAfter(), {}, type(), b.getLoc());
      scf::YieldOp::create(b);
    }
    store(constant(0), pointer);
    return unpack(loop.getResult(0));
  }
};

/// The larger of each of `bits`, and of what the CTAs behind the first one leave. The threads of
/// the first CTA share the CTAs out among themselves.
static SmallVector<Value> emitCollect(KernelBuilder &kernel, Scalars &s, ArrayRef<Value> bits,
                                      MaxCtas ctas) {
  ImplicitLocOpBuilder &b = kernel.body();
  Message message{b, static_cast<int64_t>(bits.size())};
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value first = arith::AddIOp::create(b, thread, s.integer(1));
  return kernel.forEachItem(
      first, ctas.number, s.integer(kernel.numThreads()), bits, [&](Value cta, ValueRange carried) {
        SmallVector<Value> found = message.take(address(b, ctas.words, cta, 4 * message.maxima));
        for (auto [largest, mine] : llvm::zip_equal(found, carried))
          largest = arith::MaxUIOp::create(b, mine, largest);
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

/// Leaves the maxima of a CTA to the first one.
static void leave(ImplicitLocOpBuilder &b, ArrayRef<Value> bits, MaxCtas ctas) {
  Message message{b, static_cast<int64_t>(bits.size())};
  message.store(message.pack(bits), address(b, ctas.words, ctas.index, 4 * message.maxima));
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
    emitWhen(b, isFirst, [&] { storeResults(bits); }, [&] { leave(b, bits, *ctas); });
  });
}

//===----------------------------------------------------------------------===//
// A maximum that every CTA waits for
//===----------------------------------------------------------------------===//

/// Words from the answer to a CTA to that of the next one, which no other CTA loads meanwhile.
static constexpr int64_t kAnswerWords = 8;

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
    emitWhen(b, isFirst, storeAmax, [&] {
      leave(b, bits, ctas);
      keep(Message{b, 1}.take(answer(index)).front());
    });
  });
  NVVM::Barrier0Op::create(b);
  Value largest = LLVM::LoadOp::create(b, b.getI32Type(), known, /*alignment=*/4);
  emitWhen(b, isFirst, [&] {
    Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
    Value first = arith::AddIOp::create(b, thread, s.integer(1));
    Message message{b, 1};
    Value largestOfAll = message.pack(largest);
    kernel.forEachItem(first, number, s.integer(kernel.numThreads()), {},
                       [&](Value cta, ValueRange) {
                         message.store(largestOfAll, answer(cta));
                         return SmallVector<Value>{};
                       });
  });
  return arith::BitcastOp::create(b, b.getF32Type(), largest);
}
