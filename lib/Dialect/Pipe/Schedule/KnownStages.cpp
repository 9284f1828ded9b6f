//===- KnownStages.cpp - Stages that are the same in every iteration ------===//
//
// A loop whose iteration uses a ring as often as the ring has stages, or a multiple, uses the same
// stage at the same place each time:
//
//   for k (it = 0)
//     load ring[it]         of stage 0
//     load ring[it + 1]     of stage 1
//     yield it + 2
//
// LLVM sees that the stages do not change, and computes all addresses in front of the loop, on the
// path to the first load. The addresses also need more uniform registers than a warp has. The
// counter is therefore hidden from LLVM in each iteration of a role that loads. GEMMs with K = 96
// have such loops: a k tile has four tiles of scales.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4::pipe;

namespace {

/// Residues of values after division by a power of two, which wraps with 32 bits.
class Residues {
public:
  explicit Residues(int64_t divisor) : divisor(divisor) {}

  std::optional<int64_t> of(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return constant.urem(divisor);
    if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
      auto x = of(sum.getLhs()), y = of(sum.getRhs());
      return x && y ? std::optional((*x + *y) % divisor) : std::nullopt;
    }
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      return of(loop.getRegionIterArg(cast<OpResult>(value).getResultNumber()));
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? ofCarried(argument) : std::nullopt;
  }

private:
  /// The residue of a carried value is that of the first value, if an iteration that begins with
  /// this residue ends with it.
  std::optional<int64_t> ofCarried(BlockArgument argument) {
    if (auto known = assumed.find(argument); known != assumed.end())
      return known->second;
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return std::nullopt;
    unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
    std::optional<int64_t> first = of(loop.getInitArgs()[number]);
    if (!first)
      return std::nullopt;
    assumed[argument] = *first;
    std::optional<int64_t> last = of(loop.getYieldedValues()[number]);
    assumed.erase(argument);
    return last == first ? first : std::nullopt;
  }

  int64_t divisor;
  DenseMap<Value, int64_t> assumed;
};

} // namespace

/// The stage and phase of `iteration` in a ring of `depth` stages, computed so that LLVM cannot
/// tell.
static StageAndPhase hiddenStage(Value iteration, int64_t depth) {
  OpBuilder b(iteration.getContext());
  b.setInsertionPointAfterValue(iteration);
  Location loc = iteration.getLoc();
  Value count = number(b, loc, depth), hidden = OpaqueOp::create(b, loc, iteration);
  Value stage = arith::RemUIOp::create(b, loc, hidden, count);
  Value turn = arith::DivUIOp::create(b, loc, hidden, count);
  return {stage, arith::AndIOp::create(b, loc, turn, number(b, loc, 1)), /*opposite=*/false};
}

void fp4::pipe::hideKnownStages(gpu::GPUFuncOp kernel) {
  kernel.walk([&](ProducerAcquireOp acquire) {
    Value iteration = acquire.getIteration();
    auto channel = acquire.getChannel().getDefiningOp<ChannelOp>();
    auto role = acquire->getParentOfType<RoleRegionOp>().getRole();
    if (!iteration || !channel || !role.drives(Engine::Tma))
      return;
    // Other stages are carried (CarryStages.cpp), or a constant already.
    int64_t depth = *channel.getDepth();
    if (depth == 1 || !llvm::isPowerOf2_64(depth) || matchPattern(iteration, m_Constant()) ||
        stageOf(iteration))
      return;
    if (Residues(depth).of(iteration))
      nameStage(channel, iteration, /*ahead=*/0, hiddenStage(iteration, depth));
  });
}
