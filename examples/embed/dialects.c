/* Builds a function of the fp4 dialect in C, with mlir-c, verifies it and prints it:
 * f(s) = the block scales of an NVFP4 matrix of 1024 columns, in the layout of the tensor core. */

#include "fp4-c/Dialects.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <stdio.h>

static MlirStringRef str(const char *text) { return mlirStringRefCreateFromCString(text); }

static void print(MlirStringRef text, void *user) {
  fwrite(text.data, 1, text.length, (FILE *)user);
}

static MlirOperation create(const char *name, MlirLocation location, MlirBlock block,
                            MlirValue operand, const MlirType *result) {
  MlirOperationState state = mlirOperationStateGet(str(name), location);
  mlirOperationStateAddOperands(&state, 1, &operand);
  if (result)
    mlirOperationStateAddResults(&state, 1, result);
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(block, op);
  return op;
}

/* The function f: a block with one argument, fp4.swizzle_scales and return. */
static MlirOperation function(MlirContext context, MlirType scales, MlirType tiled) {
  MlirLocation location = mlirLocationUnknownGet(context);
  MlirBlock block = mlirBlockCreate(1, &scales, &location);
  MlirOperation swizzle =
      create("fp4.swizzle_scales", location, block, mlirBlockGetArgument(block, 0), &tiled);
  create("func.return", location, block, mlirOperationGetResult(swizzle, 0), NULL);
  MlirRegion body = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(body, block);
  MlirNamedAttribute attributes[] = {
      {mlirIdentifierGet(context, str("sym_name")), mlirStringAttrGet(context, str("f"))},
      {mlirIdentifierGet(context, str("function_type")),
       mlirTypeAttrGet(mlirFunctionTypeGet(context, 1, &scales, 1, &tiled))}};
  MlirOperationState state = mlirOperationStateGet(str("func.func"), location);
  mlirOperationStateAddAttributes(&state, 2, attributes);
  mlirOperationStateAddOwnedRegions(&state, 1, &body);
  return mlirOperationCreate(&state);
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  fp4RegisterDialects(registry);
  fp4RegisterUpstreamDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/false);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(context);

  MlirAttribute format = fp4FormatAttrGet(context, str("nvfp4"));
  MlirType data, scales;
  fp4ScaledTypesGet(format, mlirShapedTypeGetDynamicSize(), 1024, mlirAttributeGetNull(), &data,
                    &scales);
  MlirType tiled = fp4WithScaleLayoutChecked(mlirLocationUnknownGet(context), scales,
                                             fp4ScaleLayoutAttrGet(context, str("tiled_128x4")));
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(context));
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), function(context, scales, tiled));
  const bool isLegal = mlirOperationVerify(mlirModuleGetOperation(module));
  mlirOperationPrint(mlirModuleGetOperation(module), print, stdout);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  return isLegal ? 0 : 1;
}
