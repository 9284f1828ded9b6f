//===- ExpertOrder.cpp - Tokens in the order of their experts -------------===//
//
// One CTA sorts by counting, in the order of tokens whatever its threads:
//
//   1. Each warp counts the ids of its part, by experts, in words of its own.
//   2. A thread for each expert adds the counts of warps, and each warp gets what is before its
//      part. One warp adds the rows of experts.
//   3. Each warp goes through its part again. match.sync finds the lanes with the same expert, and
//      the lane's number among them is what its row has beyond the count so far.
//
//===----------------------------------------------------------------------===//
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"
#include "Reduce/GridMax.h"

#include "fp4/Numerics/ExpertOrder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Ids of a lane that are loaded together.
constexpr int64_t kLoads = 4;
constexpr int64_t kNone = -1;

class ExpertOrder {
public:
  ExpertOrder(ExpertOrderOp op, LoweringContext &context)
      : kernel(op, "expert_order", context), b(kernel.body()), op(op),
        experts(int64_t(op.getExperts())), warps(kernel.numThreads() / kWarp),
        perToken(cast<RankedTensorType>(op.getIds().getType()).getDimSize(1)) {}

  void emit();

private:
  /// An id, and its place among those of a warp's step.
  struct Id {
    Int32 index;  ///< among all ids
    Value exists; ///< i1
    Int32 expert; ///< kNone for an id of no expert
  };
  /// The lanes with the expert of a lane.
  struct Peers {
    Value isLeader, isLocal; ///< i1
    Int32 before, number;    ///< lanes before this one, and all
  };

  void setOperands();
  void clear();
  void forEachStep(llvm::function_ref<void(const Id &)> body);
  SmallVector<Id> load(Int32 first);
  Peers peersOf(const Id &id);
  Value countOf(Int32 warp, Int32 expert);
  Int32 read(Value shared) { return {b, LLVM::LoadOp::create(b, b.getI32Type(), shared, 4)}; }
  void addCounts();
  void addExperts();
  void place(const Id &id);
  void storeWide(Value base, Int32 index, Int32 value, bool isSigned = false);

  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  ExpertOrderOp op;
  int64_t experts, warps, perToken;
  Value ids, offsets, rows, tokens; ///< pointers
  Value counts, starts;             ///< in shared memory: of warps and experts, and of experts
  std::optional<Int32> numIds, numRows, thread, lane, warp;
};

} // namespace

/// Makes the operands of the kernel, and values that all steps read.
void ExpertOrder::setOperands() {
  ImplicitLocOpBuilder &host = kernel.host();
  Value hostTokens = kernel.hostRows(op.getIds());
  Value pairs = arith::MulIOp::create(host, hostTokens, constIndex(host, perToken));
  kernel.expectSize("numbers", "ids", pairs,
                    arith::MinUIOp::create(host, pairs, constIndex(host, numerics::mostOrderedIds)),
                    "order parts of the tokens");
  int64_t padding = experts * (int64_t(op.getMultiple()) - 1);
  Value hostRows = arith::AddIOp::create(host, pairs, constIndex(host, padding));
  numIds = Int32(b, kernel.scalar(pairs));
  numRows = Int32(b, kernel.scalar(hostRows));
  ids = kernel.input(op.getIds());
  offsets = kernel.output(op.getOffsets(), Value());
  rows = kernel.output(op.getRows(), hostTokens);
  tokens = kernel.output(op.getTokens(), hostRows);
  counts = kernel.sharedWords(warps * experts, "counts");
  starts = kernel.sharedWords(experts, "starts");
  thread = Int32(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  lane = *thread % kWarp;
  warp = *thread / kWarp;
}

void ExpertOrder::emit() {
  setOperands();
  clear();
  NVVM::Barrier0Op::create(b);
  forEachStep([&](const Id &id) {
    emitWhen(b, id.expert < experts, [&] {
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::add, countOf(*warp, id.expert),
                                constI32(b, 1), LLVM::AtomicOrdering::monotonic, "block");
    });
  });
  NVVM::Barrier0Op::create(b);
  addCounts();
  NVVM::Barrier0Op::create(b);
  emitWhen(b, *warp < 1, [&] { addExperts(); });
  NVVM::Barrier0Op::create(b);
  forEachStep([&](const Id &id) { place(id); });
  kernel.launch(constIndex(kernel.host(), 1));
}

/// Zero counts, and tokens of rows that no id has.
void ExpertOrder::clear() {
  Value step = constI32(b, kernel.numThreads());
  kernel.forEachItem(*thread, constI32(b, warps * experts), step, {}, [&](Value i, ValueRange) {
    store(b, constI32(b, 0), address(b, counts, i, 4), 4);
    return SmallVector<Value>();
  });
  kernel.forEachItem(*thread, *numRows, step, {}, [&](Value i, ValueRange) {
    store(b, constI64(b, 0), address(b, tokens, i, 8), 8);
    return SmallVector<Value>();
  });
}

/// The count of a warp; of an expert that is none, some other one.
Value ExpertOrder::countOf(Int32 warp, Int32 expert) {
  Int32 inRange = minimum(expert, Int32(b, experts - 1));
  return address(b, counts, warp * experts + inRange, 4);
}

