//===- Bufferization.cpp - fp4 operations refuse to be bufferized ---------===//
//
// One-shot-bufferize gives a tensor the memref of its shape, and knows nothing of layouts: tiled
// scales of 100 x 4 would become 400 bytes, and are 512. With `allow-unknown-ops` the pass would do
// so to the operands of operations that it does not know. Operations of fp4 therefore have its
// interface, and each refuses: fp4-outline-islands gives their tensors the types of their bytes,
// and leaves no such operation.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/Transforms/Bufferization.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::bufferization;

namespace {

template <typename OpT> struct Refusal : BufferizableOpInterface::ExternalModel<Refusal<OpT>, OpT> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &, const BufferizationOptions &,
                          BufferizationState &) const {
    InFlightDiagnostic diagnostic = op->emitOpError(
        "must not be bufferized by one-shot-bufferize, which knows no scale layouts");
    diagnostic.attachNote() << "run fp4-outline-islands first, which leaves calls with buffers of "
                               "the right sizes, or fp4-compile instead, which makes all buffers";
    return diagnostic;
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<Refusal<Ops>>(*context), ...);
}

} // namespace

void fp4::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, Fp4Dialect *) {
    attach<
#define GET_OP_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Ops.cpp.inc"
        >(context);
  });
}
