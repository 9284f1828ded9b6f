//===- Upgrade.cpp - Former spellings first ---------------------------------===//

#include "fp4/Dialect/Fp4/IR/Fp4Upgrade.h"
#include "fp4/Pipelines/Passes.h"

namespace fp4 {
#define GEN_PASS_DEF_UPGRADE
#include "fp4/Pipelines/Passes.h.inc"
} // namespace fp4

namespace {

struct Upgrade : fp4::impl::UpgradeBase<Upgrade> {
  void runOnOperation() override {
    if (failed(fp4::upgradeLegacyText(getOperation())))
      signalPassFailure();
  }
};

} // namespace
