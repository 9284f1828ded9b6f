//===- EntryPoints.cpp - int32_t fp4_entry_<function>(void **args) --------===//
//
// Upstream gives a function marked llvm.emit_c_interface a wrapper `_mlir_ciface_<f>` that takes
// pointers to memref descriptors, results first. Callers without a compiler cannot build a call of
// it for every signature, so each function gets one entry of one signature that unpacks an array.
//
// A program of another compiler calls a function by the declaration that fp4-outline-islands left
// there, which upstream lowers to `_mlir_ciface_<f>` with arguments and destinations. The exported
// function of this name hands them to fp4rt_call; upstream's wrapper gets another name.
//
//===----------------------------------------------------------------------===//

#include "EntryPoints.h"
#include "RuntimeCalls.h"

#include "fp4/Dialect/Utils/ElementLimit.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

static constexpr llvm::StringLiteral kWrapperPrefix = "_mlir_ciface_";
static constexpr llvm::StringLiteral kEntryPrefix = "fp4_entry_";
static constexpr llvm::StringLiteral kInnerPrefix = "fp4_inner_";

/// The name a message gives an argument.
static std::string argumentName(func::FuncOp function, unsigned number) {
  if (auto name = function.getArgAttrOfType<StringAttr>(number, "fp4.name"))
    return ("argument '" + name.getValue() + "'").str();
  return "argument " + std::to_string(number);
}

/// The names have been read; LLVM has no use for them.
static void dropNames(func::FuncOp function) {
  for (StringRef attribute : {"fp4.name", "fp4.dims", fp4::kStridedAttr.data()}) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, attribute);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      function.removeResultAttr(i, StringAttr::get(function.getContext(), attribute));
  }
}

fp4::EntryPoints::EntryPoints(ModuleOp module) : module(module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                      UnitAttr::get(module.getContext()));
    Signature &signature = signatures[function.getName()];
    for (Type type : function.getResultTypes())
      signature.results.push_back(dyn_cast<MemRefType>(type));
    for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
      signature.arguments.push_back({argumentName(function, number), dyn_cast<MemRefType>(type)});
    dropNames(function);
  }
}

/// The largest product that the dynamic sizes may have.
static int64_t mostElements(MemRefType type) {
  uint64_t others = std::max<uint64_t>(fp4::staticElements(type.getShape()), 1);
  return int64_t(std::max<uint64_t>(fp4::kMostElements / others, 1));
}
static int64_t largestDim(MemRefType type) {
  return std::min<int64_t>(mostElements(type), INT32_MAX);
}

// A descriptor is {allocated, aligned, offset, sizes..., strides...}, 8 bytes each.
static constexpr int32_t kFirstSize = 3;
/// TMA has 40 bits for a stride.
static constexpr int64_t kMostStride = (int64_t(1) << 40) - 16;

static Value loadWord(OpBuilder &builder, Location loc, Value descriptor, int32_t number) {
  Value slot = LLVM::GEPOp::create(builder, loc, descriptor.getType(), builder.getI64Type(),
                                   descriptor, ArrayRef<LLVM::GEPArg>{number});
  return LLVM::LoadOp::create(builder, loc, builder.getI64Type(), slot);
}

/// Checks sizes, because callers of an emitted library build descriptors by hand: wrong sizes must
/// not become wild reads.
void fp4::EntryPoints::checkSizes(OpBuilder &builder, Location loc, const Argument &argument,
                                  Value descriptor) {
  if (!argument.type)
    return;
  for (auto [dim, size] : llvm::enumerate(argument.type.getShape())) {
    bool isDynamic = ShapedType::isDynamic(size);
    std::string what = argument.name + " dimension " + std::to_string(dim);
    StringRef note = isDynamic ? "no kernel counts more with its 32 bits: pass the rows in parts"
                               : "pass a buffer of the size that the manifest states";
    callRuntime(builder, loc, module, RuntimeFunction::ExpectSize,
                {stringAddress(builder, loc, module, "fp4_text", what),
                 loadWord(builder, loc, descriptor, kFirstSize + static_cast<int32_t>(dim)),
                 constantInt(builder, loc, 64, isDynamic ? 0 : size),
                 constantInt(builder, loc, 64, isDynamic ? largestDim(argument.type) : size),
                 stringAddress(builder, loc, module, "fp4_text", note)});
  }
  checkElements(builder, loc, argument, descriptor);
}