/// The ids that a warp takes in one step of its loop, 32 at a time.
SmallVector<ExpertOrder::Id> ExpertOrder::load(Int32 first) {
  SmallVector<Id> loaded;
  for (int64_t i = 0; i < kLoads; ++i) {
    Int32 index = first + i * kWarp + *lane;
    Value exists = index < *numIds;
    Value place = address(b, ids, minimum(index, *numIds - 1), 4);
    Int32 local = Int32(b, fp4::load(b, b.getI32Type(), place, 4)) - int64_t(op.getFirst());
    Value isLocal = arith::AndIOp::create(b, exists, local < experts);
    loaded.push_back({index, exists, select(isLocal, local, Int32(b, kNone))});
  }
  return loaded;
}

/// Emits `body` for the ids of the part of a warp, in their order.
void ExpertOrder::forEachStep(llvm::function_ref<void(const Id &)> body) {
  int64_t unit = kWarp * kLoads;
  Int32 steps = (*numIds + (unit * warps - 1)) / (unit * warps);
  Int32 first = *warp * steps * unit, end = minimum(first + steps * unit, *numIds);
  kernel.forEachItem(first, end, constI32(b, unit), {}, [&](Value at, ValueRange) {
    for (const Id &id : load({b, at}))
      body(id);
    return SmallVector<Value>();
  });
}

ExpertOrder::Peers ExpertOrder::peersOf(const Id &id) {
  Int32 all(b, NVVM::MatchSyncOp::create(b, b.getI32Type(), constI32(b, -1), id.expert,
                                         NVVM::MatchSyncKind::any));
  auto population = [&](Int32 mask) { return Int32(b, math::CtPopOp::create(b, Value(mask))); };
  Int32 before = population(all & ((1u << *lane) - 1));
  Value isLocal = id.expert < experts;
  return {arith::AndIOp::create(b, isLocal, before < 1), isLocal, before, population(all)};
}

/// Replaces the counts of each expert by those of the warps before, and has the rows of all, a
/// multiple, as its start.
void ExpertOrder::addCounts() {
  kernel.forEachItem(*thread, constI32(b, experts), constI32(b, kernel.numThreads()), {},
                     [&](Value at, ValueRange) {
                       Int32 expert(b, at), sum(b, 0);
                       for (int64_t i = 0; i < warps; ++i) {
                         Value place = countOf(Int32(b, i), expert);
                         Int32 count = read(place);
                         store(b, sum, place, 4);
                         sum = sum + count;
                       }
                       int64_t multiple = int64_t(op.getMultiple());
                       Int32 padded = (sum + (multiple - 1)) / multiple * multiple;
                       store(b, padded, address(b, starts, expert, 4), 4);
                       return SmallVector<Value>();
                     });
}

/// Has a warp replace the rows of experts by those of the experts before, which are the offsets.
void ExpertOrder::addExperts() {
  int64_t perLane = llvm::divideCeil(experts, kWarp);
  SmallVector<Int32> found;
  Int32 sum(b, 0);
  for (int64_t i = 0; i < perLane; ++i) {
    Int32 expert = *lane * perLane + i;
    Int32 inRange = minimum(expert, Int32(b, experts - 1));
    Int32 count = read(address(b, starts, inRange, 4));
    found.push_back(select(expert < experts, count, Int32(b, 0)));
    sum = sum + found.back();
  }
  Int32 before = sum; // and then of all lanes up to this one
  for (int64_t distance = 1; distance < kWarp; distance *= 2) {
    Int32 other(b, NVVM::ShflOp::create(b, b.getI32Type(), constI32(b, -1), before,
                                        constI32(b, distance), constI32(b, 0), NVVM::ShflKind::up,
                                        UnitAttr()));
    before = select(*lane < distance, before, before + other);
  }
  NVVM::SyncWarpOp::create(b, constI32(b, -1)); // counts are read
  before = before - sum;
  for (int64_t i = 0; i < perLane; ++i) {
    Int32 expert = *lane * perLane + i;
    emitWhen(b, expert < experts, [&] {
      store(b, before, address(b, starts, expert, 4), 4);
      storeWide(offsets, expert, before);
    });
    before = before + found[size_t(i)];
  }
  emitWhen(b, Int32(b, kWarp - 2) < *lane, [&] { storeWide(offsets, Int32(b, experts), before); });
}

/// Stores the row of an id, and the token of the row.
void ExpertOrder::place(const Id &id) {
  Peers peers = peersOf(id);
  Value count = countOf(*warp, id.expert);
  Int32 inRange = minimum(id.expert, Int32(b, experts - 1));
  Int32 before = read(count) + peers.before;
  Int32 row = read(address(b, starts, inRange, 4)) + before;
  NVVM::SyncWarpOp::create(b, constI32(b, -1)); // counts are read
  emitWhen(b, peers.isLeader, [&] { store(b, before + peers.number, count, 4); });
  NVVM::SyncWarpOp::create(b, constI32(b, -1));
  emitWhen(b, id.exists, [&] {
    storeWide(rows, id.index, select(peers.isLocal, row, Int32(b, kNone)), /*isSigned=*/true);
  });
  emitWhen(b, peers.isLocal, [&] { storeWide(tokens, row, id.index / perToken); });
}

/// Stores a number as i64.
void ExpertOrder::storeWide(Value base, Int32 index, Int32 value, bool isSigned) {
  Value wide = isSigned ? Value(arith::ExtSIOp::create(b, b.getI64Type(), value))
                        : Value(arith::ExtUIOp::create(b, b.getI64Type(), value));
  store(b, wide, address(b, base, index, 8), 8);
}

LogicalResult fp4::lowerExpertOrder(ExpertOrderOp op, LoweringContext &context) {
  ExpertOrder(op, context).emit();
  return success();
}
