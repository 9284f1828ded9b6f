//===- PrepackOps.cpp - Prepacked weights: verifiers and types ------------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-prepack.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// weight_layout
//===----------------------------------------------------------------------===//

/// "1, 3, ?"
static std::string printedShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os, [&](int64_t size) {
    ShapedType::isDynamic(size) ? os << '?' : os << size;
  });
  return text;
}

LogicalResult WeightLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                               function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // the parser asks even after it has reported that it found none
    return failure();
  if (!elementType.isInteger(8)) // weight_layout (C1)
    return withNote(emitError() << "weight layout " << *this
                                << " expects elements of type i8, but got " << elementType,
                    "fp4.prepack gives bytes of codes and scales in one tensor of i8");
  constexpr int64_t sizes[] = {hw::weightTileBytes(16), hw::weightTileBytes(32), hw::byteTileBytes};
  bool isTiles = shape.size() == 3 && !ShapedType::isDynamicShape(shape) &&
                 llvm::is_contained(sizes, shape[2]);
  if (isTiles && getValue() == WeightLayout::WgmmaRows && shape[2] != hw::byteTileBytes)
    return withNote(emitError() << "weight layout " << *this // weight_layout (C3)
                                << " expects tiles of " << hw::byteTileBytes << " bytes, but got "
                                << shape[2],
                    "only weights for activations of f8E4M3FN have powers of two of their rows; "
                    "others are #fp4.weight_layout<wgmma>");
  if (isTiles)
    return success();
  return withNote(emitError() << "weight layout " << *this // weight_layout (C2)
                              << " expects static dimensions, rows and columns of tiles of "
                              << hw::weightTileBytes(16) << ", " << hw::weightTileBytes(32)
                              << " or " << hw::byteTileBytes << " bytes, but got ["
                              << printedShape(shape) << "]",
                  "fp4.prepack gives such a tensor: N / 128 x K / 64 tiles, or K / 128 beside "
                  "activations of f8E4M3FN");
}

/// Tiles of `bytes` bytes of `data`.
static RankedTensorType tilesOf(RankedTensorType data, int64_t bytes,
                                WeightLayout layout = WeightLayout::Wgmma) {
  SmallVector<int64_t> shape = {data.getDimSize(0) / hw::weightTileRows,
                                data.getDimSize(1) / hw::weightColumnsOf(bytes), bytes};
  return RankedTensorType::get(shape, IntegerType::get(data.getContext(), 8),
                               WeightLayoutAttr::get(data.getContext(), layout));
}

RankedTensorType verify::prepackedType(RankedTensorType data, Format format) {
  return tilesOf(data, hw::weightTileBytes(blockSize(format)));
}

/// Tiles for activations of e4m3.
static bool isForBytes(RankedTensorType tiles) {
  return isa_and_present<WeightLayoutAttr>(tiles.getEncoding()) && tiles.getRank() == 3 &&
         tiles.getDimSize(2) == hw::byteTileBytes;
}

bool fp4::haveRowPowers(RankedTensorType tiles) {
  auto layout = dyn_cast_or_null<WeightLayoutAttr>(tiles.getEncoding());
  return layout && layout.getValue() == WeightLayout::WgmmaRows;
}

LogicalResult verify::verifyPrepacked(const Checked &weights, Format format) {
  bool fits = isa_and_present<WeightLayoutAttr>(weights.type.getEncoding()) &&
              hasPackedData(format) &&
              (isForBytes(weights.type)
                   ? numerics::isMX(blockFormat(format))
                   : weights.type.getDimSize(2) == hw::weightTileBytes(blockSize(format)));
  if (fits)
    return verifyExtents(weights);
  auto diag = weights.must("be prepacked weights of " + Twine(stringifyFormat(format)) +
                           ", or have scales");
  diag.attachNote() << "fp4.prepack makes a tensor of #fp4.weight_layout<wgmma> of weights and "
                       "scales";
  return diag;
}

/// matmul (C321): weights that are prepacked for a lhs of e4m3 without scales, which
/// takes no other prepacked weights.
static LogicalResult verifyBytes(BlockScaledMatmulOp op, const Checked &lhs) {
  bool isBytes = isa<Float8E4M3FNType>(lhs.type.getElementType());
  RankedTensorType rhs = rankedType(op.getRhs());
  if (isBytes == isForBytes(rhs) || (isBytes && !op.hasPrepackedRhs()))
    return success();
  if (isBytes) {
    auto diag = operand(op, "rhs", op.getRhs())
                    .must("be mxfp4 weights that are prepacked in tiles of 8704 bytes beside a lhs of "
                          "f8E4M3FN without scales");
    diag.attachNote() << "fp4.prepack gives tensor<N/128 x K/128 x 8704 x i8, "
                         "#fp4.weight_layout<"
                      << (op.accumulatesFast() ? "wgmma_rows" : "wgmma")
                      << ">>, or make lhs fp4.scaled of mxfp8_e4m3";
    return diag;
  }
  auto diag = lhs.must("have elements of type f8E4M3FN beside weights in tiles of 8704 bytes");
  diag.attachNote() << "fp4.prepack gives mxfp4 weights in tiles of 4352 bytes for bf16";
  return diag;
}

/// matmul (C606): sums stay in the accumulator of the tensor core.
LogicalResult verify::verifyFastAccumulation(BlockScaledMatmulOp op) {
  if (!op.accumulatesFast())
    return success();
  RankedTensorType rhs = rankedType(op.getRhs());
  if (haveRowPowers(rhs))
    return success();
  auto diag = operand(op, "rhs", op.getRhs())
                  .must("have the layout #fp4.weight_layout<wgmma_rows> for arithmetic "
                        "fast_accumulation");
  diag.attachNote()
      << "give the result of fp4.prepack this layout, so that rows of weights have one "
         "power of two";
  return diag;
}

