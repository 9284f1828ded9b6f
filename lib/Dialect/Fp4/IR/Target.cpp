//===- Target.cpp - The target of a module --------------------------------===//

#include "fp4/Dialect/Fp4/IR/Target.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fp4;

static ParseResult parseSms(AsmParser &parser, int64_t &sms) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef field;
  if (parser.parseKeyword(&field))
    return failure();
  if (field != "sms") {
    return withNote(parser.emitError(loc) << "a target has no field '" << field << "'",
                    renamedNote(field, "sms = N is the number of SMs that kernels may fill"));
  }
  return failure(parser.parseEqual() || parser.parseInteger(sms));
}

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  int64_t sms = 0;
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parseSms(parser, sms))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), name, sms);
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName();
  if (getSms())
    printer << ", sms = " << getSms();
  printer << '>';
}

/// Far above any GPU, and what grids, a product of this, cannot overflow.
static constexpr int64_t kMaxSms = 65535;

// #fp4.target (C1)
LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                 int64_t sms) {
  if (Expected<const hw::TargetModel *> model = hw::requireTarget(name.str()); !model) {
    InFlightDiagnostic diag = emitError() << "unknown target '" << name << "'";
    diag.attachNote() << model.error().note;
    return diag;
  }
  if (sms < 0 || sms > kMaxSms)
    return withNote(emitError() << "SMs of a target must be 0 to " << kMaxSms << ", but got "
                                << sms,
                    "leave it out for those of the GPU");
  return success();
}

// #fp4.target (C2)
static LogicalResult verifyTarget(Operation *op, NamedAttribute attribute) {
  if (!isa<ModuleOp>(op))
    return withNote(op->emitOpError() << "attribute " << Fp4Dialect::kTargetAttr
                                      << " must be on a builtin.module",
                    "fp4-set-target puts it there");
  if (!isa<TargetAttr>(attribute.getValue()))
    return withNote(op->emitOpError() << "attribute " << Fp4Dialect::kTargetAttr
                                      << " must be a target such as #fp4.target<sm_100a>, but got "
                                      << attribute.getValue(),
                    "fp4-set-target makes it of a name");
  return success();
}

// #fp4.plan (C506)
static LogicalResult verifyForAllDepths(Operation *op, StringRef name, Attribute plan) {
  if (!cast<PlanAttr>(plan).getPlan().depthUnit)
    return success();
  return withNote(op->emitOpError()
                      << "attribute " << name << " must have no 'depth_unit', but got " << plan,
                  "the plan is for all K; plans for multiples are those of fp4.size_plans");
}

// #fp4.plan (C3)
static LogicalResult verifyPlan(Operation *op, NamedAttribute attribute) {
  if (!isa<Fp4Dialect>(op->getDialect()) && !isa<linalg::GenericOp>(op))
    return withNote(op->emitOpError()
                        << "attribute " << Fp4Dialect::kPlanAttr
                        << " must be on an operation of the fp4 dialect or a linalg.generic",
                    "remove it: other operations have no kernel of fp4's");
  if (!isa<PlanAttr>(attribute.getValue()))
    return withNote(op->emitOpError()
                        << "attribute " << Fp4Dialect::kPlanAttr
                        << " must be a plan such as #fp4.plan<stream_blocks>, but got "
                        << attribute.getValue(),
                    "--emit=mlir --compile-to=planned shows the plan of every kernel");
  if (cast<PlanAttr>(attribute.getValue()).getPlan().maxRows) { // (C461)
    InFlightDiagnostic diag = op->emitOpError()
                              << "attribute " << Fp4Dialect::kPlanAttr
                              << " must have no 'max_rows', but got " << attribute.getValue();
    diag.attachNote() << "small-M plans are those of " << Fp4Dialect::kRowPlansAttr;
    return diag;
  }
  return verifyForAllDepths(op, attribute.getName(), attribute.getValue());
}

/// Returns the fault of the plans of `attribute`, or nothing.
static std::string whyNoRowPlans(Attribute attribute) {
  auto plans = dyn_cast<ArrayAttr>(attribute);
  if (!plans || plans.empty())
    return "must be a list of plans";
  int64_t rows = 0;
  for (Attribute element : plans) {
    auto plan = dyn_cast<PlanAttr>(element);
    if (!plan || plan.getFamily() != KernelFamily::TileGemm || !plan.getPlan().maxRows)
      return "must have plans of family tile_gemm with 'max_rows'";
    if (*plan.getPlan().maxRows <= rows)
      return "must have plans with ascending 'max_rows'";
    rows = *plan.getPlan().maxRows;
  }
  return {};
}