/// Checks the number of elements: sizes that are each in range may be too many elements together.
void fp4::EntryPoints::checkElements(OpBuilder &builder, Location loc, const Argument &argument,
                                     Value descriptor) {
  if (argument.type.getNumDynamicDims() < 2)
    return;
  Value elements;
  for (auto [dim, size] : llvm::enumerate(argument.type.getShape())) {
    if (!ShapedType::isDynamic(size))
      continue;
    Value given = loadWord(builder, loc, descriptor, kFirstSize + static_cast<int32_t>(dim));
    elements = elements ? LLVM::MulOp::create(builder, loc, elements, given) : given;
  }
  callRuntime(builder, loc, module, RuntimeFunction::ExpectSize,
              {stringAddress(builder, loc, module, "fp4_text",
                             argument.name + ", the product of its dynamic sizes,"),
               elements, constantInt(builder, loc, 64, 0),
               constantInt(builder, loc, 64, mostElements(argument.type)),
               stringAddress(builder, loc, module, "fp4_text",
                             "no kernel counts more with its 32 bits: pass the rows in parts")});
}

/// Checks the rows of an argument with fp4.strided: they begin where TMA and wide loads can read
/// them, and none overlaps the next.
void fp4::EntryPoints::checkStrides(OpBuilder &builder, Location loc, const Argument &argument,
                                    Value descriptor) {
  if (!argument.type || argument.type.getLayout().isIdentity())
    return;
  auto i64 = [&](int64_t value) { return constantInt(builder, loc, 64, value); };
  int32_t rank = static_cast<int32_t>(argument.type.getRank());
  int64_t elementBytes = argument.type.getElementTypeBitWidth() / 8;
  int64_t columns = argument.type.getShape().back();
  Value rowBytes = i64(columns * elementBytes);
  if (ShapedType::isDynamic(columns))
    rowBytes = LLVM::MulOp::create(
        builder, loc, loadWord(builder, loc, descriptor, kFirstSize + rank - 1), i64(elementBytes));
  auto expect = [&](Value found, Value least, Value most, const Twine &what, StringRef note) {
    callRuntime(builder, loc, module, RuntimeFunction::ExpectSize,
                {stringAddress(builder, loc, module, "fp4_text", (argument.name + what).str()),
                 found, least, most, stringAddress(builder, loc, module, "fp4_text", note)});
  };
  auto stride = [&](int32_t dimension) -> Value {
    return loadWord(builder, loc, descriptor, kFirstSize + rank + dimension);
  };
  expect(stride(rank - 1), i64(1), i64(1), " stride of elements",
         "elements of a row must follow each other: pass a copy");
  for (int32_t dimension = 0; dimension < rank - 1; ++dimension) {
    Value bytes = LLVM::MulOp::create(builder, loc, stride(dimension), i64(elementBytes));
    Value up = LLVM::AndOp::create(builder, loc, LLVM::AddOp::create(builder, loc, bytes, i64(15)),
                                   i64(-16));
    std::string place = " stride of dimension " + std::to_string(dimension) + " in bytes";
    expect(bytes, rowBytes, i64(kMostStride), place,
           "rows must not overlap, and TMA counts strides with 40 bits");
    expect(bytes, up, up, place,
           "strides must be multiples of 16 bytes: pad each row, or pass a copy with padded rows");
  }
}

