@header@
//
// The label (C1) is that of the rules of fp4.@name@ and of @test@.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

LogicalResult @Class@::verify() {
  return verifyMatrix(operand(*this, "input", getInput())); // @name@ (C1)
}
