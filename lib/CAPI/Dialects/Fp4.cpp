//===- Fp4.cpp - Attributes of the fp4 dialect in fp4-c/Dialects.h ---------===//

#include "fp4-c/Dialects.h"

#include "Words.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

using namespace mlir;
using namespace fp4;

#define FP4_DEFINE_CAPI_IS_A(Name)                                                                 \
  bool fp4AttributeIsA##Name(MlirAttribute attribute) {                                            \
    return isa<Name##Attr>(unwrap(attribute));                                                     \
  }                                                                                                \
  MlirTypeID fp4##Name##AttrGetTypeID(void) { return wrap(Name##Attr::getTypeID()); }

#define FP4_DEFINE_CAPI_ENUM_ATTR(Name)                                                            \
  FP4_DEFINE_CAPI_IS_A(Name)                                                                       \
  MlirAttribute fp4##Name##AttrGet(MlirContext context, MlirStringRef word) {                      \
    std::optional<Name> value = symbolize##Name(unwrap(word));                                     \
    return value ? wrap(Name##Attr::get(unwrap(context), *value)) : wrap(Attribute());             \
  }                                                                                                \
  MlirStringRef fp4##Name##AttrGetValue(MlirAttribute attribute) {                                 \
    return wrap(stringify##Name(cast<Name##Attr>(unwrap(attribute)).getValue()));                  \
  }

FP4_DEFINE_CAPI_ENUM_ATTR(Format)
FP4_DEFINE_CAPI_ENUM_ATTR(ScaleLayout)
FP4_DEFINE_CAPI_ENUM_ATTR(Rounding)
FP4_DEFINE_CAPI_ENUM_ATTR(Outputs)
FP4_DEFINE_CAPI_ENUM_ATTR(NanPolicy)
FP4_DEFINE_CAPI_ENUM_ATTR(HadamardArithmetic)
FP4_DEFINE_CAPI_ENUM_ATTR(Philox)
FP4_DEFINE_CAPI_IS_A(Recipe)
FP4_DEFINE_CAPI_IS_A(Epilogue)
FP4_DEFINE_CAPI_IS_A(Hadamard)
FP4_DEFINE_CAPI_IS_A(Target)
FP4_DEFINE_CAPI_IS_A(Plan)
FP4_DEFINE_CAPI_IS_A(Case)
FP4_DEFINE_CAPI_IS_A(Work)

