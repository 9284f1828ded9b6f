//===- InstructionCount.cpp - Cycles of operations on the pipes of a warp -===//
//
// A scoreboard: instructions are issued in order, each when its operands are there and its pipe is
// free, as the simulator of time does it (lib/Sim/Time). Moves between registers cost nothing.
//
//===----------------------------------------------------------------------===//
#include "InstructionCount.h"
#include "CostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using hw::TimingRate;

namespace {

/// The unit that executes an instruction. Sums of integers take the freer of two pipes, products of
/// fp32 either half of theirs.
enum class Unit { None, Alu, Sum, Imad, Fma, Mufu, Shuffle };

/// Instructions in a row for a lane, and the number of lanes of each.
struct Kind {
  Unit unit;
  unsigned count = 1, lanes = 1;
};

} // namespace

/// The kind of an instruction by the word that the mnemonic of PTX or the name of an intrinsic has.
static Kind kindOfText(StringRef text) {
  auto has = [&](StringRef word) { return text.contains(word); };
  if (has("rcp") || has("ex2") || has("lg2") || has("sqrt"))
    return {Unit::Mufu};
  if (has("fma") || has("mul.") || has("add.rn") || has("sub.rn"))
    return {Unit::Fma};
  return {Unit::Alu, has("x4") ? 2u : 1u};
}

/// The instructions that ptxas makes of an operation, as lib/Sim/Time/Units.def has them.
static Kind kindOf(Operation &op) {
  constexpr unsigned division = 9, integerDivision = 21;
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return kindOfText(call.getIntrin());
  if (isa<arith::ExtFOp>(op)) // a value that was only rounded costs nothing
    return {op.getOperand(0).getDefiningOp<arith::TruncFOp>() ? Unit::None : Unit::Sum};
  return llvm::StringSwitch<Kind>(op.getName().getStringRef())
      .Cases({"arith.addf", "arith.subf", "arith.mulf", "llvm.intr.fma", "math.fma"}, {Unit::Fma})
      .Case("arith.divf", {Unit::Fma, division})
      .Cases({"arith.addi", "arith.subi", "arith.shli"}, {Unit::Sum})
      .Case("arith.muli", {Unit::Imad})
      .Cases({"arith.divui", "arith.divsi", "arith.remui", "arith.remsi"},
             {Unit::Sum, integerDivision})
      .Case("arith.truncf", {Unit::Alu, 1, /*lanes=*/2})
      .Cases({"arith.fptosi", "arith.fptoui"}, {Unit::Mufu})
      .Case("nvvm.shfl.sync", {Unit::Shuffle})
      .Cases({"arith.constant", "arith.bitcast", "arith.negf", "math.absf", "llvm.intr.fabs"},
             {Unit::None})
      .Cases({"arith.trunci", "arith.extui", "arith.extsi", "llvm.intr.expect"}, {Unit::None})
      .StartsWith("vector.", {Unit::None})
      .Cases({"llvm.bitcast", "llvm.extractvalue", "llvm.extractelement", "llvm.insertelement",
              "llvm.shufflevector", "llvm.mlir.constant", "llvm.mlir.undef", "llvm.mlir.poison"},
             {Unit::None})
      .Default({Unit::Alu});
}

namespace {

class Scoreboard {
public:
  explicit Scoreboard(const hw::TargetModel &target) : target(target) {}

  SchedulerCycles run(Block &block) {
    visit(block);
    double most = issued;
    for (const Pipe &pipe : {alu, heavy, light, mufu, exchange})
      most = std::max(most, pipe.busy);
    return {std::max(last, now), most, issued};
  }

private:
  struct Pipe {
    double free = 0, busy = 0;
  };
  /// The cycle at which each lane is there.
  using Lanes = SmallVector<double>;

  double rate(TimingRate which) const { return rateOf(which, target); }
  void visit(Block &block);
  void visit(Operation &op);
  void branch(scf::IfOp op);
  void emitText(LLVM::InlineAsmOp op);
  Lanes move(Operation &op);
  double issue(const Kind &kind, double operands);
  std::pair<Pipe *, double> pipeOf(Unit unit);
  double latencyOf(Unit unit) const;

  Lanes lanesOf(Value value) {
    auto type = dyn_cast<VectorType>(value.getType());
    Lanes &lanes = ready[value];
    lanes.resize(type ? size_t(type.getNumElements()) : 1, 0);
    return lanes;
  }
  double lastOf(ValueRange values) {
    double time = 0;
    for (Value value : values)
      for (double lane : lanesOf(value))
        time = std::max(time, lane);
    return time;
  }

  const hw::TargetModel &target;
  Pipe alu, heavy, light, mufu, exchange;
  double now = 0, last = 0, issued = 0;
  DenseMap<Value, Lanes> ready;
};

} // namespace

/// The pipe that is free first, and the cycles for which an instruction has it. All schedulers of
/// an SM share the pipe that exchanges.
std::pair<Scoreboard::Pipe *, double> Scoreboard::pipeOf(Unit unit) {
  constexpr double schedulers = 4;
  auto freer = [](Pipe &a, Pipe &b) { return a.free <= b.free ? &a : &b; };
  switch (unit) {
  case Unit::None:
  case Unit::Alu:
    return {&alu, rate(TimingRate::AluInterval)};
  case Unit::Sum:
    return {freer(alu, heavy), rate(TimingRate::AluInterval)};
  case Unit::Imad:
    return {&heavy, rate(TimingRate::ImadInterval)};
  case Unit::Fma:
    return {freer(heavy, light), 2 * rate(TimingRate::FmaInterval)};
  case Unit::Mufu:
    return {&mufu, rate(TimingRate::MufuInterval)};
  case Unit::Shuffle:
    return {&exchange, schedulers * rate(TimingRate::ShuffleInterval)};
  }
  llvm_unreachable("every unit has a pipe");
}

