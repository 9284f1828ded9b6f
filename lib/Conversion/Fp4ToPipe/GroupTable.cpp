//===- GroupTable.cpp - Where the tiles of a product of groups are --------===//
//
// A product of groups differs from a plain one in where its tiles of rows are. A table says so, by
// which the kernel needs neither a search nor a branch, and skips groups without rows.
//
//===----------------------------------------------------------------------===//

#include "GroupTable.h"

#include "DynamicSizes.h"

#include "ItemLaunch.h"

#include "GroupCheck.h"
#include "Int32.h"

#include "fp4/Conversion/BufferTypes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kBlockRows = pipe::kScaleBlockRows;
/// Groups that each tile's search goes through, which takes less than the launch of a kernel.
static constexpr int64_t kMostSearched = 8;

void fp4::setGroups(MatmulShape &shape, BlockScaledMatmulOp op) {
  shape.groups = op.getNumGroups();
  shape.clearsRows =
      op.getOffsets() && !op.getUnspecifiedRows() && shape.hasF32Scales() && shape.hasSpareThreads;
  if (!op.getGroups()) { // as many as there may be: every group ends within a tile
    shape.tablePlaces = shape.resultRows() / shape.workRows() + shape.groups;
    shape.groupScaleRows = (shape.resultRows() / kBlockRows + shape.groups) * kBlockRows;
    bool mayWait = shape.hasF32Scales() && shape.hasFragments() && shape.hasSpareThreads;
    if (mayWait && shape.groups <= kMostSearched)
      shape.searchedOffsets = cast<RankedTensorType>(op.getOffsets().getType()).getRank();
    return;
  }
  ArrayRef<int64_t> groups = *op.getGroups();
  shape.knowsGroups = true;
  for (int64_t rows : groups) {
    shape.tablePlaces += int64_t(llvm::divideCeil(rows, shape.workRows()));
    shape.groupScaleRows += llvm::alignTo(rows, kBlockRows);
  }
}

Value fp4::scalesOfGroups(OpBuilder &builder, Location loc, const MatmulShape &shape, Value tiles,
                          int64_t rows) {
  if (shape.hasF32Scales()) // they are rows and no list of tiles
    return tiles;
  auto type = pipe::GlobalType::get({rows, shape.k / shape.block}, shape.scaleType,
                                    pipe::Layout::Tiled128x4);
  MemRefType buffer = pipe::getBufferType(type);
  if (tiles.getType() == buffer)
    return tiles;
  return pipe::BufferViewOp::create(builder, loc, buffer, tiles, /*offset=*/0, /*rows=*/Value());
}

/// The words of the table where the rows of groups are known.
static SmallVector<int32_t> tableOf(ArrayRef<int64_t> groups, const MatmulShape &shape) {
  SmallVector<int32_t> words;
  int64_t row = 0, scaleRow = 0;
  for (auto [group, rows] : llvm::enumerate(groups)) {
    for (int64_t first = 0; first < rows; first += shape.workRows())
      llvm::append_values(words, int32_t(row + first), int32_t(row + rows), int32_t(group),
                          int32_t(scaleRow + first));
    row += rows;
    scaleRow += llvm::alignTo(rows, kBlockRows);
  }
  llvm::append_values(words, int32_t(shape.tablePlaces), 0, 0, 0);
  return words;
}

Value fp4::constantTable(OpBuilder &builder, Location loc, ArrayRef<int32_t> words,
                         const MatmulShape &shape) {
  ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(words.data()), words.size() * 4);
  auto elements = RankedTensorType::get({int64_t(bytes.size())}, builder.getIntegerType(8));
  return pipe::DeviceConstantOp::create(builder, loc, pipe::getBufferType(shape.table()),
                                        DenseElementsAttr::get(elements, bytes));
}

//===----------------------------------------------------------------------===//
// Where the device has the rows of groups
//===----------------------------------------------------------------------===//

