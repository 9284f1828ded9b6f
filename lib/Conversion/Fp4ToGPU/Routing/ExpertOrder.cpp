//===- ExpertOrder.cpp - Tokens in the order of their experts -------------===//
//
// The CTAs of one cluster sort by counting, in the order of tokens whatever their threads:
//
//   1. Each warp counts the ids of its part, by experts, in words of its own.
//   2. For each expert a warp adds the counts of warps, and each warp gets what is before its part.
//      A thread adds the counts of CTAs, which it loads from their shared memory. One warp adds the
//      rows of experts.
//   3. Each warp goes through its part again. match.sync finds the lanes with the same expert, and
//      the lane's number among them is what its row has beyond the count so far.
//
// The host launches one CTA for few ids, since a cluster waits for the start of all its CTAs.
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
/// Ids that one CTA orders sooner than a cluster.
constexpr int64_t kIdsOfCta = 1024;

class ExpertOrder {
public:
  ExpertOrder(ExpertOrderOp op, LoweringContext &context)
      : kernel(op, "expert_order", context), b(kernel.body()), op(op),
        experts(int64_t(op.getExperts())), warps(kernel.numThreads() / kWarp),
        mostCtas(context.target.limits.maxClusterSize),
        perToken(cast<RankedTensorType>(op.getIds().getType()).getDimSize(1)) {}

  void emit();

private:
  /// An id, and its place among those of a warp's step.
  struct Id {
    Int32 first;  ///< the index of lane 0
    Int32 index;  ///< among all ids
    Value exists; ///< i1: in the part of the warp
    Int32 expert; ///< kNone for an id of no expert
  };
  /// The lanes with the expert of a lane.
  struct Peers {
    Value isLeader, isLocal; ///< i1
    Int32 before, number;    ///< lanes before this one, and all
  };

  void setOperands();
  void setPlaces();
  void clear();
  void forEachStep(llvm::function_ref<void(const Id &)> body);
  SmallVector<Id> load(Int32 first, Int32 end);
  Peers peersOf(const Id &id);
  /// Words from a warp's counts to those of the next one: an expert's are in different banks.
  int64_t pitch() const { return experts | 1; }
  Value countOf(Int32 warp, Int32 expert);
  Int32 read(Value shared) { return {b, LLVM::LoadOp::create(b, b.getI32Type(), shared, 4)}; }
  Int32 sumOfLanesUpTo(Int32 value);
  void addCounts();
  void meetCtas();
  Int32 totalOf(Value mine, int64_t cta);
  void addCtas();
  void addExperts();
  void place(const Id &id);
  void storeWide(Value base, Int32 index, Int32 value, bool isSigned = false);

  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  ExpertOrderOp op;
  int64_t experts, warps, mostCtas, perToken;
  Value hostCtas;                   ///< index
  Value ids, offsets, rows, tokens; ///< pointers
  Value counts;                     ///< counts of warps and experts, in shared memory
  Value totals, others;             ///< counts of experts in this CTA, and in CTAs before
  Value starts;                     ///< first rows of experts
  std::optional<Int32> numIds, numRows, thread, lane, warp, cta, ctas;
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
  Value isFew =
      arith::CmpIOp::create(host, arith::CmpIPredicate::ule, pairs, constIndex(host, kIdsOfCta));
  hostCtas = arith::SelectOp::create(host, isFew, constIndex(host, 1), constIndex(host, mostCtas));
  numIds = Int32(b, kernel.scalar(pairs));
  numRows = Int32(b, kernel.scalar(hostRows));
  ids = kernel.input(op.getIds());
  offsets = kernel.output(op.getOffsets(), Value());
  rows = kernel.output(op.getRows(), hostTokens);
  tokens = kernel.output(op.getTokens(), hostRows);
  setPlaces();
}

