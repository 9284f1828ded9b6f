//===- PipeDialect.cpp - Registration and enumerations --------------------===//

#include "PipeBytecode.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4::pipe;

#include "fp4/Dialect/Pipe/IR/PipeAttrInterfaces.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeDialect.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeEngines.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeFragments.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeInterfaces.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeLayouts.cpp.inc"
#include "fp4/Dialect/Pipe/IR/PipeModifiers.cpp.inc"
namespace {
/// Channel types list every tile of a stage; an alias keeps the ops that use them readable.
struct PipeAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (!isa<ChannelType>(type))
      return AliasResult::NoAlias;
    os << "channel";
    return AliasResult::OverridableAlias;
  }
};
} // namespace

static ParseResult refuseFormerName(OpAsmParser &parser, OperationState &state) {
  StringRef name = state.name.getStringRef();
  InFlightDiagnostic diag = parser.emitError(parser.getNameLoc())
                            << "custom op '" << name << "' is unknown";
  diag.attachNote() << renamedNote(name);
  return diag;
}

std::optional<Dialect::ParseOpHook> PipeDialect::getParseOperationHook(StringRef name) const {
  if (!presentName(name))
    return std::nullopt;
  return refuseFormerName;
}

void PipeDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Pipe/IR/PipeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Pipe/IR/PipeWarpOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Pipe/IR/PipeRowOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Pipe/IR/PipeMmaOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Pipe/IR/PipeMatrixOps.cpp.inc"
      >();
  addInterfaces<PipeAsmInterface>();
  addBytecode(this);
}

/// (C665) The ring of a tile before there are roles.
static LogicalResult verifyRing(Operation *op, Attribute ring) {
  bool makesTile = isa<EngineOpInterface>(op) &&
                   llvm::any_of(op->getResultTypes(), llvm::IsaPred<SharedType, TmemType>);
  if (makesTile && isa<StringAttr>(ring) && !op->getParentOfType<RoleRegionOp>())
    return success();
  return withNote(op->emitOpError() << "'" << kRingAttr
                                    << "' must be the name of a ring, at an operation that makes a "
                                       "tile in a kernel without roles, but got "
                                    << ring,
                  "write {pipe.ring = \"keys\"} before pipe-specialize-warps"); // (C665)
}

/// (C674) A channel whose one tile of tensor memory is the same in each iteration.
static LogicalResult verifyKeptChannel(ChannelOp op) {
  ArrayRef<Type> payload = op.getType().getPayload();
  if (payload.size() == 1 && isa<TmemType>(payload.front()) && !op.isCluster() &&
      op.getDepth().value_or(1) == 1 && op.getProducer() == Engine::Tensor &&
      op.getConsumers().size() == 1)
    return success();
  return fp4::withNote(
      op.emitOpError() << "with '" << kKeptAttr
                       << "' must have one tile of tensor memory and one stage, "
                          "from tensor to one consumer",
      "give other tiles a channel of their own, and the channel depth 1"); // (C674)
}

/// (C676) Sums that threads leave where the tensor core adds to them.
static LogicalResult verifyKept(Operation *op, Attribute value) {
  if (auto channel = dyn_cast<ChannelOp>(op))
    return verifyKeptChannel(channel);
  auto sums = dyn_cast<AccumulatorOp>(op);
  if (sums && !sums.getFragmentType() && op->hasAttr(kRingAttr) && isa<UnitAttr>(value))
    return success();
  return fp4::withNote(op->emitOpError() << "'" << kKeptAttr
                                         << "' must be at a channel, or at an accumulator of a "
                                            "ring in tensor memory, but got "
                                         << value,
                       "write {pipe.kept, pipe.ring = \"sums\"}"); // (C676)
}

/// (C122) Names of the roles that consume a channel.
static LogicalResult verifyConsumerRoles(Operation *op, Attribute value) {
  auto channel = dyn_cast<ChannelOp>(op);
  auto names = dyn_cast<ArrayAttr>(value);
  if (channel && names && names.size() == channel.getConsumers().size() &&
      llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return success();
  return fp4::withNote(
      op->emitOpError() << "'" << kConsumerRolesAttr
                        << "' must be the name of a role for each consumer, at a channel, but got "
                        << value,
      "write {pipe.consumer_roles = [\"math\", \"values\"]}"); // (C122)
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kRingAttr)
    return verifyRing(op, attribute.getValue());
  if (attribute.getName() == kKeptAttr)
    return verifyKept(op, attribute.getValue());
  if (attribute.getName() == kConsumerRolesAttr)
    return verifyConsumerRoles(op, attribute.getValue());
  if (attribute.getName() != kRoleAttr)
    return success();
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (isa<EngineOpInterface>(op) && isa<StringAttr>(attribute.getValue()) && kernel &&
      !op->getParentOfType<RoleRegionOp>())
    return success();
  return withNote(op->emitOpError() << "'" << kRoleAttr
                                    << "' must be the name of a role, at an operation of an engine "
                                       "in a kernel without roles, but got "
                                    << attribute.getValue(),
                  "write {pipe.role = \"convert\"} before pipe-specialize-warps"); // (C656)
}
