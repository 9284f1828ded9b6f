//===- Rasters.h - Common part of the schedules ---------------------------===//
//
// Numbers of tiles, and the number that a CTA begins with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Schedules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fp4::pipe {

/// Arithmetic on i32 in `%x = op %a, %b` form.
struct I32Builder {
  mlir::OpBuilder &b;
  mlir::Location loc;

  using Value = mlir::Value;
  Value constant(int64_t value) { return mlir::arith::ConstantIntOp::create(b, loc, value, 32); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivUIOp::create(b, loc, x, y); }
  Value rem(Value x, Value y) { return mlir::arith::RemUIOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, loc, x, y); }
  Value min(Value x, Value y) { return mlir::arith::MinUIOp::create(b, loc, x, y); }
  Value highWord(Value x, Value y) {
    return mlir::arith::MulUIExtendedOp::create(b, loc, x, y).getHigh();
  }
  Value equal(Value x, Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value index(Value x) { return mlir::arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
};

struct TilePlace {
  mlir::Value m, n;
};

/// Parses and prints an order of tiles: a raster, and its width in angle brackets.
mlir::ParseResult parseTileOrder(mlir::AsmParser &parser, Raster &raster, int64_t &width);
void printTileOrder(mlir::AsmPrinter &printer, Raster raster, int64_t width);

/// Checks that an order has a width where its raster has one.
mlir::LogicalResult verifyOrder(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                TileOrder order);

/// Tile number `t` of the grid of `work`.
TilePlace tileOf(I32Builder i32, TileOrder order, mlir::Value t, ForEachWorkOp work);

/// The number of the worker whose first CTA has index `block` along x: CTAs, or clusters of them,
/// which a grid has side by side along x.
mlir::Value workerOf(I32Builder i32, mlir::Value block, hw::ClusterShape cluster);

/// Number of tiles of `work`, and the number that this worker begins with.
struct WorkNumbers {
  hw::ClusterShape cluster;
  mlir::Value total, first;
};
WorkNumbers numbersOf(I32Builder i32, ForEachWorkOp work);

/// Moves the body of `work` to the end of `block`, its arguments replaced; returns what it yields.
llvm::SmallVector<mlir::Value> moveBody(mlir::RewriterBase &rewriter, ForEachWorkOp work,
                                        mlir::Block *block, mlir::ValueRange arguments);

} // namespace fp4::pipe
