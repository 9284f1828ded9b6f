//===- GroupBands.cpp - Groups of rows that only the device knows ---------===//
#include "GroupBands.h"

#include "GroupTiles.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static_assert(GroupBands::kRows == hw::scaleBlockRows);

/// Device memory of the host code, for a tensor of `type`.
static gpu::AllocOp allocate(ImplicitLocOpBuilder &host, RankedTensorType type) {
  auto memory = MemRefType::get(type.getShape(), type.getElementType());
  return gpu::AllocOp::create(host, memory, /*asyncToken=*/Type(), ValueRange(), ValueRange(),
                              ValueRange());
}

GroupBands::GroupBands(Operation *op, TypedValue<RankedTensorType> offsets, int64_t rows,
                       const LoweringContext &context)
    : rows(rows) {
  RankedTensorType given = offsets.getType();
  int64_t groups = given.getDimSize(0) - (given.getRank() == 1 ? 1 : 0);
  bands = rows / kRows + groups; // every group may end within a band
  LoweringContext ofTable = context;
  ofTable.plan.threads = GroupTiles::kThreads;
  ofTable.plan.ctasPerSm.reset();
  KernelBuilder kernel(op, "groups", ofTable);
  kernel.standAlone();
  ImplicitLocOpBuilder &b = kernel.body(), &host = kernel.host();
  Value limit = arith::ConstantIntOp::create(b, rows, 64);
  GroupTiles tiles{{kernel.input(offsets), groups, /*step=*/given.getRank(), limit},
                   kRows,
                   Int32(b, bands)};

  auto reportType = RankedTensorType::get({kGroupReportWords}, b.getI64Type());
  gpu::AllocOp report = allocate(host, reportType);
  StringRef kind = op->getName().stripDialect();
  report->setAttr(kGroupReportAttr,
                  host.getStringAttr(placeOfOperand(op, kind, "offsets")));
  type = RankedTensorType::get({bands + 1, 4}, b.getI32Type());
  buffer = allocate(host, type).getMemref();
  Value reportPointer = kernel.pointer(report.getMemref(), reportType);
  emitGroupTiles(b, tiles, reportPointer, kernel.pointer(buffer, type));
  kernel.launch(constIndex(host, int64_t(llvm::divideCeil(groups, GroupTiles::kThreads))));
}

void GroupBands::enter(KernelBuilder &kernel) { table = kernel.pointer(buffer, type); }

GroupBands::Band GroupBands::find(Int32 number) const {
  ImplicitLocOpBuilder &b = number.builder();
  constexpr int64_t placeBytes = 16;
  Int32 used(b, load(b, b.getI32Type(), advance(b, table, bands * placeBytes), placeBytes));
  Value exists = number < used, any = Int32(b, int64_t(0)) < used;
  // A band without rows lies behind the first row of a group, which whoever clamps rows then reads.
  // The place of the number of bands is always written.
  Int32 place = select(exists, number, select(any, Int32(b, int64_t(0)), Int32(b, bands)));
  Value words = load(b, VectorType::get(4, b.getI32Type()), address(b, table, place, placeBytes),
                     placeBytes);
  auto word = [&](int64_t i) { return Int32(b, vector::ExtractOp::create(b, words, i)); };
  Int32 none = select(any, word(0) + 1, Int32(b, rows));
  return {select(exists, word(2), Int32(b, int64_t(0))), select(exists, word(0), none),
          select(exists, word(1), none)};
}

void fp4::clearRowsOfNoGroup(KernelBuilder &kernel, Value buffer) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  ImplicitLocOpBuilder &host = kernel.host();
  Value zero = arith::ConstantOp::create(host, host.getZeroAttr(element));
  gpu::MemsetOp::create(host, TypeRange(), ValueRange(), buffer, zero);
}
