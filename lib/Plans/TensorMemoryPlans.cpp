//===- TensorMemoryPlans.cpp - Plans that need tensor memory --------------===//
//
// Errors of GEMMs and plans that name tensor memory, on targets whose sums are in registers. Each
// error names the field to leave out, and its counterpart there.
//
//===----------------------------------------------------------------------===//
#include "Families.h"

#include "fp4/Dialect/Fp4/IR/Signature.h"

using namespace mlir;
using namespace fp4;

Status fp4::requireRanges(BlockScaledMatmulOp product, const hw::TargetModel &target) {
  Status status = route::requireCore(target, route::Core::Tcgen05);
  if (status)
    return status;
  bool isStream = product.getStreamK().has_value();
  std::string name = isStream ? "stream_k" : "split_k";
  std::string remedy = isStream ? "cut K with 'split_k', or leave 'stream_k' out"
                                : "leave 'split_k' out, or limit its rows to 64 with 'split_rows'";
  return makeError(ErrorKind::Compile,
                   "attribute '" + name + "' must be left out " +
                       (isStream ? "here" : "of more than 64 rows") + ", because " +
                       status.error().message,
                   remedy + "; " + status.error().note);
}

LogicalResult fp4::checkAccumulators(Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target) {
  if (!plan.accumulators || isOn(cast<BlockScaledMatmulOp>(op), target, route::Core::Tcgen05))
    return success();
  return misfit(op, "accumulators",
                "is left out on " + StringRef(target.name) + ", whose registers have the sums",
                Twine(*plan.accumulators));
}
