//===- AttentionTable.cpp - Tiles of packed sequences ---------------------===//
//
// A small kernel in front of attention cuts the queries of packed sequences into tiles, none of
// which has queries of two sequences (GroupTiles.h), and checks the offsets.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"
#include "DynamicSizes.h"
#include "GroupTiles.h"
#include "ItemLaunch.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp4;

/// The memory that takes what a kernel finds wrong with operand `name`.
static Value allocateReport(OpBuilder &b, AttentionOp op, StringRef name) {
  MemRefType type = pipe::getBufferType(groupReportType(op.getContext()));
  auto alloc = gpu::AllocOp::create(b, op.getLoc(), type, /*asyncToken=*/Type(), ValueRange(),
                                    ValueRange(), ValueRange());
  alloc->setAttr(kGroupReportAttr, b.getStringAttr(placeOfOperand(op, "attention", name)));
  return alloc.getMemref();
}

/// The order in which the attention of tiles takes less and less time, or with a causal mask more
/// and more, since the kernel begins with the last one then (AttentionKernel.cpp). So no CTA has
/// long tiles left when others have none (rasterOfTiles).
static TileOrder orderOf(Attention &attention) {
  if (attention.window())
    return TileOrder::Groups;
  return attention.op.getCausal() ? TileOrder::Numbers : TileOrder::LargestGroups;
}

/// Builds the kernel: its arguments are the offsets and their report, of queries and of packed
/// keys, the table, and the numbers of rows of the table, of queries and of packed keys.
static gpu::GPUFuncOp buildTable(RewriterBase &rewriter, Attention &attention,
                                 ArrayRef<Type> types) {
  ItemKernel kernel(rewriter, attention.op, "tiles", types, GroupTiles::kThreads);
  ImplicitLocOpBuilder &b = kernel.b;
  Int32 rowsOfTable = kernel.size(ShapedType::kDynamic);
  auto offsets = [&](unsigned argument) -> GroupOffsets {
    Value limit = arith::ExtUIOp::create(b, b.getI64Type(), kernel.size(ShapedType::kDynamic));
    return {kernel.pointer(argument), attention.batches(), /*step=*/1, limit, /*bytes=*/4,
            /*arePacked=*/true};
  };
  GroupTiles tiles{offsets(0), attention.tileTokens(), rowsOfTable - 1};
  tiles.hasRest = true;
  tiles.order = orderOf(attention);
  bool hasKeys = attention.hasPackedKeys();
  emitGroupTiles(b, tiles, kernel.pointer(1), kernel.pointer(hasKeys ? 4 : 2));
  if (!hasKeys)
    return kernel.finish();
  GroupOffsets ofKeys = offsets(2);
  Int32 number = kernel.cta() * GroupTiles::kThreads + kernel.thread();
  Int32 checker(b, GroupTiles::kThreads / 2 - 1); // of another warp than that for queries
  kernel.when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, checker),
              [&] { emitGroupCheck(b, ofKeys, kernel.pointer(3)); });
  return kernel.finish();
}

std::pair<Value, Value> fp4::makeAttentionTable(RewriterBase &rewriter, Attention &attention,
                                                PackedRows queries, PackedRows keys) {
  AttentionOp op = attention.op;
  Location loc = op.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Type i32 = rewriter.getI32Type();
  SmallVector<Type> types;
  SmallVector<Value> inputs, numbers;
  auto take = [&](const PackedRows &list, StringRef name) {
    if (!list.offsets)
      return;
    llvm::append_values(types, pipe::GlobalType::get({attention.batches() + 1}, i32),
                        groupReportType(op.getContext()));
    llvm::append_values(inputs, list.offsets, allocateReport(rewriter, op, name));
    numbers.push_back(memref::DimOp::create(rewriter, loc, list.rows, 0));
  };
  take(queries, "query_offsets");
  take(keys, "key_offsets");
  auto table = pipe::GlobalType::get({ShapedType::kDynamic, 4}, i32);
  types.push_back(table);
  types.append(1 + numbers.size(), i32);
  Value whole = arith::DivUIOp::create(rewriter, loc, numbers[0], index(attention.tileTokens()));
  Value places = arith::AddIOp::create(rewriter, loc, whole, index(attention.batches() + 1));
  Value rows = arith::AddIOp::create(rewriter, loc, places, index(1));
  gpu::GPUFuncOp kernel = buildTable(rewriter, attention, types);
  Value ctas = index(int64_t(llvm::divideCeil(attention.batches() + 1, GroupTiles::kThreads)));
  Value made = launchItems(rewriter, loc, kernel, inputs, ctas, {rows}, /*overlap=*/{}, numbers);
  return {pipe::ViewOp::create(rewriter, loc, table, made), places};
}
