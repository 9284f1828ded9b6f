//===- Register.cpp - Registration of fp4-c/Dialects.h ---------------------===//

#include "fp4-c/Dialects.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/InitAll.h"

#include "mlir/CAPI/Registration.h"

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Fp4, fp4, fp4::Fp4Dialect)
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Pipe, pipe, fp4::pipe::PipeDialect)

void fp4RegisterDialects(MlirDialectRegistry registry) { fp4::registerDialects(*unwrap(registry)); }

void fp4RegisterUpstreamDialects(MlirDialectRegistry registry) {
  fp4::registerUpstreamDialects(*unwrap(registry));
}

void fp4RegisterPasses(void) {
  static const bool once = (fp4::registerPasses(), true);
  (void)once;
}
