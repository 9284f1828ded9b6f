//===- FourLanes.cpp - Words that four neighbouring lanes exchange --------===//

#include "FourLanes.h"

#include "SmallBuilders.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

PartsOfFour fp4::exchangeOfFour(ImplicitLocOpBuilder &b, PartsOfFour parts, Int32 place) {
  for (int64_t step : {1, 2}) {
    Value isLow = (place & step) < 1;
    for (int64_t low : {int64_t(0), 3 - step})
      for (auto [first, second] : llvm::zip_equal(parts[low], parts[low + step])) {
        Value sent = arith::SelectOp::create(b, isLow, second, first);
        Value received =
            NVVM::ShflOp::create(b, b.getI32Type(), constI32(b, -1), sent, constI32(b, step),
                                 constI32(b, 31), NVVM::ShflKind::bfly, UnitAttr());
        Value kept = arith::SelectOp::create(b, isLow, first, received);
        second = arith::SelectOp::create(b, isLow, received, second);
        first = kept;
      }
  }
  return parts;
}
