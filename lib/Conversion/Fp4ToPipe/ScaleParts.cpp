//===- ScaleParts.cpp - Scales that come in parts of a k tile --------------===//
//
// If a k tile of K = 96 has 256 columns, its scales are loaded, copied and used in parts of twelve
// of a row (Gemm::scaleParts). The parts follow one another in the code, so that they become
// successive stages of a channel that has scales only:
//
//   a, b = load                         (of the k tile)
//   for each part
//     sa, sb = load                     (12 scales of each row)
//     ta, tb = copy_scales sa, sb
//     mma acc, a scaled ta, b scaled tb {part}
//
//===----------------------------------------------------------------------===//

#include "MatmulBuilder.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// To tensor memory; `blocks` of four columns exist, or all.
Value MatmulBuilder::copyScales(Value from, Value blocks) {
  auto tile = cast<SharedType>(from.getType());
  auto type =
      TmemType::get(tile.getShape(), tile.getElementType(), tile.getLayout(), gemm.tiling.pair);
  return CopyScalesOp::create(b, type, from, blocks, IntegerAttr(), IntegerAttr());
}

/// The scales of each part are loaded and copied when those of the part before are on their way.
void MatmulBuilder::multiplyParts(const Product &product, const Tile &tile, Value kBlock) {
  int64_t ofPart = Gemm::kScalesOfPart * gemm.problem.block / gemm.stepK();
  for (int64_t part = 0; part < gemm.scaleParts(); ++part) {
    Value block = b.add(kBlock, b.constant(part * gemm.scaleColumns() / kScaleBlockColumns));
    Value sa = loadScales(args.scalesA, tile.scaleRowA, tile.blockA, block, Value());
    Value sb = loadScales(args.scalesB, tile.scaleRowB, tile.blockB, block, Value());
    Value ta = copyScales(sa, Value()), tb = copyScales(sb, Value());
    Value more = part ? arith::ConstantIntOp::create(b, 1, 1).getResult() : product.accumulate;
    MmaOp::create(b, product.accumulator, product.a, ta, product.b, tb, tile.bScaleRow, more,
                  product.steps, gemm.problem.k96, b.getDenseI64ArrayAttr({part * ofPart, ofPart}));
  }
}
