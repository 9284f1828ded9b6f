//===- PipeLanes.cpp - Sums of lanes, promoted to fp32 --------------------===//
//
// Verifiers. Labels such as (C373) refer to docs/Pipe.md.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeLaneOps.cpp.inc"

/// Bytes of a row of the tiles that the tensor core reads; columns of which an instruction has a
/// multiple; threads of a warpgroup.
static constexpr int64_t kRowBytes = 128, kColumnStep = 16, kGroupThreads = 128;

/// Warpgroups of the role around `op`; 0 before there are roles.
static int64_t groupsOfRole(Operation *op) {
  auto region = op->getParentOfType<RoleRegionOp>();
  return region ? region.getRole().getNumThreads() / kGroupThreads : 0;
}

static LogicalResult requireLanes(Operation *op, FragmentType fragment) {
  if (fragment.getKind() == FragmentKind::Lanes)
    return success();
  return op->emitOpError() << "accumulator must be a fragment of lanes, but got " << fragment;
}

LogicalResult MmaDenseOp::verify() {
  TmemType acc = getAccumulator().getType();
  SharedType a = getA().getType(), b = getB().getType();
  for (auto [name, tile] : {std::pair("a", a), {"b", b}})
    if (!isa<Float8E4M3FNType>(tile.getElementType()) || tile.getInnerBytes() != kRowBytes ||
        tile.getLayout() != Layout::Swizzle128B)
      return emitOpError() << name << " must be f8E4M3FN with rows of " << kRowBytes
                           << " bytes and layout swizzle_128B, but got " << tile; // (C373)
  if (a.getRows() != kMmaM)
    return emitOpError() << "a must have " << kMmaM << " rows, but got " << a; // (C373)
  int64_t columns = acc.getColumns();
  if (acc.isScales() || columns % kColumnStep) // the type has at most 256
    return emitOpError() << "accumulator must have sums in a multiple of " << kColumnStep
                         << " columns, but got " << acc; // (C373)
  if (b.getRows() * (acc.getPair() ? 2 : 1) != columns)
    return emitOpError() << "b must have a row for each of " << columns
                         << " columns, of a pair for half of them, but got " << b; // (C373)
  return success();
}

void LaneSumsOp::getAsmResultNames(OpAsmSetValueNameFn name) { name(getResult(), "acc"); }

LogicalResult LaneSumsOp::verify() { return requireLanes(*this, getResult().getType()); } // (C374)

LogicalResult LaneColumnOp::verify() {
  return requireLanes(*this, getAccumulator().getType()); // (C374)
}

LogicalResult LaneScaleOp::verify() {
  GlobalType a = getA().getType(), b = getB().getType();
  for (auto [name, type] : {std::pair("a", a), {"b", b}})
    if (type.getRank() != 2 || !type.getElementType().isF32())
      return emitOpError() << name << " must have 2 dimensions of f32, but got " << type; // (C375)
  if (a.getShape()[1] != b.getShape()[1] || b.hasDynamicColumns())
    return emitOpError()
           << "a and b must have as many columns, a scale for each block of k, but got " << a
           << " and " << b; // (C375)
  if (ShapedType::isDynamic(b.getShape()[0]))
    return emitOpError() << "b must have static rows, but got " << b; // (C375)
  if (ShapedType::isDynamic(a.getShape()[0]) != bool(getRows()))
    return emitOpError() << "expects "
                         << (getRows() ? "no operand 'rows' for static rows"
                                       : "operand 'rows' for dynamic rows")
                         << ", but got " << (getRows() ? "one" : "none"); // (C375)
  int64_t columns = getColumns();
  if (columns < 1 || kPromotedBlock % columns)
    return emitOpError() << "columns must divide " << kPromotedBlock << ", but got "
                         << columns; // (C375)
  return success();
}

LogicalResult LaneTileScaleOp::verify() {
  SharedType a = getA().getType(), b = getB().getType();
  for (auto [name, tile] : {std::pair("a", a), {"b", b}})
    if (!tile.getElementType().isF32() || tile.getLayout() != Layout::Linear)
      return emitOpError() << name << " must be f32 without a swizzle, but got " << tile; // (C376)
  if (a.getColumns() != b.getColumns())
    return emitOpError()
           << "a and b must have as many columns, a scale for each block of k, but got " << a
           << " and " << b; // (C376)
  if (a.getRows() != kMmaM)
    return emitOpError() << "a must have " << kMmaM << " rows, but got " << a; // (C376)
  int64_t groups = groupsOfRole(*this);
  if (b.getRows() == 1 || groups == 0 || b.getRows() == groups)
    return success();
  return emitOpError() << "b must have one row, or one for each of the " << groups
                       << " warpgroups of its role, but got " << b; // (C376)
}

LogicalResult PromoteLanesOp::verify() {
  FragmentType acc = getAccumulator().getType();
  TmemType sums = getSums().getType();
  if (failed(requireLanes(*this, acc))) // (C377)
    return failure();
  int64_t groups = groupsOfRole(*this), columns = acc.getShape()[1];
  bool fits = groups ? sums.getColumns() == groups * columns : sums.getColumns() % columns == 0;
  if (sums.isScales() || !fits)
    return emitOpError() << "sums must have the " << columns
                         << " columns of the accumulator for each warpgroup of the role, but got "
                         << sums; // (C377)
  return success();
}

LogicalResult ReadLanesOp::verify() {
  FragmentType acc = getAccumulator().getType();
  if (failed(requireLanes(*this, acc))) // (C378)
    return failure();
  int64_t column = getColumn(), count = getType().getNumElements(), columns = acc.getShape()[1];
  if (column >= 0 && count <= columns && column <= columns - count)
    return success();
  return emitOpError() << "columns " << column << " to " << column + count << " must be among the "
                       << columns << " of the accumulator"; // (C378)
}
