//===- RowStrip.cpp - Rows that a CTA takes one after the other -----------===//
#include "Rows/RowStrip.h"

#include "Reduce/GridMax.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kTile = hw::scaleBlockRows;

/// Strips of `rows` (an index) fill the last one of up to three waves (i1), so that single rows,
/// which nobody loads ahead, end no sooner: an H200 takes 27.6 us in place of 28.5 for RMSNorm of
/// 4096 x 7168, 1.94 waves, to FP8 of rows, but 49.7 in place of 49.0 with 3.88 waves, and 36.0 in
/// place of 34.1 with 2.48.
static Value fillsWaves(ImplicitLocOpBuilder &b, Value rows, int64_t wave) {
  constexpr int64_t most = 3, part = 16;
  Value before = arith::AddIOp::create(b, rows, constIndex(b, wave - 1));
  Value last = arith::RemUIOp::create(b, before, constIndex(b, wave)); // row of its wave
  auto compare = [&](arith::CmpIPredicate predicate, Value number, int64_t bound) {
    return arith::CmpIOp::create(b, predicate, number, constIndex(b, bound));
  };
  return arith::AndIOp::create(b, compare(arith::CmpIPredicate::uge, last, wave - wave / part),
                               compare(arith::CmpIPredicate::ule, rows, most * wave));
}

RowStrip::RowStrip(KernelBuilder &kernel, bool hasTiledScales, Value hostRows)
    : b(kernel.body()), step(hasTiledScales ? hw::scaleUnitRowStep : 1) {
  ImplicitLocOpBuilder &host = kernel.host();
  int64_t ofCta = kernel.rowsOfStrip(), unit = hasTiledScales ? kTile : ofCta,
          ofUnit = unit / ofCta;
  Value units = arith::CeilDivUIOp::create(host, hostRows, constIndex(host, unit));
  Value singles = arith::MinUIOp::create(
      host, units, constIndex(host, llvm::divideCeil(kernel.singleRows(), unit)));
  if (std::optional<int64_t> wave = kernel.rowsOfWave(); wave && kernel.singleRows())
    singles = arith::SelectOp::create(host, fillsWaves(host, hostRows, *wave), constIndex(host, 0),
                                      singles);
  Value strips = arith::MulIOp::create(host, arith::SubIOp::create(host, units, singles),
                                       constIndex(host, ofUnit));
  numCtas = arith::AddIOp::create(host, strips,
                                  arith::MulIOp::create(host, singles, constIndex(host, unit)));
  Int32 cta(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  first = cta / ofUnit * unit + cta % ofUnit;
  numTurns = Int32(b, ofCta);
  if (!kernel.singleRows())
    return;
  Int32 ofStrips(b, kernel.scalar(strips));
  isStrip = cta < ofStrips;
  first = select(isStrip, *first, cta + ofStrips * (ofCta - 1));
  numTurns = select(isStrip, *numTurns, Int32(b, 1));
}

void RowStrip::begin(ValueRange carried) {
  loop = scf::ForOp::create(b, constI32(b, 0), turns(), constI32(b, 1), carried,
                            /*bodyBuilder=*/nullptr, /*unsignedCmp=*/true);
  b.setInsertionPointToStart(loop.getBody());
}

void RowStrip::close(ValueRange carried) {
  if (!carried.empty())
    scf::YieldOp::create(b, carried);
  b.setInsertionPointAfter(loop);
}

StripScales::StripScales(KernelBuilder &kernel, int64_t tiles)
    : kernel(kernel), b(kernel.body()), tiles(tiles),
      shared(kernel.sharedWords(tiles * kUnit / kWord, "scales")) {}

void StripScales::leave(Value scale, Int32 turn, Int32 block) {
  Value unit = unitOf(block / kWord);
  fp4::store(b, scale, address(b, unit, turn * kWord + block % kWord, 1), 1);
}

void StripScales::forEachTile(llvm::function_ref<void(Int32)> body) {
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  for (int64_t first = 0; first < tiles; first += kernel.numThreads()) {
    Int32 tile = thread + first;
    if (first + kernel.numThreads() <= tiles)
      body(tile);
    else
      emitWhen(b, tile < tiles, [&] { body(tile); });
  }
}

/// Stores the scales of all rows, or of the first alone.
void StripScales::storeUnit(Value unit, Value to, Value hasAll) {
  if (!hasAll)
    return fp4::store(b, unit, to, kUnit);
  auto branch = scf::IfOp::create(b, hasAll, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  fp4::store(b, unit, to, kUnit);
  b.setInsertionPointToStart(branch.elseBlock());
  fp4::store(b, vector::ExtractOp::create(b, unit, 0), to, kWord);
}

void StripScales::store(Value base, const RowStrip &strip) {
  auto type = VectorType::get(kUnit / kWord, b.getI32Type());
  Int32 row = strip.firstRow();
  NVVM::Barrier0Op::create(b);
  forEachTile([&](Int32 tile) {
    Value unit = LLVM::LoadOp::create(b, type, unitOf(tile), /*alignment=*/kUnit);
    Int32 number = hw::scaleBlockIndex(row / kTile, tile, tiles);
    Value to = address(b, base, number, hw::scaleBlockBytes);
    storeUnit(unit, address(b, to, hw::scaleWordInBlock(row), 1), strip.hasAll());
  });
}
