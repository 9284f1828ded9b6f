//===- Target.cpp - The target of a module --------------------------------===//

#include "fp4/Dialect/Fp4/IR/Target.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Utils/LaunchAttributes.h"
#include "fp4/ISA/GpuModel.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fp4;

static ParseResult parseField(AsmParser &parser, int64_t &sms, StringRef &device) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef field;
  if (parser.parseKeyword(&field))
    return failure();
  if ((field == "device" && !device.empty()) || (field == "sms" && sms))
    return withNote(parser.emitError(loc) << "field '" << field << "' must be given once",
                    "remove all but one of them");
  if (field == "device")
    return failure(parser.parseEqual() || parser.parseKeyword(&device));
  if (field != "sms") {
    return withNote(parser.emitError(loc) << "a target has no field '" << field << "'",
                    renamedNote(field, "sms = N is the number of SMs that kernels may fill, and "
                                       "device = NAME the product that plans are for"));
  }
  return failure(parser.parseEqual() || parser.parseInteger(sms));
}

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name, device;
  int64_t sms = 0;
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  while (succeeded(parser.parseOptionalComma()))
    if (parseField(parser, sms, device))
      return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), name, sms, device);
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName();
  if (!getDevice().empty())
    printer << ", device = " << getDevice();
  if (getSms())
    printer << ", sms = " << getSms();
  printer << '>';
}

/// Far above any GPU, and what grids, a product of this, cannot overflow.
static constexpr int64_t kMaxSms = 65535;

// #fp4.target (C3)
static LogicalResult verifyDevice(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                  StringRef device) {
  if (device.empty())
    return success();
  Expected<const hw::GpuModel *> gpu = hw::requireGpu(device.str());
  if (gpu && (*gpu)->target == std::string_view(name))
    return success();
  InFlightDiagnostic diag = emitError();
  if (gpu)
    diag << "device '" << device << "' must be one of target " << name << ", but is one of "
         << StringRef((*gpu)->target);
  else
    diag << "unknown device '" << device << "'";
  std::string known = hw::gpuOptions(std::string_view(name));
  diag.attachNote() << (known.empty() ? "the target has no rows of devices: leave 'device' out"
                                      : "devices of " + name.str() + ": " + known);
  return diag;
}

// #fp4.target (C1)
LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                 int64_t sms, StringRef device) {
  if (Expected<const hw::TargetModel *> model = hw::requireTarget(name.str()); !model) {
    InFlightDiagnostic diag = emitError() << "unknown target '" << name << "'";
    diag.attachNote() << model.error().note;
    return diag;
  }
  if (sms < 0 || sms > kMaxSms)
    return withNote(emitError() << "SMs of a target must be 0 to " << kMaxSms << ", but got "
                                << sms,
                    "leave it out for those of the GPU");
  return verifyDevice(emitError, name, device);
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
  return success();
}

// #fp4.plan (C4)
static LogicalResult refuseFormerList(Operation *op, NamedAttribute attribute) {
  return withNote(op->emitOpError() << "attribute " << attribute.getName().getValue()
                                    << " must be spelled 'dispatch'",
                  "write dispatch = [#fp4.case<m = [1, 16] : tile_gemm, ..>, #fp4.case<m = [17, ?] "
                  ": tile_gemm, ..>], the last with the plan of fp4.plan");
}

