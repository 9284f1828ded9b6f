//===- GroupTable.cpp - Tiles of a grouped GEMM ---------------------------===//
//
// a grouped GEMM differs from a plain one in where its tiles of rows are. A table says so, by which
// the kernel needs neither a search nor a branch, and skips groups without rows.
//
//===----------------------------------------------------------------------===//

#include "WorkTables.h"

#include "DynamicSizes.h"

#include "ItemLaunch.h"

#include "GroupTiles.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Utils/BufferTypes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kBlockRows = pipe::kScaleBlockRows;
/// Groups that each tile's search goes through, which takes less than the launch of a kernel.
static constexpr int64_t kMostSearched = 8;

void fp4::setGroups(Gemm &gemm, BlockScaledMatmulOp op) {
  auto &[problem, route, tiling, work, results] = gemm;
  problem.groups = op.getNumGroups();
  bool mayWait = problem.hasF32Scales() && bool(tiling.auxiliary);
  results.clearsRows = // of elements, which are the only result
      op.getOffsets() && !op.getUnspecifiedRows() && mayWait && !results.derives();
  if (!op.getGroups()) { // as many as there may be: every group ends within a tile
    if (!problem.dynamicRows()) {
      work.tablePlaces = problem.rows / gemm.workRows() + problem.morePlaces();
      problem.groupScaleRows = (problem.rows / kBlockRows + problem.groups) * kBlockRows;
    }
    bool isShort = problem.groups <= kMostSearched && !problem.dynamicRows();
    if (mayWait && gemm.hasFragments() && isShort && !gemm.hasScaleLists())
      work.searchedOffsets = cast<RankedTensorType>(op.getOffsets().getType()).getRank();
    return;
  }
  problem.knowsGroups = true;
  ArrayRef<int64_t> groups = *op.getGroups();
  for (int64_t rows : groups) {
    work.tablePlaces += int64_t(llvm::divideCeil(rows, gemm.workRows()));
    problem.groupScaleRows += llvm::alignTo(rows, kBlockRows);
  }
}

Value fp4::scalesOfGroups(OpBuilder &builder, Location loc, const Gemm &gemm, Value tiles,
                          int64_t rows) {
  if (gemm.problem.hasF32Scales()) // offsets are rows and no list of tiles
    return tiles;
  auto type = pipe::GlobalType::get({rows, gemm.problem.depth / gemm.problem.block},
                                    gemm.problem.scaleType, pipe::Layout::Tiled128x4);
  MemRefType buffer = pipe::getBufferType(type);
  if (tiles.getType() == buffer)
    return tiles;
  return pipe::ViewOp::create(builder, loc, buffer, tiles, /*offset=*/0, /*rows=*/Value());
}

/// The words of the table where the rows of groups are known.
static SmallVector<int32_t> tableOf(ArrayRef<int64_t> groups, const Gemm &gemm) {
  SmallVector<int32_t> words;
  int64_t row = 0, scaleRow = 0;
  for (auto [group, rows] : llvm::enumerate(groups)) {
    for (int64_t first = 0; first < rows; first += gemm.workRows())
      llvm::append_values(words, int32_t(row + first), int32_t(row + rows), int32_t(group),
                          int32_t(scaleRow + first));
    row += rows;
    scaleRow += llvm::alignTo(rows, kBlockRows);
  }
  llvm::append_values(words, int32_t(gemm.work.tablePlaces), 0, 0, 0);
  return words;
}

Value fp4::constantTable(OpBuilder &builder, Location loc, ArrayRef<int32_t> words,
                         const Gemm &gemm) {
  ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(words.data()), words.size() * 4);
  auto elements = RankedTensorType::get({int64_t(bytes.size())}, builder.getIntegerType(8));
  return pipe::DeviceConstantOp::create(builder, loc, pipe::getBufferType(gemm.table()),
                                        DenseElementsAttr::get(elements, bytes));
}

