//===- RowStrip.cpp - Rows that a CTA takes one after the other -----------===//
#include "Rows/RowStrip.h"

#include "Reduce/GridMax.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kTile = hw::scaleBlockRows, kStrips = kTile / RowStrip::kRows;

static_assert(hw::scaleUnitRowStep == kStrips);

RowStrip::RowStrip(KernelBuilder &kernel, bool hasTiledScales)
    : b(kernel.body()), step(hasTiledScales ? kStrips : 1) {
  Int32 cta(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  first = hasTiledScales ? cta / kStrips * kTile + cta % kStrips : cta * kRows;
}

Value RowStrip::ctas(ImplicitLocOpBuilder &host, Value rows) {
  Value tiles = arith::CeilDivUIOp::create(host, rows, constIndex(host, kTile));
  return arith::MulIOp::create(host, tiles, constIndex(host, kStrips));
}

void RowStrip::begin(ValueRange carried) {
  loop = scf::ForOp::create(b, constI32(b, 0), constI32(b, kRows), constI32(b, 1), carried,
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

void StripScales::store(Value base, const RowStrip &strip) {
  auto type = VectorType::get(kUnit / kWord, b.getI32Type());
  Int32 row = strip.firstRow();
  NVVM::Barrier0Op::create(b);
  forEachTile([&](Int32 tile) {
    Value unit = LLVM::LoadOp::create(b, type, unitOf(tile), /*alignment=*/kUnit);
    Int32 number = hw::scaleBlockIndex(row / kTile, tile, tiles);
    Value to = address(b, base, number, hw::scaleBlockBytes);
    fp4::store(b, unit, address(b, to, hw::scaleWordInBlock(row), 1), kUnit);
  });
}
