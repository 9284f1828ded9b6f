@header@
//
// The algorithm: a walk counts the operations of the dialect, and a remark says how many there are.
// Replace it by what the pass is for; patterns come next, and runOnOperation is last.
//
//===----------------------------------------------------------------------===//

#include "fp4/@room@/Passes.h"

namespace @namespace@ {
#define GEN_PASS_DEF_@DEF@
#include "fp4/@room@/Passes.h.inc"
} // namespace @namespace@

using namespace mlir;

namespace {

struct @Class@ : @namespace@::impl::@Class@Base<@Class@> {
  void runOnOperation() override {
    int64_t count = 0;
    getOperation()->walk([&](Operation *op) {
      count += op->getName().getDialectNamespace() == "@dialect@";
    });
    getOperation()->emitRemark() << "has " << count << " operations of dialect @dialect@";
  }
};

} // namespace
