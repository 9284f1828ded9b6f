//===- KernelGlobals.cpp - gpu.binary to fp4rt_module ---------------------===//
//
// PTX and cubin become private constant byte arrays, and one constant struct per gpu.binary points
// at them: the fp4rt_module that launches name.
//
//===----------------------------------------------------------------------===//

#include "KernelGlobals.h"
#include "RuntimeCalls.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace {

gpu::ObjectAttr findObject(gpu::BinaryOp binary, gpu::CompilationTarget format) {
  for (Attribute attribute : binary.getObjects())
    if (auto object = dyn_cast<gpu::ObjectAttr>(attribute); object && object.getFormat() == format)
      return object;
  return nullptr;
}

/// A constant of the bytes of `text`, aligned as loaders of images expect.
LLVM::GlobalOp createBytes(OpBuilder &builder, Location loc, const Twine &symbol, StringRef text) {
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Private,
                                symbol.str(), builder.getStringAttr(text), /*alignment=*/16);
}

/// Appends {pointer, size} of `object`'s bytes to the struct, or {null, 0}.
Value insertObject(OpBuilder &builder, Location loc, Value structure, int64_t position,
                   LLVM::GlobalOp bytes) {
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  int64_t size = 0;
  Value address;
  if (bytes) {
    address = LLVM::AddressOfOp::create(builder, loc, bytes);
    size = cast<LLVM::LLVMArrayType>(bytes.getGlobalType()).getNumElements();
  } else {
    address = LLVM::ZeroOp::create(builder, loc, ptr);
  }
  structure =
      LLVM::InsertValueOp::create(builder, loc, structure, address, ArrayRef<int64_t>(position));
  return LLVM::InsertValueOp::create(builder, loc, structure,
                                     fp4::constantInt(builder, loc, 64, size),
                                     ArrayRef<int64_t>(position + 1));
}

} // namespace

LogicalResult fp4::convertKernelBinary(gpu::BinaryOp binary, ModuleOp module) {
  gpu::ObjectAttr ptx = findObject(binary, gpu::CompilationTarget::Assembly);
  gpu::ObjectAttr cubin = findObject(binary, gpu::CompilationTarget::Binary);
  if (!ptx)
    return binary.emitError("must hold the kernels' PTX, but got no object of format 'assembly'")
               .attachNote()
           << "run fp4-emit-kernels before convert-host-to-runtime";
  OpBuilder builder(binary);
  Location loc = binary.getLoc();
  std::string symbol = runtimeModuleSymbol(binary.getName());
  auto target =
      ptx.getProperties() ? ptx.getProperties().getAs<StringAttr>("target") : StringAttr();
  LLVM::GlobalOp ptxBytes = createBytes(builder, loc, symbol + "_ptx", ptx.getObject().getValue());
  LLVM::GlobalOp cubinBytes =
      cubin ? createBytes(builder, loc, symbol + "_cubin", cubin.getObject().getValue()) : nullptr;
  LLVM::LLVMStructType type = runtimeModuleType(module.getContext());
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Private, symbol, Attribute());
  builder.createBlock(&global.getInitializerRegion());
  Value value = LLVM::PoisonOp::create(builder, loc, type);
  value = LLVM::InsertValueOp::create(
      builder, loc, value, stringAddress(builder, loc, module, "fp4_name", binary.getName()),
      ArrayRef<int64_t>(0));
  value = LLVM::InsertValueOp::create(
      builder, loc, value,
      stringAddress(builder, loc, module, "fp4_name", target ? target.getValue() : ""),
      ArrayRef<int64_t>(1));
  value = insertObject(builder, loc, value, 2, ptxBytes);
  value = insertObject(builder, loc, value, 4, cubinBytes);
  LLVM::ReturnOp::create(builder, loc, value);
  return success();
}

fp4::KernelResourcesMap fp4::collectKernels(ModuleOp module) {
  KernelResourcesMap kernels;
  for (auto binary : module.getOps<gpu::BinaryOp>()) {
    gpu::ObjectAttr object = findObject(binary, gpu::CompilationTarget::Assembly);
    if (!object || !object.getKernels())
      continue;
    for (gpu::KernelMetadataAttr kernel : object.getKernels())
      kernels[{binary.getNameAttr(), kernel.getName()}] = kernel;
  }
  return kernels;
}
