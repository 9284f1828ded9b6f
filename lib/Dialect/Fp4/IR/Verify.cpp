//===- Verify.cpp - Common checks of the fp4 dialect ----------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

InFlightDiagnostic Checked::must(const Twine &condition) const {
  return op->emitOpError() << what << " must " << condition << ", but got " << type;
}

Checked verify::operand(Operation *op, StringRef name, Value value) {
  return {op, ("operand '" + name + "'").str(), cast<RankedTensorType>(value.getType())};
}

Checked verify::result(Operation *op, StringRef name, Value value) {
  return {op, ("result '" + name + "'").str(), cast<RankedTensorType>(value.getType())};
}

/// The word that took the place of a former attribute of a matmul; empty where there is none.
static std::string formerAttributeNote(Operation *op, StringRef name) {
  if (!isa<BlockScaledMatmulOp>(op))
    return {};
  if (name == "format" || name == "rhs_format")
    return "the operand names its format: %a = fp4.scaled %data, %scales : !fp4.scaled<nvfp4, ..>";
  if (name == "quantize_recipe" || name == "quantize_outputs")
    return "the epilogue region quantizes: fp4.epilogue_quantize %x {recipe = ..}";
  if (name == "with_amax")
    return "the epilogue region gives the amax: fp4.epilogue_amax %x : bf16 -> f32";
  if (name == "split_rows")
    return "cases of 'dispatch' have factors by rows: #fp4.case<m = [1, 64], split_k = 2 : ..>";
  constexpr StringLiteral members[] = {"split_k", "stream_k", "groups", "expected_rows",
                                       "unspecified_rows"};
  if (!llvm::is_contained(members, name))
    return {};
  bool isFlag = name == "unspecified_rows";
  return ("the attribute 'work' has it: work = #fp4.work<" + name + (isFlag ? ">" : " = ..>"))
      .str();
}

LogicalResult fp4::verifyKnownAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    if (attribute.getName().getValue().contains('.'))
      continue;
    // operation (C1)
    InFlightDiagnostic diag = op->emitOpError() << "has the unknown attribute '"
                                                << attribute.getName().getValue() << "'";
    if (std::string note = formerAttributeNote(op, attribute.getName()); !note.empty()) {
      diag.attachNote() << note;
      return diag;
    }
    auto known = op->getRegisteredInfo()->getAttributeNames();
    diag.attachNote() << (known.empty() ? "it has none" : "known are ")
                      << llvm::join(llvm::map_range(
                                        known, [](StringAttr name) { return name.getValue(); }),
                                    ", ");
    return diag;
  }
  return success();
}

