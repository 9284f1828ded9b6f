//===- WorkQueue.cpp - Cluster launch control --------------------------------===//
//
// A ring of d responses of 16 bytes, then d full and d empty barriers. Response r is in place r mod
// d.
//
//   request_work   the first CTA of the cluster waits until all roles of all CTAs have taken
//                  response r - d; every CTA announces 16 bytes on its full barrier; the first one
//                  issues try_cancel, whose response reaches all CTAs
//   next_work      every thread of the role waits on its CTA's full barrier, decodes, and arrives
//                  at the empty barrier of the first CTA
//
// The role that requests takes each response before it makes the next request, so none is made
// after one that failed: PTX leaves that undefined. A response is read by ordinary loads and the
// next one in its place is written through the async proxy, hence the proxy fence of the reader. No
// CTA exits while a response may reach it, because all roles of all CTAs take the last one, and a
// cluster ends together. PTX ISA: "clusterlaunchcontrol.try_cancel",
// "clusterlaunchcontrol.query_cancel".
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;

namespace {

constexpr int64_t kResponseBytes = 16, kBarrierBytes = 8;

/// The place of response `number` in the ring.
struct RingPlace {
  Value response, full, empty; ///< !llvm.ptr<3>
  Value phase;                 ///< i32, parity of the full barrier
};

RingPlace placeOf(OpBuilder &b, Location loc, const fp4::KernelState &state, Value number) {
  Value depth = fp4::constantI32(b, loc, state.ring.depth);
  Value place = arith::RemUIOp::create(b, loc, number, depth);
  Value ring = fp4::offsetPointer(b, loc, state.sharedBase, state.ring.place);
  Value barriers = fp4::offsetPointer(b, loc, ring, state.ring.depth * kResponseBytes);
  RingPlace at;
  at.response = fp4::stridedPointer(b, loc, ring, place, kResponseBytes);
  at.full = fp4::stridedPointer(b, loc, barriers, place, kBarrierBytes);
  at.empty = fp4::offsetPointer(b, loc, at.full, state.ring.depth * kBarrierBytes);
  at.phase = arith::AndIOp::create(b, loc, arith::DivUIOp::create(b, loc, number, depth),
                                   fp4::constantI32(b, loc, 1));
  return at;
}

bool hasCluster(const fp4::KernelState &state) { return state.cluster.shape.size() > 1; }

/// Runs `body` in the first CTA of the cluster.
void emitInFirstBlock(OpBuilder &b, Location loc, const fp4::KernelState &state,
                      llvm::function_ref<void()> body) {
  if (!hasCluster(state))
    return body();
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, state.cluster.rank,
                                        fp4::constantI32(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Returns true when `role` gives responses back. The thread that requests knows what it has taken
/// itself; in a cluster, the thread is in the first CTA.
bool givesBack(fp4::pipe::RoleAttr role, const fp4::KernelState &state) {
  return hasCluster(state) || !role.drives(fp4::pipe::Engine::WorkQueue);
}

struct LowerRequestWork : fp4::PipePattern<fp4::pipe::RequestWorkOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::RequestWorkOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!adaptor.getIteration() || state.ring.depth == 0)
      return rewriter.notifyMatchFailure(op, "expects an iteration and a ring of responses");
    Location loc = op.getLoc();
    RingPlace at = placeOf(rewriter, loc, state, adaptor.getIteration());
    emitInFirstBlock(rewriter, loc, state, [&] {
      Value parity =
          arith::XOrIOp::create(rewriter, loc, at.phase, fp4::constantI32(rewriter, loc, 1));
      fp4::emitBarrierWait(rewriter, loc, state, at.empty, parity, hasCluster(state));
    });
    NVVM::MBarrierArriveExpectTxOp::create(rewriter, loc, /*res=*/Type(), at.full,
                                           fp4::constantI32(rewriter, loc, kResponseBytes),
                                           NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                           /*predicate=*/Value());
    emitInFirstBlock(rewriter, loc, state, [&] {
      NVVM::ClusterLaunchControlTryCancelOp::create(
          rewriter, loc, hasCluster(state) ? rewriter.getUnitAttr() : UnitAttr(), at.response,
          at.full);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerNextWork : fp4::PipePattern<fp4::pipe::NextWorkOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::NextWorkOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (state.ring.depth == 0)
      return rewriter.notifyMatchFailure(op, "expects a ring of responses");
    Location loc = op.getLoc();
    RingPlace at = placeOf(rewriter, loc, state, adaptor.getIteration());
    fp4::emitBarrierWait(rewriter, loc, state, at.full, at.phase, hasCluster(state));
    auto words = VectorType::get({2}, rewriter.getI64Type());
    Value response =
        LLVM::LoadOp::create(rewriter, loc, words, at.response, /*alignment=*/kResponseBytes);
    auto word = [&](int64_t i) -> Value {
      return LLVM::ExtractElementOp::create(rewriter, loc, response,
                                            fp4::constantI32(rewriter, loc, i));
    };
    auto [more, block] = fp4::decodeResponse(rewriter, loc, word(0), word(1));
    fp4::emitProxyFence(rewriter, loc);
    if (givesBack(state.roles.at(op), state))
      arrive(rewriter, loc, at.empty);
    Value any = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, more,
                                      fp4::constantI32(rewriter, loc, 0));
    rewriter.replaceOp(op, {any, block});
    return success();
  }

private:
  void arrive(OpBuilder &b, Location loc, Value empty) const {
    if (hasCluster(state))
      fp4::arriveAtCtas(b, loc, state, empty, fp4::constantI32(b, loc, 0));
    else
      NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), empty, /*count=*/Value());
  }
};

} // namespace

/// Threads that give the place of each response back, in all CTAs of the cluster.
static int64_t takersOf(gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  int64_t takers = 0;
  kernel.walk([&](fp4::pipe::NextWorkOp op) {
    fp4::pipe::RoleAttr role = state.roles.at(op);
    if (!givesBack(role, state))
      return;
    int64_t blocks = state.cluster.shape.size();
    if (fp4::pipe::runsOnLeaders(role, state.cluster.pairs))
      blocks /= 2;
    takers += blocks * (role.isElected() ? 1 : role.getNumThreads());
  });
  return takers;
}

bool fp4::initializeWorkRing(OpBuilder &b, gpu::GPUFuncOp kernel, const KernelState &state) {
  if (state.ring.depth == 0)
    return false;
  Location loc = kernel.getLoc();
  int64_t barriers = state.ring.place + state.ring.depth * kResponseBytes;
  for (int64_t i = 0; i < 2 * state.ring.depth; ++i) {
    Value barrier = offsetPointer(b, loc, state.sharedBase, barriers + i * kBarrierBytes);
    int64_t arrivals = i < state.ring.depth ? 1 : takersOf(kernel, state);
    NVVM::MBarrierInitOp::create(b, loc, barrier, constantI32(b, loc, arrivals),
                                 /*predicate=*/Value());
  }
  return true;
}

void fp4::populateWorkPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                               const KernelState &state) {
  patterns.add<LowerRequestWork, LowerNextWork>(converter, patterns.getContext(), state);
}