// #fp4.plan (C461)
static LogicalResult verifyRowPlans(Operation *op, NamedAttribute attribute) {
  if (!isa<BlockScaledMatmulOp, LegacyMatmulOp>(op))
    return withNote(op->emitOpError()
                        << "attribute " << Fp4Dialect::kRowPlansAttr << " must be on a fp4.matmul",
                    "remove it: only matmuls have small-M plans");
  if (std::string why = whyNoRowPlans(attribute.getValue()); !why.empty())
    return withNote(op->emitOpError() << "attribute " << Fp4Dialect::kRowPlansAttr << ' ' << why
                                      << ", but got " << attribute.getValue(),
                    "write [#fp4.plan<tile_gemm, ..., max_rows = 16>, ...], or remove it and "
                    "let the compiler plan");
  for (Attribute plan : cast<ArrayAttr>(attribute.getValue()))
    if (failed(verifyForAllDepths(op, attribute.getName(), plan)))
      return failure();
  return success();
}

/// Returns the fault of the plans of `attribute` beside `own`, or nothing.
static std::string whyNoSizePlans(Attribute attribute, Attribute own) {
  auto plans = dyn_cast<ArrayAttr>(attribute);
  if (!plans || plans.empty())
    return "must be a list of plans";
  auto hasCost = [](Attribute element) {
    auto plan = dyn_cast_or_null<PlanAttr>(element);
    return plan && plan.getFamily() == KernelFamily::TileGemm && plan.getPlan().waveCost[0];
  };
  if (!llvm::all_of(plans, hasCost))
    return "must have plans of family tile_gemm with 'wave_cost'";
  return hasCost(own) ? "" : "must be beside an fp4.plan with 'wave_cost'";
}

// #fp4.plan (C495)
static LogicalResult verifySizePlans(Operation *op, NamedAttribute attribute) {
  if (!isa<BlockScaledMatmulOp, LegacyMatmulOp>(op))
    return withNote(op->emitOpError()
                        << "attribute " << Fp4Dialect::kSizePlansAttr << " must be on a fp4.matmul",
                    "remove it: only matmuls have plans for sizes");
  std::string why = whyNoSizePlans(attribute.getValue(), op->getAttr(Fp4Dialect::kPlanAttr));
  if (why.empty())
    return success();
  return withNote(op->emitOpError() << "attribute " << Fp4Dialect::kSizePlansAttr << ' ' << why
                                    << ", but got " << attribute.getValue(),
                  "--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N "
                  "or K; or remove it and let the compiler plan");
}

// prologue (C1)
static LogicalResult verifyPrologue(Operation *op, NamedAttribute attribute) {
  StringRef remedy = "remove it, and the operation becomes a kernel of its own";
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !isa<UnitAttr>(attribute.getValue()))
    return withNote(op->emitOpError() << "attribute " << kPrologueAttr
                                      << " must be a unit attribute on a linalg.generic",
                    remedy);
  std::string reason = whyNotPrologue(generic);
  if (reason.empty())
    return success();
  return withNote(op->emitOpError() << "attribute " << kPrologueAttr
                                    << " must be on a matrix that readers can compute, but "
                                    << reason,
                  remedy);
}

LogicalResult Fp4Dialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kTargetAttr)
    return verifyTarget(op, attribute);
  if (attribute.getName() == kPlanAttr)
    return verifyPlan(op, attribute);
  if (attribute.getName() == kRowPlansAttr)
    return verifyRowPlans(op, attribute);
  if (attribute.getName() == kSizePlansAttr)
    return verifySizePlans(op, attribute);
  if (attribute.getName() == kPrologueAttr)
    return verifyPrologue(op, attribute);
  return success();
}

std::optional<hw::TargetModel> fp4::findTarget(Operation *op) {
  for (Operation *scope = op; scope; scope = scope->getParentOp()) {
    auto attribute = scope->getAttrOfType<TargetAttr>(Fp4Dialect::kTargetAttr);
    if (!attribute)
      continue;
    hw::TargetModel model = *hw::lookupTarget(attribute.getName().str());
    if (attribute.getSms())
      model.sms = attribute.getSms();
    return model;
  }
  return std::nullopt;
}

FailureOr<hw::TargetModel> fp4::targetOf(Operation *op) {
  if (std::optional<hw::TargetModel> target = findTarget(op))
    return *target;
  InFlightDiagnostic diag = op->emitError() << "must know its target: no module has the attribute "
                                            << Fp4Dialect::kTargetAttr;
  diag.attachNote() << "run fp4-set-target first, or write 'module attributes {"
                    << Fp4Dialect::kTargetAttr << " = #fp4.target<sm_100a>}'";
  return failure();
}
