@header@

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

LogicalResult @Class@::verify() {
  if (int64_t(getCount()) < 1)
    return withNote(emitOpError() << "count must be at least 1, but got " << int64_t(getCount()),
                    "leave the operation out where there is nothing to count"); // (@label@)
  return success();
}
