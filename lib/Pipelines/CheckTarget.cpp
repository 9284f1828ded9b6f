//===- CheckTarget.cpp - Does the target have what the program needs ------===//

#include "fp4/Dialect/Fp4/IR/Signature.h"
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
      auto route = fp4::route::requireRoute(fp4::signatureOf(op), *model);
      if (route)
        return WalkResult::advance();
      InFlightDiagnostic diagnostic = op.emitOpError(route.error().message);
      diagnostic.attachNote() << route.error().note;
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
