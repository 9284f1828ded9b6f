//===- VerifyWork.cpp - Roles that take work from one ring ------------------===//
//
// A place in the ring of responses is given back when every role has taken its response. The ring
// cannot stop a kernel that runs without it: a role takes response t before it waits for anything
// of tile t + 1, so whoever is slowest finds its next response there, and what it waits for depends
// on earlier tiles only.
//
//===----------------------------------------------------------------------===//

#include "VerifyWork.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// (C303) The loops over work of a kernel that requests it: at most one for each role, directly in
/// it, all of one schedule.
static LogicalResult verifyLoops(ArrayRef<ForEachWorkOp> works) {
  llvm::SmallDenseMap<Operation *, ForEachWorkOp> ofRoles;
  auto schedule = ForEachWorkOp(works.front()).getSchedule();
  for (ForEachWorkOp work : works) {
    if (!isa<RoleRegionOp>(work->getParentOp()))
      return withNote(work.emitOpError("whose work is requested must be directly in a role"),
                      "take the loop out of other loops and conditions");
    auto [first, isFirst] = ofRoles.try_emplace(work->getParentOp(), work);
    if (!isFirst)
      return work.emitOpError("must be the only one of its role, which takes every response once")
                 .attachNote(first->second.getLoc())
             << "the other is here";
    if (work.getSchedule() != schedule)
      return withNote(work.emitOpError("must have the schedule of the other roles, ")
                          << schedule << ", but has " << work.getSchedule(),
                      "write one schedule at the loops of all roles");
  }
  return success();
}

LogicalResult fp4::pipe::verifyWork(gpu::GPUFuncOp kernel) {
  SmallVector<ForEachWorkOp> works;
  SmallVector<RequestWorkOp> requests;
  bool isRequested = false;
  kernel.walk([&](Operation *op) {
    if (auto work = dyn_cast<ForEachWorkOp>(op))
      works.push_back(work);
    else if (auto request = dyn_cast<RequestWorkOp>(op))
      requests.push_back(request);
  });
  for (ForEachWorkOp work : works)
    isRequested |= work.getSchedule().getRingDepth() > 0;
  if (!isRequested)
    return success();
  if (failed(verifyLoops(works)))
    return failure();
  if (requests.empty()) // (C303)
    return withNote(
        works.front().emitOpError("must have a role that requests the work, but none does"),
        "add pipe.request_work to the loop of one role");
  if (requests.size() > 1) // (C303)
    return requests[1].emitOpError("must be the only one of the kernel").attachNote(
               requests[0].getLoc())
           << "the other is here";
  return success();
}

//===----------------------------------------------------------------------===//
// The scheduled form (C630)
//===----------------------------------------------------------------------===//

namespace {
/// Compares numbers by how they are computed. Copies of an op are equal, and pipe.opaque changes
/// no number.
class SameNumbers {
public:
  bool areSame(Value x, Value y) {
    left = {{x, y}};
    while (!left.empty()) {
      auto [a, b] = left.pop_back_val();
      if (!compare(behindOpaque(a), behindOpaque(b)))
        return false;
    }
    return true;
  }

private:
  /// Compares the ops of two numbers, and leaves their operands.
  bool compare(Value x, Value y) {
    if (x == y || !seen.insert({x, y}).second)
      return true;
    auto ofX = dyn_cast<OpResult>(x), ofY = dyn_cast<OpResult>(y);
    if (!ofX || !ofY || ofX.getResultNumber() != ofY.getResultNumber())
      return false;
    Operation *a = ofX.getOwner(), *b = ofY.getOwner();
    if (a->getName() != b->getName() || a->getNumOperands() != b->getNumOperands() ||
        a->getNumRegions() || !haveSameAttributes(a, b))
      return a->getNumRegions() && isCopy(a, b);
    for (auto [operandOfA, operandOfB] : llvm::zip(a->getOperands(), b->getOperands()))
      left.push_back({operandOfA, operandOfB});
    return true;
  }
  /// Two ops with regions, of which one is a copy of the other.
  static bool isCopy(Operation *a, Operation *b) {
    return OperationEquivalence::isEquivalentTo(a, b, OperationEquivalence::IgnoreLocations);
  }
  static Value behindOpaque(Value value) {
    while (auto opaque = value.getDefiningOp<OpaqueOp>())
      value = opaque.getValue();
    return value;
  }
  /// Entries of tables are equal whichever threads load them (`of_warp`).
  static bool haveSameAttributes(Operation *a, Operation *b) {
    return isa<LoadEntryOp>(a) || a->getAttrDictionary() == b->getAttrDictionary();
  }

  llvm::SmallVector<std::pair<Value, Value>> left;
  llvm::DenseSet<std::pair<Value, Value>> seen; ///< equal, or found out elsewhere
};
} // namespace

/// Returns the loop over work of `role`, which pipe-expand-work has made; null if it has none.
static scf::ForOp loopOfWork(RoleRegionOp role) {
  for (auto loop : role.getBody().front().getOps<scf::ForOp>())
    if (loop->hasAttr(PipeDialect::kWorkAttr))
      return loop;
  return {};
}

LogicalResult fp4::pipe::verifyScheduledWork(gpu::GPUFuncOp kernel) {
  scf::ForOp first;
  for (RoleRegionOp role : kernel.getBody().getOps<RoleRegionOp>()) {
    scf::ForOp loop = loopOfWork(role);
    if (!loop || !first) {
      first = loop ? loop : first;
      continue;
    }
    std::tuple<StringRef, Value, Value> bounds[] = {
        {"begin", first.getLowerBound(), loop.getLowerBound()},
        {"end", first.getUpperBound(), loop.getUpperBound()},
        {"go on", first.getStep(), loop.getStep()}};
    for (auto [how, of, value] : bounds)
      if (!SameNumbers().areSame(of, value)) { // (C630)
        auto name = cast<RoleRegionOp>(first->getParentOp()).getRole().getName();
        InFlightDiagnostic diag = loop.emitOpError("over work must ")
                                  << how << " as that of role " << name << " does";
        diag.attachNote(first.getLoc())
            << "role " << name << " goes over work here; compute the numbers of the loops alike";
        return diag;
      }
  }
  return success();
}