//===----------------------------------------------------------------------===//
// Groups whose rows the device has
//===----------------------------------------------------------------------===//

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

/// Builds the kernel; `step` numbers of the offsets belong to a group. Dynamic rows are the last
/// argument, behind the size of the table.
static gpu::GPUFuncOp buildTable(RewriterBase &rewriter, BlockScaledMatmulOp op,
                                 ArrayRef<Type> types, const Gemm &gemm, int64_t step) {
  ItemKernel kernel(rewriter, op, "groups", types, GroupTiles::kThreads);
  ImplicitLocOpBuilder &b = kernel.b;
  Value offsets = kernel.pointer(0), report = kernel.pointer(1), table = kernel.pointer(2);
  bool isDynamic = gemm.problem.dynamicRows();
  if (isDynamic)
    kernel.size(ShapedType::kDynamic);
  Int32 rows = kernel.size(gemm.problem.rows);
  Int32 places = isDynamic ? rows / gemm.workRows() + gemm.problem.morePlaces()
                           : Int32(b, gemm.work.tablePlaces);
  Value limit = b.createOrFold<arith::ExtUIOp>(b.getI64Type(), rows);
  GroupTiles tiles{{offsets, gemm.problem.groups, step, limit},
                   gemm.workRows(),
                   places,
                   gemm.results.clearsRows};
  emitGroupTiles(b, tiles, report, table);
  return kernel.finish();
}

/// Launches the kernel; the buffer of the table.
static Value makeTable(RewriterBase &rewriter, BlockScaledMatmulOp op, Value offsets, Value rows,
                       const Gemm &gemm) {
  Location loc = op.getLoc();
  auto given = cast<RankedTensorType>(op.getOffsets().getType());
  auto offsetsType = pipe::GlobalType::get(given.getShape(), rewriter.getI64Type());
  SmallVector<Type> types = {offsetsType, groupReportType(op.getContext()), gemm.table()};
  SmallVector<Value> sizes, numbers;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  if (gemm.problem.dynamicRows()) {
    types.append(2, rewriter.getI32Type());
    Value whole = arith::DivUIOp::create(rewriter, loc, rows, index(gemm.workRows()));
    int64_t more = gemm.problem.morePlaces() + 1 + gemm.gaps();
    sizes = {arith::AddIOp::create(rewriter, loc, whole, index(more))};
    numbers = {rows};
  }
  gpu::GPUFuncOp kernel = buildTable(rewriter, op, types, gemm, /*step=*/given.getRank());
  Value blocks = index(int64_t(llvm::divideCeil(gemm.problem.groups, GroupTiles::kThreads)));
  return launchItems(rewriter, loc, kernel, {offsets, allocateReport(rewriter, op)}, blocks, sizes,
                     /*dependents=*/{}, numbers);
}

Value fp4::tableOfGroups(RewriterBase &rewriter, BlockScaledMatmulOp op, Value offsets, Value rows,
                         const Gemm &gemm) {
  if (gemm.work.searchedOffsets)
    return pipe::ViewOp::create(rewriter, op.getLoc(), pipe::getBufferType(gemm.table()), offsets,
                                /*offset=*/0, /*rows=*/Value());
  if (op.getGroups())
    return constantTable(rewriter, op.getLoc(), tableOf(*op.getGroups(), gemm), gemm);
  return makeTable(rewriter, op, offsets, rows, gemm);
}

void fp4::addGroups(RewriterBase &rewriter, BlockScaledMatmulOp op, Value table, const Gemm &gemm,
                    KernelArguments &args) {
  args.table = pipe::ViewOp::create(rewriter, op.getLoc(), gemm.table(), table);
  if (gemm.work.searchedOffsets)
    args.report = pipe::ViewOp::create(rewriter, op.getLoc(), groupReportType(op.getContext()),
                                       allocateReport(rewriter, op));
}
