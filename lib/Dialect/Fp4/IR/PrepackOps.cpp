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
  bool isTiles = shape.size() == 3 && llvm::is_contained(sizes, shape[2]);
  if (isTiles && getValue() == WeightLayout::WgmmaRows && shape[2] != hw::byteTileBytes)
    return withNote(emitError() << "weight layout " << *this // weight_layout (C3)
                                << " expects tiles of " << hw::byteTileBytes << " bytes, but got "
                                << shape[2],
                    "only weights for activations of f8E4M3FN have powers of two of their rows; "
                    "others are #fp4.weight_layout<wgmma>");
  if (isTiles)
    return success();
  return withNote(emitError() << "weight layout " << *this // weight_layout (C2)
                              << " expects rows and columns of tiles of " << hw::weightTileBytes(16)
                              << ", " << hw::weightTileBytes(32) << " or " << hw::byteTileBytes
                              << " bytes, but got [" << printedShape(shape) << "]",
                  "fp4.prepack gives such a tensor: N / 128 x K / 64 tiles, or K / 128 beside "
                  "activations of f8E4M3FN, of which each number may be dynamic");
}

/// Tiles of `bytes` bytes of `data`, of which each of `groups` matrices has rows of its own.
static RankedTensorType tilesOf(RankedTensorType data, int64_t groups, int64_t bytes,
                                WeightLayout layout = WeightLayout::Wgmma) {
  SmallVector<int64_t> shape = {groups * hw::weightTilesOfRows(data.getDimSize(0) / groups),
                                hw::weightTilesOfColumns(data.getDimSize(1), bytes), bytes};
  return RankedTensorType::get(shape, IntegerType::get(data.getContext(), 8),
                               WeightLayoutAttr::get(data.getContext(), layout));
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
  if (element.isBF16() || hasPackedData(op.getFormat()))
    return success();
  auto diag = lhs.must("have elements of type bf16 beside a rhs of " +
                       Twine(stringifyFormat(op.getFormat())));
  diag.attachNote() << "only weights of 4 bits become f16: convert lhs to bf16";
  return diag;
}

/// `size` ends within the last of `tiles` tiles of `unit`. A dynamic size has as many as the
/// program finds.
static bool endsInLastTile(int64_t size, int64_t tiles, int64_t unit) {
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(tiles))
    return size == tiles;
  return hw::quotientUp(size, unit) == tiles;
}

/// "65 to 128": the sizes that end there.
static std::string sizesOfTiles(int64_t tiles, int64_t unit) {
  if (ShapedType::isDynamic(tiles))
    return "dynamic";
  return (Twine((tiles - 1) * unit + 1) + " to " + Twine(tiles * unit)).str();
}

LogicalResult verify::verifyPackedDepth(const Checked &lhs, const Checked &rhs) {
  int64_t columns = hw::weightColumnsOf(rhs.type.getDimSize(2)), tiles = rhs.type.getDimSize(1);
  if (endsInLastTile(lhs.type.getDimSize(1), tiles, columns))
    return success();
  auto diag = lhs.must("have " + Twine(sizesOfTiles(tiles, columns)) +
                       " columns, which end in the last tiles of 'rhs'"); // matmul (C2)
  diag.attachNote() << "both are contracted along dimension 1: lhs is M x K, and fp4.prepack makes "
                       "ceil(K/"
                    << columns << ") tiles of a row";
  return diag;
}

LogicalResult verify::verifyPackedColumns(BlockScaledMatmulOp op, const Checked &output,
                                          const Checked &rhs) {
  int64_t tiles = rhs.type.getDimSize(0);
  if (!ShapedType::isDynamic(tiles))
    tiles /= op.getNumGroups();
  if (endsInLastTile(op.getColumns(), tiles, hw::weightTileRows))
    return success();
  auto diag = output.must("have " + Twine(sizesOfTiles(tiles, hw::weightTileRows)) +
                          " columns, which end in the last tiles of 'rhs'"); // matmul (C10)
  diag.attachNote() << "result is M x N, and fp4.prepack makes ceil(N/128) rows of tiles of N x K "
                       "weights, or of those of each group";
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

/// `data` has rows and columns, equally many rows for each of `groups`.
static bool hasGroups(RankedTensorType data, int64_t groups) {
  return data.getRank() == 2 && data.hasStaticShape() && groups >= 1 &&
         data.getDimSize(0) % groups == 0;
}

/// prepack (C3), unprepack (C2): static rows, equally many for each of `groups`.
static LogicalResult verifyGroupsOf(const Checked &data, int64_t groups) {
  if (hasGroups(data.type, groups))
    return success();
  auto diag = data.must("be a static matrix with equally many rows for each of " + Twine(groups) +
                        " groups");
  diag.attachNote() << "'groups' is the number of matrices that are stacked along dimension 0; "
                       "pad those that are smaller with zeros";
  return diag;
}

LogicalResult PrepackOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType data = rankedType(adaptor.getData());
  int64_t groups = adaptor.getGroups().value_or(1);
  bool legal = hasGroups(data, groups) && hasPackedData(adaptor.getFormat());
  types.push_back(legal ? tilesOf(data, groups, hw::weightTileBytes(blockSize(adaptor.getFormat())))
                        : data);
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
  if (isBytes && !numerics::isMX(blockFormat(getFormat()))) // prepack (C322)
    return withNote(
        emitOpError("attribute 'format' must be mxfp4 for tiles of 8704 bytes, but got ")
            << stringifyFormat(getFormat()),
        "weights of nvfp4 have tiles of 4608 bytes");
  int64_t groups = getGroups().value_or(1);
  if (failed(verifyGroupsOf(data, groups)) || // prepack (C3)
      failed(verifyBlockMultiple(data, 1, getFormat())))
    return failure();
  if (failed(verifyRowMajor(scales)) || // prepack (C4)
      failed(verifyType(scales, scalesOf(data.type, getFormat()),
                        "'format' says their type and how many there are")))
    return failure();
  WeightLayout layout = haveRowPowers(packed.type) ? WeightLayout::WgmmaRows : WeightLayout::Wgmma;
  int64_t bytes = isBytes ? hw::byteTileBytes : hw::weightTileBytes(blockSize(getFormat()));
  return verifyType(packed, // prepack (C5)
                    tilesOf(data.type, groups, bytes, isBytes ? layout : WeightLayout::Wgmma),
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
  Checked data = result(*this, "data", getData());
  int64_t groups = getGroups().value_or(1);
  auto rowMajor = RankedTensorType::get(data.type.getShape(), data.type.getElementType());
  if (failed(verifyDataElements(data, Format::MXFP4)) || failed(verifyType(data, rowMajor)) ||
      failed(verifyGroupsOf(data, groups)) || // unprepack (C2)
      failed(verifyBlockMultiple(data, 1, getFormat())))
    return failure();
  RankedTensorType tiles = tilesOf(data.type, groups, input.type.getDimSize(2));
  if (tiles.getShape() != input.type.getShape()) { // unprepack (C2)
    auto diag = data.must("end within the last of the " + Twine(input.type.getDimSize(0)) + " x " +
                          Twine(input.type.getDimSize(1)) + " tiles of 'input'");
    diag.attachNote() << "fp4.prepack makes " << tiles.getDimSize(0) << " x " << tiles.getDimSize(1)
                      << " tiles of such data";
    return diag;
  }
  return verifyType(result(*this, "scales", getScales()), // unprepack (C3)
                    scalesOf(data.type, getFormat()));
}