// prologue (C1)
static LogicalResult verifyPrologue(Operation *op, NamedAttribute attribute) {
  StringRef remedy = "remove it, and the operation becomes a kernel of its own";
  auto amax = dyn_cast<AmaxOp>(op);
  bool isOfRows = (amax && amax.getPerRow()) || isa<TopKOp>(op);
  if (isOfRows && isa<UnitAttr>(attribute.getValue()))
    return success();
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  bool isKnown = isa<UnitAttr>(attribute.getValue()) ||
                 (text && (text == kStoredPrologue || text == kBesidePrologue));
  if (!generic || !isKnown)
    return withNote(op->emitOpError() << "attribute " << kPrologueAttr
                                      << " must be a unit attribute, \"stored\" or \"beside\", on "
                                         "a linalg.generic, or a unit "
                                         "attribute on an fp4.amax of rows or fp4.top_k",
                    remedy);
  std::string reason = whyNotPrologue(generic);
  if (reason.empty())
    return success();
  return withNote(op->emitOpError()
                      << "attribute " << kPrologueAttr
                      << " must be on an operation that readers can compute, but " << reason,
                  remedy);
}

// #fp4.plan (C5)
static LogicalResult verifyRowCases(Operation *op, NamedAttribute attribute) {
  StringRef remedy =
      "write fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 448>], and "
      "in fp4.plan the plan for more rows";
  auto list = dyn_cast<ArrayAttr>(attribute.getValue());
  auto isOfRows = [](Attribute one) {
    auto some = dyn_cast<CaseAttr>(one);
    return some && hasRowCases(some.getPlan().family) && some.getPlan().guard.m.most;
  };
  if (!list || list.empty() || !llvm::all_of(list, isOfRows)) // #fp4.plan (C5)
    return withNote(op->emitOpError()
                        << "attribute " << kRowCasesAttr
                        << " must be cases of family reduce_rows, stream_blocks or stream_items "
                           "for ranges of m that end, but got "
                        << attribute.getValue(),
                    remedy);
  int64_t next = 1;
  for (CaseAttr one : list.getAsRange<CaseAttr>()) {
    const SizeRange &range = one.getPlan().guard.m;
    if (range.least != next) // #fp4.plan (C5)
      return withNote(op->emitOpError() << "attribute " << kRowCasesAttr
                                        << " must have ranges of m one behind the other, but one "
                                           "begins at "
                                        << range.least << " and not at " << next,
                      remedy);
    next = *range.most + 1;
  }
  return success();
}

// #fp4.launch_dependents (C1)
static LogicalResult verifyPdl(Operation *op, NamedAttribute attribute) {
  auto dependents = dyn_cast<LaunchDependentsAttr>(attribute.getValue());
  if (dependents && dependents.getValue() != LaunchDependents::None)
    return success();
  return withNote(
      op->emitOpError() << "attribute " << kPdlAttr
                        << " must be a place such as "
                           "#fp4.launch_dependents<before_wait>, but got "
                        << attribute.getValue(),
      "the places are before_wait, in_turn, behind_loads and at_end; a launch without PDL "
      "has no fp4.pdl");
}

LogicalResult Fp4Dialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kTargetAttr)
    return verifyTarget(op, attribute);
  if (attribute.getName() == kPlanAttr)
    return verifyPlan(op, attribute);
  if (attribute.getName() == kRowCasesAttr)
    return verifyRowCases(op, attribute);
  if (attribute.getName() == "fp4.row_plans" || attribute.getName() == "fp4.size_plans")
    return refuseFormerList(op, attribute);
  if (attribute.getName() == kPrologueAttr)
    return verifyPrologue(op, attribute);
  if (attribute.getName() == kPdlAttr)
    return verifyPdl(op, attribute);
  if (std::string note = renamedNote(attribute.getName().getValue()); !note.empty())
    return withNote(
        op->emitOpError() << "unknown attribute '" << attribute.getName().getValue() << "'", note);
  return success();
}

std::optional<hw::TargetModel> fp4::findTarget(Operation *op) {
  for (Operation *scope = op; scope; scope = scope->getParentOp()) {
    auto attribute = scope->getAttrOfType<TargetAttr>(Fp4Dialect::kTargetAttr);
    if (!attribute)
      continue;
    hw::TargetModel model = *hw::lookupTarget(attribute.getName().str());
    if (!attribute.getDevice().empty())
      model = (*hw::requireGpu(attribute.getDevice().str()))->model();
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