namespace {
/// The kernel that makes the table. A thread adds up what comes before its group, and writes the
/// rows of its tiles. Offsets that decrease or exceed the rows are reported. They make groups empty
/// or shorter, so that no tile is outside of the operands and no two groups have a row in common.
class TableKernel {
public:
  /// `step` numbers of the offsets belong to a group, 1 or 2.
  TableKernel(gpu::GPUFuncOp func, const MatmulShape &shape, int64_t step)
      : shape(shape), step(step), b(func.getLoc(), func.getBody()) {
    offsets = pipe::GlobalPtrOp::create(b, pointer(), func.getArgument(0));
    report = pipe::GlobalPtrOp::create(b, pointer(), func.getArgument(1));
    table = pipe::GlobalPtrOp::create(b, pointer(), func.getArgument(2));
    build();
    gpu::ReturnOp::create(b);
  }

  static constexpr int64_t kThreads = 128;

private:
  /// Groups whose rows a thread asks for before it adds up any of them: else it would wait for
  /// memory once for each.
  static constexpr int64_t kAtOnce = 8;

  /// What the offsets say of a group, none of it beyond the rows that there are.
  struct Rows {
    Int32 begin, end;
  };
  /// The end of a group, and the tiles and rows of scales until there.
  struct Place {
    Int32 end, tiles, scaleRows;
  };