double Scoreboard::latencyOf(Unit unit) const {
  switch (unit) {
  case Unit::Imad:
    return rate(TimingRate::ImadLatency);
  case Unit::Fma:
    return rate(TimingRate::FmaLatency);
  case Unit::Mufu:
    return rate(TimingRate::MufuLatency);
  case Unit::Shuffle:
    return rate(TimingRate::ShuffleLatency);
  default:
    return rate(TimingRate::AluLatency);
  }
}

/// Issues the instructions of a lane whose operands are there at `operands`, each of which needs
/// the one before. Returns when the result is there.
double Scoreboard::issue(const Kind &kind, double operands) {
  constexpr double apart = 2; // cycles between instructions of a sequence, as in the simulator
  if (kind.unit == Unit::None)
    return operands;
  auto [pipe, interval] = pipeOf(kind.unit);
  double begin = std::max({now, operands, pipe->free});
  double duration = interval * kind.count;
  pipe->free = begin + duration;
  pipe->busy += duration;
  issued += kind.count;
  now = begin + kind.count;
  double result = begin + latencyOf(kind.unit) + apart * (kind.count - 1);
  last = std::max(last, result);
  return result;
}

/// Moves lanes to other places.
Scoreboard::Lanes Scoreboard::move(Operation &op) {
  Lanes result = lanesOf(op.getResult(0));
  size_t count = result.size();
  if (auto shuffle = dyn_cast<LLVM::ShuffleVectorOp>(op)) {
    Lanes all = lanesOf(shuffle.getV1());
    llvm::append_range(all, lanesOf(shuffle.getV2()));
    for (size_t i = 0; i < count; ++i)
      result[i] = all[size_t(shuffle.getMask()[i])];
    return result;
  }
  if (auto extract = dyn_cast<vector::ExtractOp>(op); extract && count == 1)
    return {lanesOf(extract.getSource())[size_t(extract.getStaticPosition().back())]};
  if (auto slice = dyn_cast<vector::ExtractStridedSliceOp>(op)) {
    auto first = size_t(cast<IntegerAttr>(slice.getOffsets()[0]).getInt());
    return Lanes(ArrayRef(lanesOf(slice.getSource())).slice(first, count));
  }
  bool isElements = isa<vector::FromElementsOp>(op);
  for (size_t i = 0; i < count; ++i) {
    if (isElements || op.getNumOperands() == 0) {
      result[i] = isElements ? lastOf(op.getOperand(unsigned(i))) : 0;
      continue;
    }
    Lanes source = lanesOf(op.getOperand(0)); // of other widths too
    result[i] = source[i * source.size() / count];
    if (source.size() > count)
      result[i] = std::max(result[i], source[(i + 1) * source.size() / count - 1]);
  }
  return result;
}

/// Issues one instruction for each statement that is no declaration or move.
void Scoreboard::emitText(LLVM::InlineAsmOp op) {
  SmallVector<StringRef> statements;
  op.getAsmString().split(statements, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  double result = lastOf(op.getOperands());
  for (StringRef statement : statements) {
    StringRef text = statement.trim(" \n\t{}");
    if (text.empty() || text.starts_with(".reg") || text.starts_with("mov"))
      continue;
    result = issue(kindOfText(text), result);
  }
  if (op.getNumResults())
    ready[op.getResult(0)] = Lanes(lanesOf(op.getResult(0)).size(), result);
}

void Scoreboard::branch(scf::IfOp op) {
  visit(*op.thenBlock());
  for (auto [result, yielded] : llvm::zip_equal(op.getResults(), op.thenYield().getOperands()))
    ready[result] = lanesOf(yielded);
}

void Scoreboard::visit(Operation &op) {
  if (auto text = dyn_cast<LLVM::InlineAsmOp>(op))
    return emitText(text);
  if (auto condition = dyn_cast<scf::IfOp>(op))
    return branch(condition);
  if (op.getNumResults() == 0)
    return;
  Kind kind = kindOf(op);
  Lanes result = lanesOf(op.getResult(0));
  bool isMove = kind.unit == Unit::None;
  if (isMove) {
    result = move(op);
  } else {
    for (size_t i = 0; i < result.size(); i += kind.lanes) {
      double operands = 0;
      size_t end = std::min(result.size(), i + kind.lanes);
      for (Value value : op.getOperands()) {
        Lanes lanes = lanesOf(value);
        for (size_t lane = i; lane < end; ++lane)
          operands =
              std::max(operands, lanes.size() == result.size() ? lanes[lane] : lastOf(value));
      }
      double time = issue(kind, operands);
      std::fill(result.begin() + i, result.begin() + end, time);
    }
  }
  ready[op.getResult(0)] = std::move(result);
}

void Scoreboard::visit(Block &block) {
  for (Operation &op : block)
    visit(op);
}

SchedulerCycles fp4::countCycles(Block &block, const hw::TargetModel &target) {
  return Scoreboard(target).run(block);
}