/// Makes the arrays in shared memory, and the numbers of this thread.
void ExpertOrder::setPlaces() {
  counts = kernel.sharedWords(warps * pitch(), "counts");
  totals = kernel.sharedWords(experts, "totals");
  others = kernel.sharedWords(experts, "others");
  starts = kernel.sharedWords(experts, "starts");
  thread = Int32(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  lane = *thread % kWarp;
  warp = *thread / kWarp;
  cta = Int32(b, NVVM::ClusterId::create(b, b.getI32Type()));
  ctas = Int32(b, NVVM::ClusterDim::create(b, b.getI32Type()));
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
  meetCtas(); // all totals are there, and what CTAs clear precedes what others store there
  addCtas();
  NVVM::Barrier0Op::create(b);
  emitWhen(b, *warp < 1, [&] { addExperts(); });
  NVVM::Barrier0Op::create(b);
  forEachStep([&](const Id &id) { place(id); });
  meetCtas(); // no CTA ends while others read its totals
  kernel.launchCluster(hostCtas);
}

/// Zero counts, and tokens of rows that no id has.
void ExpertOrder::clear() {
  int64_t step = kernel.numThreads();
  kernel.forEachItem(*thread, constI32(b, warps * pitch()), constI32(b, step), {},
                     [&](Value i, ValueRange) {
                       store(b, constI32(b, 0), address(b, counts, i, 4), 4);
                       return SmallVector<Value>();
                     });
  Int32 first = *cta * step + *thread, stride = *ctas * step;
  kernel.forEachItem(first, *numRows, stride, {}, [&](Value i, ValueRange) {
    store(b, constI64(b, 0), address(b, tokens, i, 8), 8);
    return SmallVector<Value>();
  });
}

/// The count of a warp; of an expert that is none, some other one.
Value ExpertOrder::countOf(Int32 warp, Int32 expert) {
  Int32 inRange = minimum(expert, Int32(b, experts - 1));
  return address(b, counts, warp * pitch() + inRange, 4);
}

/// The ids that a warp takes in one step of its loop, 32 at a time; `end` is that of its part.
SmallVector<ExpertOrder::Id> ExpertOrder::load(Int32 first, Int32 end) {
  SmallVector<Id> loaded;
  for (int64_t i = 0; i < kLoads; ++i) {
    Int32 firstOfLanes = first + i * kWarp, index = firstOfLanes + *lane;
    Value exists = index < end;
    Value place = address(b, ids, minimum(index, *numIds - 1), 4);
    Int32 local = Int32(b, fp4::load(b, b.getI32Type(), place, 4)) - int64_t(op.getFirst());
    Value isLocal = arith::AndIOp::create(b, exists, local < experts);
    loaded.push_back({firstOfLanes, index, exists, select(isLocal, local, Int32(b, kNone))});
  }
  return loaded;
}

/// Emits `body` for the ids of the part of a warp, in their order. The warps of a cluster have as
/// many ids each; those of one CTA have whole steps (an H200: 1024 ids in 4.0 us instead of 5.1).
void ExpertOrder::forEachStep(llvm::function_ref<void(const Id &)> body) {
  Int32 unit = select(*ctas < 2, Int32(b, kWarp * kLoads), Int32(b, kWarp));
  Int32 step = *ctas * warps * unit;
  Int32 part = (*numIds + (step - 1)) / step * unit;
  Int32 first = (*cta * warps + *warp) * part, end = minimum(first + part, *numIds);
  kernel.forEachItem(first, end, constI32(b, kWarp * kLoads), {}, [&](Value at, ValueRange) {
    for (const Id &id : load({b, at}, end))
      emitWhen(b, id.first < end, [&] { body(id); });
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

/// The sum of `value` over the lanes up to this one.
Int32 ExpertOrder::sumOfLanesUpTo(Int32 value) {
  for (int64_t distance = 1; distance < kWarp; distance *= 2) {
    Int32 other(b, NVVM::ShflOp::create(b, b.getI32Type(), constI32(b, -1), value,
                                        constI32(b, distance), constI32(b, 0), NVVM::ShflKind::up,
                                        UnitAttr()));
    value = select(*lane < distance, value, value + other);
  }
  return value;
}

/// Replaces the counts of each expert by those of the warps before. A lane has the count of a warp.
void ExpertOrder::addCounts() {
  kernel.forEachItem(*warp, constI32(b, experts), constI32(b, warps), {},
                     [&](Value expert, ValueRange) {
                       Value isWarp = *lane < warps;
                       Value place = countOf(minimum(*lane, Int32(b, warps - 1)), {b, expert});
                       Int32 count = select(isWarp, read(place), Int32(b, 0));
                       if (warps < kWarp) // lanes without a warp read the count of the last one
                         NVVM::SyncWarpOp::create(b, constI32(b, -1));
                       Int32 upTo = sumOfLanesUpTo(count);
                       emitWhen(b, isWarp, [&] { store(b, upTo - count, place, 4); });
                       emitWhen(b, Int32(b, kWarp - 2) < *lane,
                                [&] { store(b, upTo, address(b, totals, expert, 4), 4); });
                       return SmallVector<Value>();
                     });
}

/// Waits for all CTAs of the cluster. A barrier of a cluster of one CTA would take as long.
void ExpertOrder::meetCtas() {
  emitWhen(b, Int32(b, 1) < *ctas, [&] {
    NVVM::ClusterArriveOp::create(b, b.getUnitAttr());
    NVVM::ClusterWaitOp::create(b, b.getUnitAttr());
  });
}

/// The word of `cta` where this CTA has `mine`, in shared memory; 0 of a CTA that does not exist.
Int32 ExpertOrder::totalOf(Value mine, int64_t cta) {
  constexpr auto space = static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);
  Type type = LLVM::LLVMPointerType::get(b.getContext(), space);
  Int32 number(b, cta);
  Value place = NVVM::MapaOp::create(b, type, mine, minimum(number, *ctas - 1));
  return select(number < *ctas, read(place), Int32(b, 0));
}

/// Adds the counts of each expert in the CTAs before, and in all, whose rows are a multiple.
void ExpertOrder::addCtas() {
  auto addExpert = [&](Value expert, ValueRange) {
    Value mine = address(b, totals, expert, 4);
    Int32 sum(b, 0), before(b, 0);
    for (int64_t i = 0; i < mostCtas; ++i) { // unrolled: all loads are in flight
      Int32 count = totalOf(mine, i);
      sum = sum + count;
      before = before + select(Int32(b, i) < *cta, count, Int32(b, 0));
    }
    int64_t multiple = int64_t(op.getMultiple());
    Int32 padded = (sum + (multiple - 1)) / multiple * multiple;
    store(b, padded, address(b, starts, expert, 4), 4);
    store(b, before, address(b, others, expert, 4), 4);
    return SmallVector<Value>();
  };
  kernel.forEachItem(*thread, constI32(b, experts), constI32(b, kernel.numThreads()), {},
                     addExpert);
}

/// Has a warp replace the rows of experts by those of the experts before, which are the offsets,
/// and of the CTAs before.
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
  Int32 before = sumOfLanesUpTo(sum);
  NVVM::SyncWarpOp::create(b, constI32(b, -1)); // counts are read
  before = before - sum;
  for (int64_t i = 0; i < perLane; ++i) {
    Int32 expert = *lane * perLane + i;
    emitWhen(b, expert < experts, [&] {
      Int32 ofOthers = read(address(b, others, expert, 4));
      store(b, before + ofOthers, address(b, starts, expert, 4), 4);
      emitWhen(b, *cta < 1, [&] { storeWide(offsets, expert, before); });
    });
    before = before + found[size_t(i)];
  }
  Value isLast = arith::AndIOp::create(b, *cta < 1, Int32(b, kWarp - 2) < *lane);
  emitWhen(b, isLast, [&] { storeWide(offsets, Int32(b, experts), before); });
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