/// Emits `error` at `location`; null.
static MlirAttribute report(MlirLocation location, const Error &error) {
  InFlightDiagnostic diagnostic = emitError(unwrap(location), error.message);
  if (!error.note.empty())
    diagnostic.attachNote() << error.note;
  return wrap(Attribute());
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

static Format formatOf(MlirAttribute format) { return cast<FormatAttr>(unwrap(format)).getValue(); }

MlirType fp4FormatAttrGetDataType(MlirAttribute format) {
  return wrap(dataType(unwrap(format).getContext(), formatOf(format)));
}

MlirType fp4FormatAttrGetScaleType(MlirAttribute format) {
  return wrap(scaleType(unwrap(format).getContext(), formatOf(format)));
}

int64_t fp4FormatAttrGetBlockSize(MlirAttribute format) { return blockSize(formatOf(format)); }

MlirAttribute fp4FormatAttrGetDefaultRecipe(MlirAttribute format) {
  return wrap(RecipeAttr::get(unwrap(format).getContext(), defaultRecipe(formatOf(format))));
}

//===----------------------------------------------------------------------===//
// Recipes, epilogues, transforms, targets
//===----------------------------------------------------------------------===//

MlirAttribute fp4RecipeAttrGetChecked(MlirLocation location, MlirStringRef text) {
  auto recipe = numerics::parseRecipe(unwrap(text));
  if (!recipe)
    return report(location, recipe.error());
  return wrap(RecipeAttr::get(unwrap(location).getContext(), *recipe));
}

void fp4RecipeAttrGetText(MlirAttribute recipe, MlirStringCallback callback, void *userData) {
  const std::string text = cast<RecipeAttr>(unwrap(recipe)).getText();
  callback(mlirStringRefCreate(text.data(), text.size()), userData);
}

MlirAttribute fp4EpilogueAttrGetChecked(MlirLocation location, intptr_t numSteps,
                                        const MlirStringRef *steps) {
  SmallVector<numerics::EpilogueOp> ops;
  for (intptr_t i = 0; i < numSteps; ++i) {
    auto op = numerics::parseEpilogueOp(unwrap(steps[i]));
    if (!op)
      return report(location, op.error());
    ops.push_back(*op);
  }
  return wrap(EpilogueAttr::get(unwrap(location).getContext(), ops));
}

intptr_t fp4EpilogueAttrGetNumSteps(MlirAttribute epilogue) {
  return cast<EpilogueAttr>(unwrap(epilogue)).getSteps().size();
}

MlirStringRef fp4EpilogueAttrGetStep(MlirAttribute epilogue, intptr_t position) {
  auto name = numerics::stringify(cast<EpilogueAttr>(unwrap(epilogue)).getSteps()[position]);
  return mlirStringRefCreate(name.data(), name.size());
}

MlirAttribute fp4HadamardAttrGetChecked(MlirLocation location, int64_t size, uint64_t signMask,
                                        MlirStringRef arithmetic, bool roundToBF16) {
  auto value = capi::findWord<HadamardArithmetic>(location, "arithmetic", arithmetic,
                                                  symbolizeEnum<HadamardArithmetic>);
  if (!value)
    return wrap(Attribute());
  return wrap(HadamardAttr::getChecked(unwrap(location), unwrap(location).getContext(), size,
                                       signMask, *value, roundToBF16));
}

static HadamardAttr hadamardOf(MlirAttribute attribute) {
  return cast<HadamardAttr>(unwrap(attribute));
}

int64_t fp4HadamardAttrGetSize(MlirAttribute hadamard) { return hadamardOf(hadamard).getSize(); }

uint64_t fp4HadamardAttrGetSignMask(MlirAttribute hadamard) {
  return hadamardOf(hadamard).getSignMask();
}

MlirStringRef fp4HadamardAttrGetArithmetic(MlirAttribute hadamard) {
  return wrap(stringifyHadamardArithmetic(hadamardOf(hadamard).getArithmetic()));
}

bool fp4HadamardAttrGetRoundToBF16(MlirAttribute hadamard) {
  return hadamardOf(hadamard).getRoundToBF16();
}

MlirAttribute fp4TargetAttrGetChecked(MlirLocation location, MlirStringRef name, int64_t sms) {
  return wrap(TargetAttr::getChecked(unwrap(location), unwrap(location).getContext(), unwrap(name),
                                     sms,
                                     /*device=*/StringRef()));
}

MlirStringRef fp4TargetAttrGetName(MlirAttribute target) {
  return wrap(cast<TargetAttr>(unwrap(target)).getName());
}

int64_t fp4TargetAttrGetSms(MlirAttribute target) {
  return cast<TargetAttr>(unwrap(target)).getSms();
}

//===----------------------------------------------------------------------===//
// Block-scaled matrices
//===----------------------------------------------------------------------===//

void fp4ScaledTypesGet(MlirAttribute format, int64_t rows, int64_t columns, MlirAttribute layout,
                       MlirType *data, MlirType *scales) {
  MLIRContext *context = unwrap(format).getContext();
  const Format value = formatOf(format);
  const int64_t blocks = llvm::divideCeil(columns, blockSize(value));
  *data = wrap(RankedTensorType::get({rows, columns}, dataType(context, value)));
  *scales = wrap(RankedTensorType::get({rows, blocks}, scaleType(context, value), unwrap(layout)));
}

bool fp4TypeIsAScaled(MlirType type) { return isa<ScaledType>(unwrap(type)); }

MlirType fp4ScaledTypeGet(MlirAttribute format, MlirType data, MlirType scales) {
  return wrap(ScaledType::get(unwrap(format).getContext(), formatOf(format),
                              cast<RankedTensorType>(unwrap(data)),
                              cast<RankedTensorType>(unwrap(scales))));
}

MlirAttribute fp4ScaledTypeGetFormat(MlirType scaled) {
  auto type = cast<ScaledType>(unwrap(scaled));
  return wrap(FormatAttr::get(type.getContext(), type.getFormat()));
}

MlirType fp4ScaledTypeGetData(MlirType scaled) {
  return wrap(cast<ScaledType>(unwrap(scaled)).getData());
}

MlirType fp4ScaledTypeGetScales(MlirType scaled) {
  return wrap(cast<ScaledType>(unwrap(scaled)).getScales());
}

MlirTypeID fp4ScaledTypeGetTypeID(void) { return wrap(ScaledType::getTypeID()); }

MlirAttribute fp4ScaleLayoutOf(MlirType tensor) {
  return wrap(
      dyn_cast_or_null<ScaleLayoutAttr>(cast<RankedTensorType>(unwrap(tensor)).getEncoding()));
}

MlirType fp4WithScaleLayoutChecked(MlirLocation location, MlirType tensor, MlirAttribute layout) {
  auto type = cast<RankedTensorType>(unwrap(tensor));
  return wrap(RankedTensorType::getChecked(unwrap(location), type.getShape(), type.getElementType(),
                                           unwrap(layout)));
}