static std::string printed(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Extents whose sums and products with the sizes of tiles 64 bits can hold.
static constexpr int64_t kMaxExtent = int64_t(1) << 40;

LogicalResult verify::verifyExtents(const Checked &value) {
  auto exceeds = [](int64_t extent) { return extent > kMaxExtent; };
  if (!llvm::any_of(value.type.getShape(), exceeds))
    return success();
  return withNote(value.must( // operation (C200)
                      "have extents of at most " + Twine(kMaxExtent)),
                  "cut the matrix into several");
}

LogicalResult verify::verifyMatrix(const Checked &value, bool takesColumns) {
  if (failed(verifyExtents(value)))
    return failure();
  if (value.type.getRank() != 2) {
    auto diag = value.must("have 2 dimensions");
    if (value.type.getRank() > 2)
      diag.attachNote() << "tensor.collapse_shape makes a matrix of a batch, and "
                           "tensor.extract_slice takes one out of several; neither moves data";
    return diag;
  }
  if (Attribute encoding = value.type.getEncoding(); encoding && !isa<ScaleLayoutAttr>(encoding))
    return withNote(value.must("have no encoding but #fp4.scale_layout"),
                    "fp4 reads matrices in MLIR's own order: remove the encoding");
  if (takesColumns || !value.type.isDynamicDim(1))
    return success();
  auto diag = value.must("have a static number of columns");
  diag.attachNote() << "only the rows, dimension 0, may be dynamic";
  return diag;
}

LogicalResult verify::verifyRealElements(const Checked &value, StringRef known) {
  Type element = value.type.getElementType();
  if (element.isBF16() || element.isF16() || element.isF32())
    return success();
  return withNote(value.must("have elements of type " + known),
                  "convert the tensor to one of these types first");
}

LogicalResult verify::verifyDataElements(const Checked &value, Format format) {
  Type expected = dataType(value.type.getContext(), format);
  if (value.type.getElementType() == expected)
    return success();
  std::string name;
  llvm::raw_string_ostream(name) << expected;
  return withNote(value.must("have elements of type " + Twine(name)),
                  Twine("the element type is that of format ") + stringifyFormat(format));
}

LogicalResult verify::verifyScaleElements(const Checked &value, Format format) {
  Type expected = scaleType(value.type.getContext(), format);
  if (value.type.getElementType() == expected)
    return success();
  std::string name;
  llvm::raw_string_ostream(name) << expected;
  auto diag = value.must("have elements of type " + Twine(name));
  diag.attachNote() << "the scale type is that of format " << stringifyFormat(format);
  return diag;
}

LogicalResult verify::verifyScalar(const Checked &value) {
  if (value.type.getRank() == 0 && value.type.getElementType().isF32() && !value.type.getEncoding())
    return success();
  auto diag = value.must("be a tensor<f32>");
  diag.attachNote()
      << "a scalar operand is one number in device memory, not a vector and not a constant";
  return diag;
}

LogicalResult verify::verifyType(const Checked &value, RankedTensorType expected, StringRef note) {
  if (value.type == expected)
    return success();
  auto diag = value.must("be '" + Twine(printed(expected)) + "'");
  if (!note.empty())
    diag.attachNote() << note;
  return diag;
}

LogicalResult verify::verifyMultiple(const Checked &value, int64_t dimension, int64_t multiple,
                                     const Twine &why) {
  int64_t extent = value.type.getDimSize(dimension);
  if (!ShapedType::isDynamic(extent) && extent % multiple == 0)
    return success();
  std::string found = ShapedType::isDynamic(extent) ? "?" : std::to_string(extent);
  auto diag = value.op->emitOpError()
              << value.what << " must have a dimension " << dimension << " that is a multiple of "
              << multiple << ", but got " << found;
  diag.attachNote() << why;
  return diag;
}

LogicalResult verify::verifyBlockMultiple(const Checked &value, int64_t dimension, Format format) {
  return verifyMultiple(value, dimension, blockSize(format),
                        Twine("a block of format ") + stringifyFormat(format) + " has " +
                            Twine(blockSize(format)) +
                            " elements of the contraction axis; pad that axis with zeros");
}

LogicalResult verify::verifyBlockAxis(const Checked &value, int64_t dimension, Format format) {
  if (!numerics::isMX(blockFormat(format)) || value.type.isDynamicDim(dimension))
    return success();
  return verifyBlockMultiple(value, dimension, format);
}

LogicalResult verify::verifyRowMajor(const Checked &scales) {
  if (!scaleLayout(scales.type))
    return success();
  auto diag = scales.must("be row-major");
  diag.attachNote() << "insert fp4.unswizzle_scales";
  return diag;
}

LogicalResult verify::verifyTiled(const Checked &scales) {
  if (scaleLayout(scales.type) == ScaleLayout::Tiled128x4)
    return success();
  auto diag = scales.must("have layout #fp4.scale_layout<tiled_128x4>");
  diag.attachNote() << "insert fp4.swizzle_scales";
  return diag;
}

LogicalResult verify::verifyGroups(const Checked &input, std::optional<ArrayRef<int64_t>> groups,
                                   int64_t multiple, const Twine &why) {
  if (!groups)
    return success();
  auto must = [&](const Twine &condition) {
    return input.op->emitOpError("attribute 'groups' must ")
           << condition << ", but got [" << *groups << "]";
  };
  if (groups->empty() || llvm::any_of(*groups, [](int64_t rows) { return rows < 0; })) {
    auto diag = must("be at least one number of rows, none negative");
    diag.attachNote() << "a group without rows has the number 0";
    return diag;
  }
  // Each is at most the whole, so that the sum of a program's few groups does not overflow.
  auto exceeds = [&](int64_t rows) { return rows > input.type.getDimSize(0); };
  if (input.type.isDynamicDim(0) || llvm::any_of(*groups, exceeds) ||
      llvm::sum_of(*groups) != input.type.getDimSize(0)) {
    auto diag = must("add up to the rows of " + input.what);
    diag.attachNote() << input.what << " is " << input.type
                      << "; the operand holds the groups one after the other";
    return diag;
  }
  if (llvm::all_of(*groups, [&](int64_t rows) { return rows % multiple == 0; }))
    return success();
  auto diag = must("be multiples of " + Twine(multiple));
  diag.attachNote() << why << "; pad the groups with zeros";
  return diag;
}

LogicalResult verify::verifyColumnsBeside(const Checked &input, StringRef need) {
  if (need.empty() || input.type.getRank() != 2 || !input.type.isDynamicDim(1))
    return success();
  auto diag = input.must("have a static number of columns beside " + need);
  diag.attachNote() << "give the columns a static size, and compile a function for each; the rows "
                       "may be dynamic";
  return diag;
}

static int64_t dimOr(RankedTensorType type, unsigned dimension) {
  return dimension < type.getRank() ? type.getDimSize(dimension) : ShapedType::kDynamic;
}

RankedTensorType verify::amaxType(MLIRContext *context, std::optional<int64_t> groups) {
  SmallVector<int64_t> shape;
  if (groups)
    shape.push_back(*groups);
  return RankedTensorType::get(shape, Float32Type::get(context));
}

LogicalResult verify::verifyAmaxType(const Checked &value, std::optional<int64_t> groups) {
  return groups ? verifyType(value, amaxType(value.type.getContext(), groups))
                : verifyScalar(value);
}

RankedTensorType verify::lineAmaxType(RankedTensorType matrix, unsigned dimension) {
  return RankedTensorType::get({dimOr(matrix, dimension)}, Float32Type::get(matrix.getContext()));
}

RankedTensorType verify::rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

RankedTensorType verify::scalesOf(RankedTensorType data, Format format) {
  int64_t columns = dimOr(data, 1);
  int64_t blocks = ShapedType::isDynamic(columns)
                       ? columns
                       : static_cast<int64_t>(llvm::divideCeil(columns, blockSize(format)));
  return RankedTensorType::get({dimOr(data, 0), blocks}, scaleType(data.getContext(), format));
}
