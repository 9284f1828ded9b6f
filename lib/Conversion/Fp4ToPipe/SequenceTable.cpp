//===- SequenceTable.cpp - Tiles of packed sequences ----------------------===//

#include "SequenceTable.h"
#include "ItemLaunch.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp4;

/// The memory that takes what a kernel finds wrong with operand `name`.
static Value allocateReport(OpBuilder &b, const TiledSequences &sequences, StringRef name) {
  Operation *op = sequences.op;
  MemRefType type = pipe::getBufferType(groupReportType(op->getContext()));
  auto alloc = gpu::AllocOp::create(b, op->getLoc(), type, /*asyncToken=*/Type(), ValueRange(),
                                    ValueRange(), ValueRange());
  alloc->setAttr(kGroupReportAttr, b.getStringAttr(placeOfOperand(op, sequences.kind, name)));
  return alloc.getMemref();
}

/// Builds the kernel: its arguments are the offsets and their report, of rows and of others, the
/// table, and the numbers of rows of the table, of rows and of others.
static gpu::GPUFuncOp buildTable(RewriterBase &rewriter, const TiledSequences &sequences,
                                 ArrayRef<Type> types, bool hasOthers) {
  ItemKernel kernel(rewriter, sequences.op, "tiles", types, GroupTiles::kThreads);
  ImplicitLocOpBuilder &b = kernel.b;
  Int32 rowsOfTable = kernel.size(ShapedType::kDynamic);
  auto offsets = [&](unsigned argument) -> GroupOffsets {
    Value limit = arith::ExtUIOp::create(b, b.getI64Type(), kernel.size(ShapedType::kDynamic));
    return {kernel.pointer(argument), sequences.batches, /*step=*/1, limit, /*bytes=*/4,
            /*arePacked=*/true};
  };
  GroupTiles tiles{offsets(0), sequences.tokens, rowsOfTable - 1};
  tiles.hasRest = true;
  tiles.order = sequences.order;
  emitGroupTiles(b, tiles, kernel.pointer(1), kernel.pointer(hasOthers ? 4 : 2));
  if (!hasOthers)
    return kernel.finish();
  GroupOffsets ofOthers = offsets(2);
  Int32 number = kernel.cta() * GroupTiles::kThreads + kernel.thread();
  Int32 checker(b, GroupTiles::kThreads / 2 - 1); // of another warp than that for rows
  kernel.when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, checker),
              [&] { emitGroupCheck(b, ofOthers, kernel.pointer(3)); });
  return kernel.finish();
}

std::pair<Value, Value> fp4::makeSequenceTable(RewriterBase &rewriter,
                                               const TiledSequences &sequences,
                                               const PackedRows &rows, const PackedRows &others) {
  Location loc = sequences.op->getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Type i32 = rewriter.getI32Type();
  SmallVector<Type> types;
  SmallVector<Value> inputs, numbers;
  auto take = [&](const PackedRows &list) {
    if (!list.offsets)
      return;
    llvm::append_values(types, pipe::GlobalType::get({sequences.batches + 1}, i32),
                        groupReportType(rewriter.getContext()));
    llvm::append_values(inputs, list.offsets, allocateReport(rewriter, sequences, list.name));
    numbers.push_back(memref::DimOp::create(rewriter, loc, list.rows, 0));
  };
  take(rows);
  take(others);
  auto table = pipe::GlobalType::get({ShapedType::kDynamic, 4}, i32);
  types.push_back(table);
  types.append(1 + numbers.size(), i32);
  Value whole = arith::DivUIOp::create(rewriter, loc, numbers[0], index(sequences.tokens));
  Value places = arith::AddIOp::create(rewriter, loc, whole, index(sequences.batches + 1));
  Value all = arith::AddIOp::create(rewriter, loc, places, index(1));
  gpu::GPUFuncOp kernel = buildTable(rewriter, sequences, types, bool(others.offsets));
  Value ctas = index(int64_t(llvm::divideCeil(sequences.batches + 1, GroupTiles::kThreads)));
  Value made = launchItems(rewriter, loc, kernel, inputs, ctas, {all}, /*dependents=*/{}, numbers);
  return {pipe::ViewOp::create(rewriter, loc, table, made), places};
}
