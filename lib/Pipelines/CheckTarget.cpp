//===- CheckTarget.cpp - Does the target have what the program needs ------===//

#include "fp4/Plans/KernelPlans.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Pipelines/Passes.h"

namespace fp4 {
#define GEN_PASS_DEF_CHECKTARGET
#include "fp4/Pipelines/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

struct CheckTarget : fp4::impl::CheckTargetBase<CheckTarget> {
  void runOnOperation() override {
    FailureOr<fp4::hw::TargetModel> model = fp4::targetOf(getOperation());
    if (failed(model))
      return signalPassFailure();
    WalkResult walk = getOperation().walk([&](fp4::BlockScaledMatmulOp op) {
      fp4::Status status =
          op.hasF32Scales() ? fp4::requirePromotion(*model) : fp4::hw::requireGemms(*model);
      if (status)
        return WalkResult::advance();
      InFlightDiagnostic diagnostic = op.emitOpError(status.error().message);
      diagnostic.attachNote() << status.error().note;
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