/// matmul (C17): the elements of a lhs without scales.
LogicalResult verify::verifyUnscaled(BlockScaledMatmulOp op, const Checked &lhs) {
  if (failed(verifyBytes(op, lhs)))
    return failure();
  Type element = lhs.type.getElementType();
  if (op.getLhsScales() || isa<Float8E4M3FNType>(element))
    return success();
  if (!element.isBF16() && !element.isF16()) {
    auto diag = lhs.must("have elements of type bf16, f16 or f8E4M3FN where it has no scales");
    diag.attachNote()
        << "convert lhs to bf16, or quantize it and pass fp4.scaled of its data and scales";
    return diag;
  }
  if (element.isBF16() || !numerics::isMX(blockFormat(op.getFormat())))
    return success();
  auto diag = lhs.must("have elements of type bf16 beside a rhs of " +
                       Twine(stringifyFormat(op.getFormat())));
  diag.attachNote() << "f16 does not have the exponents of f8E8M0FNU scales: convert lhs to bf16";
  return diag;
}

/// matmul (C1): data of both sides, and (C18), prepacked weights.
LogicalResult verify::verifyData(BlockScaledMatmulOp op, const Checked &lhs, const Checked &rhs) {
  if (failed(verifyMatrix(lhs, /*takesColumns=*/true)))
    return failure();
  if (op.hasPrepackedRhs())
    return verifyPrepacked(rhs, op.getFormat()); // matmul (C18)
  return verifyMatrix(rhs, /*takesColumns=*/true);
}

//===----------------------------------------------------------------------===//
// prepack, unprepack
//===----------------------------------------------------------------------===//

/// Tiles are whole: 128 rows, and 64 columns.
static bool hasWholeTiles(RankedTensorType data) {
  return data.getRank() == 2 && data.hasStaticShape() &&
         data.getDimSize(0) % hw::weightTileRows == 0 &&
         data.getDimSize(1) % hw::weightTileColumns == 0;
}

LogicalResult PrepackOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType data = rankedType(adaptor.getData());
  bool legal = hasWholeTiles(data) && hasPackedData(adaptor.getFormat());
  types.push_back(legal ? prepackedType(data, adaptor.getFormat()) : data);
  return success();
}

bool PrepackOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult PrepackOp::verify() {
  Checked data = operand(*this, "data", getData()), scales = operand(*this, "scales", getScales());
  if (failed(verifyDataElements(data, Format::MXFP4)) || failed(verifyMatrix(data)))
    return failure(); // prepack (C1)
  if (!hasPackedData(getFormat())) // prepack (C2)
    return withNote(emitOpError("attribute 'format' must have elements of 4 bits, but got ")
                        << stringifyFormat(getFormat()),
                    "other weights stay as fp4.quantize gives them");
  Checked packed = result(*this, "result", getResult());
  bool isBytes = isForBytes(packed.type);
  if (isBytes && failed(verifyMultiple(data, 1, hw::byteTileColumns, // prepack (C322)
                                       "tiles for activations of e4m3 have 128 columns; pad the weights "
                                       "with zeros before they are quantized")))
    return failure();
  if (isBytes && !numerics::isMX(blockFormat(getFormat()))) // prepack (C322)
    return withNote(
        emitOpError("attribute 'format' must be mxfp4 for tiles of 8704 bytes, but got ")
            << stringifyFormat(getFormat()),
        "weights of nvfp4 have tiles of 4608 bytes");
  if (!hasWholeTiles(data.type)) { // prepack (C3)
    auto diag = data.must("have a multiple of 128 rows and of 64 columns");
    diag.attachNote() << "pad the weights with zeros before they are quantized";
    return diag;
  }
  if (failed(verifyRowMajor(scales)) || // prepack (C4)
      failed(verifyType(scales, scalesOf(data.type, getFormat()),
                        "'format' says their type and how many there are")))
    return failure();
  WeightLayout layout = haveRowPowers(packed.type) ? WeightLayout::WgmmaRows : WeightLayout::Wgmma;
  return verifyType(packed, // prepack (C5)
                    isBytes ? tilesOf(data.type, hw::byteTileBytes, layout)
                            : prepackedType(data.type, getFormat()),
                    isBytes ? "a tile for e4m3 has 128 rows and 128 columns of weights"
                            : "a tile for 16-bit floats has 128 rows and 64 columns of weights");
}

/// The row-major data that `packed` are tiles of; no rows where it is no such tensor.
static RankedTensorType dataOf(RankedTensorType packed) {
  SmallVector<int64_t> shape = {0, 0};
  bool overflows = packed.getRank() != 3 || !packed.hasStaticShape() ||
                   llvm::MulOverflow(packed.getDimSize(0), hw::weightTileRows, shape[0]) ||
                   llvm::MulOverflow(packed.getDimSize(1),
                                     hw::weightColumnsOf(packed.getDimSize(2)), shape[1]);
  if (overflows)
    shape = {0, 0};
  return RankedTensorType::get(shape, Float4E2M1FNType::get(packed.getContext()));
}

LogicalResult UnprepackOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType data = dataOf(rankedType(adaptor.getInput()));
  types.assign({data, scalesOf(data, adaptor.getFormat())});
  return success();
}

bool UnprepackOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult UnprepackOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyPrepacked(input, getFormat()))) // unprepack (C1)
    return failure();
  RankedTensorType data = dataOf(input.type);
  if (failed(verifyType(result(*this, "data", getData()), data))) // unprepack (C2)
    return failure();
  return verifyType(result(*this, "scales", getScales()), // unprepack (C3)
                    scalesOf(data, getFormat()));
}
