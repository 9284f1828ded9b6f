//===- SetTarget.cpp - The target, once, on the module --------------------===//

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Pipelines/Passes.h"

namespace fp4 {
#define GEN_PASS_DEF_SETTARGET
#include "fp4/Pipelines/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

struct SetTarget : fp4::impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StringRef attribute = fp4::Fp4Dialect::kTargetAttr;
    auto has = module->getAttrOfType<fp4::TargetAttr>(attribute);
    std::string name = !target.empty() ? target.getValue()
                       : has           ? has.getName().str()
                                       : std::string(fp4::hw::targets().front().name);
    if (has && has.getName() != name) {
      InFlightDiagnostic diag = module.emitError() << "must be compiled for its target "
                                                   << has.getName() << ", but got " << name;
      diag.attachNote() << "ask for " << has.getName() << ", or remove the attribute " << attribute;
      return signalPassFailure();
    }
    StringRef product = !device.empty() ? StringRef(device) : has ? has.getDevice() : StringRef();
    int64_t count = sms ? int64_t(sms) : has ? has.getSms() : 0;
    auto wanted = fp4::TargetAttr::getChecked([&] { return module.emitError(); }, &getContext(),
                                              StringRef(name), count, product);
    if (!wanted)
      return signalPassFailure();
    module->setAttr(attribute, wanted);
  }
};

} // namespace