LLVM::LLVMFuncOp fp4::EntryPoints::createEntry(LLVM::LLVMFuncOp wrapper,
                                               const Signature &signature) {
  MLIRContext *context = wrapper.getContext();
  Location loc = wrapper.getLoc();
  OpBuilder builder(context);
  builder.setInsertionPointAfter(wrapper);
  Type ptr = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), {ptr});
  StringRef name = wrapper.getName().drop_front(kInnerPrefix.size());
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, (kEntryPrefix + name).str(), type);
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  SmallVector<Value> operands;
  for (int32_t i = 0, e = wrapper.getNumArguments(); i < e; ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, ptr, ptr, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{i});
    operands.push_back(LLVM::LoadOp::create(builder, loc, ptr, slot));
  }
  ArrayRef<Value> descriptors = ArrayRef<Value>(operands).drop_front(!signature.results.empty());
  for (auto [argument, descriptor] : llvm::zip_equal(signature.arguments, descriptors))
    checkSizes(builder, loc, argument, descriptor);
  for (auto [argument, descriptor] : llvm::zip_equal(signature.arguments, descriptors))
    checkStrides(builder, loc, argument, descriptor);
  LLVM::CallOp::create(builder, loc, wrapper, operands);
  LLVM::ReturnOp::create(builder, loc, constantInt(builder, loc, 32, 0));
  return entry;
}

/// A constant array of fp4rt_memref_type: arguments, then results.
static Value memrefTypes(OpBuilder &builder, Location loc, ModuleOp module, StringRef function,
                         ArrayRef<MemRefType> types) {
  SmallVector<int32_t> words;
  for (MemRefType type : types) {
    words.push_back(static_cast<int32_t>(type.getRank()));
    words.push_back(static_cast<int32_t>(llvm::divideCeil(type.getElementTypeBitWidth(), 8)));
  }
  int64_t count = static_cast<int64_t>(words.size());
  OpBuilder globals = OpBuilder::atBlockBegin(module.getBody());
  auto array = LLVM::LLVMArrayType::get(builder.getI32Type(), count);
  auto value = DenseIntElementsAttr::get(RankedTensorType::get(count, builder.getI32Type()),
                                         ArrayRef<int32_t>(words));
  auto global = LLVM::GlobalOp::create(globals, loc, array, /*isConstant=*/true,
                                       LLVM::Linkage::Private, ("fp4_types_" + function).str(),
                                       value);
  return LLVM::AddressOfOp::create(builder, loc, global);
}

void fp4::EntryPoints::createInterface(LLVM::LLVMFuncOp entry, const Signature &signature) {
  SmallVector<MemRefType> types;
  for (const Argument &argument : signature.arguments)
    types.push_back(argument.type);
  llvm::append_range(types, signature.results);
  if (types.empty() || llvm::is_contained(types, MemRefType()))
    return; // no function of tensors
  Location loc = entry.getLoc();
  OpBuilder builder(entry.getContext());
  builder.setInsertionPointAfter(entry);
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                          SmallVector<Type>(types.size(), ptr));
  StringRef name = entry.getName().drop_front(kEntryPrefix.size());
  auto interface = LLVM::LLVMFuncOp::create(builder, loc, (kWrapperPrefix + name).str(), type);
  Block *body = interface.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  Value buffers = LLVM::AllocaOp::create(builder, loc, ptr, ptr,
                                         constantInt(builder, loc, 32, types.size()));
  for (auto [index, descriptor] : llvm::enumerate(body->getArguments()))
    LLVM::StoreOp::create(builder, loc, descriptor,
                          LLVM::GEPOp::create(builder, loc, ptr, ptr, buffers,
                                              LLVM::GEPArg(static_cast<int32_t>(index))));
  callRuntime(builder, loc, module, RuntimeFunction::Call,
              {LLVM::AddressOfOp::create(builder, loc, entry), buffers,
               memrefTypes(builder, loc, module, name, types),
               constantInt(builder, loc, 32, signature.arguments.size()),
               constantInt(builder, loc, 32, signature.results.size())});
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

void fp4::EntryPoints::create() {
  for (auto function : llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>())) {
    if (function.isExternal())
      continue;
    function.setLinkage(LLVM::Linkage::Internal);
    StringRef name = function.getName();
    if (!name.consume_front(kWrapperPrefix))
      continue;
    const Signature &signature = signatures[name];
    function.setName((kInnerPrefix + name).str());
    createInterface(createEntry(function, signature), signature);
  }
}
