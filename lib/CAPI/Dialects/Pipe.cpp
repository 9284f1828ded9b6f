//===- Pipe.cpp - Types of the pipe dialect in fp4-c/Dialects.h ------------===//

#include "fp4-c/Dialects.h"

#include "Words.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4::pipe;

#define FP4_DEFINE_CAPI_PIPE_IS_A(Name)                                                            \
  bool fp4TypeIsAPipe##Name(MlirType type) { return isa<Name##Type>(unwrap(type)); }

FP4_DEFINE_CAPI_PIPE_IS_A(Global)
FP4_DEFINE_CAPI_PIPE_IS_A(TensorMap)
FP4_DEFINE_CAPI_PIPE_IS_A(Shared)
FP4_DEFINE_CAPI_PIPE_IS_A(Tmem)
FP4_DEFINE_CAPI_PIPE_IS_A(Fragment)
FP4_DEFINE_CAPI_PIPE_IS_A(Channel)

/// The type with this shape and what `word` names among `Enum`.
template <typename PipeType, typename Enum, typename... Rest>
static MlirType getChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                           MlirType elementType, StringRef what, MlirStringRef word, Rest... rest) {
  std::optional<Enum> value = fp4::capi::findWord<Enum>(location, what, word, symbolizeEnum<Enum>);
  if (!value)
    return wrap(Type());
  return wrap(PipeType::getChecked(unwrap(location), unwrap(location).getContext(),
                                   ArrayRef<int64_t>(shape, rank), unwrap(elementType), *value,
                                   rest...));
}

MlirType fp4PipeGlobalTypeGetChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                                     MlirType elementType, MlirStringRef layout) {
  return getChecked<GlobalType, Layout>(location, rank, shape, elementType, "layout", layout);
}

MlirType fp4PipeTensorMapTypeGetChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                                        MlirType elementType, MlirStringRef layout, bool residue) {
  return getChecked<TensorMapType, Layout>(location, rank, shape, elementType, "layout", layout,
                                           residue);
}

MlirType fp4PipeSharedTypeGetChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                                     MlirType elementType, MlirStringRef layout) {
  return getChecked<SharedType, Layout>(location, rank, shape, elementType, "layout", layout);
}

MlirType fp4PipeTmemTypeGetChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                                   MlirType elementType, MlirStringRef layout, bool pair) {
  return getChecked<TmemType, Layout>(location, rank, shape, elementType, "layout", layout, pair);
}

MlirType fp4PipeFragmentTypeGetChecked(MlirLocation location, intptr_t rank, const int64_t *shape,
                                       MlirType elementType, MlirStringRef kind) {
  return getChecked<FragmentType, FragmentKind>(location, rank, shape, elementType, "kind", kind);
}

MlirType fp4PipeChannelTypeGetChecked(MlirLocation location, intptr_t numPayload,
                                      const MlirType *payload) {
  SmallVector<Type> tiles;
  for (intptr_t i = 0; i < numPayload; ++i)
    tiles.push_back(unwrap(payload[i]));
  return wrap(ChannelType::getChecked(unwrap(location), unwrap(location).getContext(),
                                      ArrayRef<Type>(tiles)));
}

//===----------------------------------------------------------------------===//
// Getters
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeOf(MlirType type) {
  return llvm::TypeSwitch<Type, ArrayRef<int64_t>>(unwrap(type))
      .Case<GlobalType, TensorMapType, SharedType, TmemType, FragmentType>(
          [](auto tile) { return tile.getShape(); });
}

intptr_t fp4PipeTypeGetRank(MlirType type) { return shapeOf(type).size(); }

int64_t fp4PipeTypeGetDimSize(MlirType type, intptr_t dim) { return shapeOf(type)[dim]; }

MlirType fp4PipeTypeGetElementType(MlirType type) {
  return llvm::TypeSwitch<Type, MlirType>(unwrap(type))
      .Case<GlobalType, TensorMapType, SharedType, TmemType, FragmentType>(
          [](auto tile) { return wrap(tile.getElementType()); });
}

MlirStringRef fp4PipeTypeGetLayout(MlirType type) {
  return llvm::TypeSwitch<Type, MlirStringRef>(unwrap(type))
      .Case<GlobalType, TensorMapType, SharedType, TmemType>(
          [](auto tile) { return wrap(stringifyLayout(tile.getLayout())); })
      .Default([](Type) { return mlirStringRefCreate("", 0); });
}

bool fp4PipeTensorMapTypeGetResidue(MlirType type) {
  return cast<TensorMapType>(unwrap(type)).getResidue();
}
bool fp4PipeTmemTypeGetPair(MlirType type) { return cast<TmemType>(unwrap(type)).getPair(); }

MlirStringRef fp4PipeFragmentTypeGetKind(MlirType type) {
  return wrap(stringifyFragmentKind(cast<FragmentType>(unwrap(type)).getKind()));
}

intptr_t fp4PipeChannelTypeGetNumPayload(MlirType type) {
  return cast<ChannelType>(unwrap(type)).getPayload().size();
}

MlirType fp4PipeChannelTypeGetPayload(MlirType type, intptr_t position) {
  return wrap(cast<ChannelType>(unwrap(type)).getPayload()[position]);
}