  Type pointer() { return LLVM::LLVMPointerType::get(b.getContext(), 1); }
  Value at(Value base, Int32 index, int64_t bytes) {
    Type element = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
    return LLVM::GEPOp::create(b, pointer(), element, base, ArrayRef<LLVM::GEPArg>{Value(index)});
  }
  void when(Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  Int32 offset(Int32 index);
  Rows rowsOf(Int32 group) { return {offset(group * step), offset(group * step + 1)}; }
  Int32 larger(Int32 x, Int32 y) { return {b, arith::MaxUIOp::create(b, x, y)}; }
  Place advance(const Place &before, const Rows &rows);
  Place placeBefore(Int32 group);
  void writeRow(Int32 row, std::array<Int32, 4> words);
  void writeGroup(Int32 group);
  void build();

  MatmulShape shape;
  int64_t step;
  ImplicitLocOpBuilder b;
  Value offsets, report, table;
};
} // namespace

/// Number `index` of the offsets, at most the rows that there are.
Int32 TableKernel::offset(Int32 index) {
  Value wide = LLVM::LoadOp::create(b, b.getI64Type(), at(offsets, index, 8), /*alignment=*/8);
  wide = arith::MaxSIOp::create(b, wide, arith::ConstantIntOp::create(b, 0, 64));
  wide = arith::MinSIOp::create(b, wide, arith::ConstantIntOp::create(b, shape.resultRows(), 64));
  return {b, arith::TruncIOp::create(b, b.getI32Type(), wide)};
}

TableKernel::Place TableKernel::advance(const Place &before, const Rows &rows) {
  Int32 begin = larger(before.end, rows.begin), end = larger(begin, rows.end);
  Int32 count = end - begin;
  return {end, before.tiles + (count + (shape.workRows() - 1)) / shape.workRows(),
          before.scaleRows + (count + (kBlockRows - 1)) / kBlockRows * kBlockRows};
}

TableKernel::Place TableKernel::placeBefore(Int32 group) {
  Int32 zero(b, int64_t(0)), several(b, kAtOnce), last(b, shape.groups - 1);
  auto loop = scf::ForOp::create(b, zero, group, several, ValueRange{zero, zero, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto carried = [&](ValueRange values) -> Place {
    return {{b, values[0]}, {b, values[1]}, {b, values[2]}};
  };
  Int32 first(b, loop.getInductionVar());
  SmallVector<Rows> rows;
  for (int64_t i = 0; i < kAtOnce; ++i)
    rows.push_back(rowsOf(minimum(first + i, last)));
  Place next = carried(loop.getRegionIterArgs());
  for (int64_t i = 0; i < kAtOnce; ++i) {
    Place before = next, after = advance(before, rows[size_t(i)]);
    Value exists = first + i < group;
    next = {select(exists, after.end, before.end), select(exists, after.tiles, before.tiles),
            select(exists, after.scaleRows, before.scaleRows)};
  }
  scf::YieldOp::create(b, ValueRange{next.end, next.tiles, next.scaleRows});
  return carried(loop.getResults());
}

void TableKernel::writeRow(Int32 row, std::array<Int32, 4> words) {
  Value address = at(table, row, 16);
  for (auto [i, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(b, word, at(address, Int32(b, int64_t(i)), 4), /*alignment=*/4);
}

void TableKernel::writeGroup(Int32 group) {
  Place before = placeBefore(group);
  Rows rows = rowsOf(group);
  Place after = advance(before, rows);
  Int32 begin = larger(before.end, rows.begin), zero(b, int64_t(0)), one(b, int64_t(1));
  auto loop = scf::ForOp::create(b, zero, after.tiles - before.tiles, one);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Int32 tile(b, loop.getInductionVar()), first = tile * shape.workRows();
    writeRow(before.tiles + tile, {begin + first, after.end, group, before.scaleRows + first});
  }
  if (shape.clearsRows)
    writeRow(group + shape.gapPlaces(), {before.end, begin, zero, zero});
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, Int32(b, shape.groups - 1));
  when(isLast, [&] {
    writeRow({b, shape.tablePlaces}, {after.tiles, zero, zero, zero});
    if (shape.clearsRows)
      writeRow(group + (shape.gapPlaces() + 1),
               {after.end, Int32(b, shape.resultRows()), zero, zero});
  });
}

void TableKernel::build() {
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Int32 group = block * kThreads + thread;
  when(group < shape.groups, [&] { writeGroup(group); });
  // A thread of a warp that has no group where these are few.
  Int32 checker(b, kThreads - 1);
  when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, checker),
       [&] { emitGroupCheck(b, {offsets, shape.groups, step, shape.resultRows()}, report); });
}

pipe::GlobalType fp4::groupReportType(MLIRContext *context) {
  return pipe::GlobalType::get({kGroupReportWords}, IntegerType::get(context, 64));
}

/// The memory that takes what a kernel finds wrong with the groups of `op`.
static Value allocateReport(OpBuilder &builder, BlockScaledMatmulOp op) {
  MemRefType type = pipe::getBufferType(groupReportType(op.getContext()));
  auto alloc = gpu::AllocOp::create(builder, op.getLoc(), type, /*asyncToken=*/Type(), ValueRange(),
                                    ValueRange(), ValueRange());
  alloc->setAttr(kGroupReportAttr, builder.getStringAttr(placeOfOperand(op, "offsets")));
  return alloc.getMemref();
}

/// Launches the kernel; the buffer of the table.
static Value makeTable(RewriterBase &rewriter, BlockScaledMatmulOp op, Value offsets,
                       const MatmulShape &shape) {
  Location loc = op.getLoc();
  auto given = cast<RankedTensorType>(op.getOffsets().getType());
  auto offsetsType = pipe::GlobalType::get(given.getShape(), rewriter.getI64Type());
  gpu::GPUFuncOp kernel = createItemKernel(
      rewriter, op, "groups", {offsetsType, groupReportType(op.getContext()), shape.table()},
      TableKernel::kThreads);
  TableKernel(kernel, shape, /*step=*/given.getRank());
  Value blocks = arith::ConstantIndexOp::create(
      rewriter, loc, int64_t(llvm::divideCeil(shape.groups, TableKernel::kThreads)));
  return launchItems(rewriter, loc, kernel, {offsets, allocateReport(rewriter, op)}, blocks);
}

static Value tableOfGroups(RewriterBase &rewriter, BlockScaledMatmulOp op, Value offsets,
                           const MatmulShape &shape) {
  if (shape.searchedOffsets) {
    MemRefType words = pipe::getBufferType(shape.table());
    Value view = pipe::BufferViewOp::create(rewriter, op.getLoc(), words, offsets, /*offset=*/0,
                                            /*rows=*/Value());
    return pipe::GlobalViewOp::create(rewriter, op.getLoc(), shape.table(), view);
  }
  Value table = op.getGroups()
                    ? constantTable(rewriter, op.getLoc(), tableOf(*op.getGroups(), shape), shape)
                    : makeTable(rewriter, op, offsets, shape);
  return pipe::GlobalViewOp::create(rewriter, op.getLoc(), shape.table(), table);
}

SmallVector<Value> fp4::groupArguments(RewriterBase &rewriter, BlockScaledMatmulOp op,
                                       Value offsets, const MatmulShape &shape) {
  SmallVector<Value> arguments = {tableOfGroups(rewriter, op, offsets, shape)};
  if (shape.searchedOffsets)
    arguments.push_back(pipe::GlobalViewOp::create(
        rewriter, op.getLoc(), groupReportType(op.getContext()), allocateReport(rewriter, op)));
  return arguments;
}
