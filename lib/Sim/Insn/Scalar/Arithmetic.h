//===- Arithmetic.h - The floating-point halves of add, sub, mul, ... -----===//
#pragma once

#include "Sim/Decode/Decode.h"

namespace fp4::sim {

Status bindFloatAdd(BindContext &cx);
Status bindFloatSub(BindContext &cx);
Status bindFloatMul(BindContext &cx);
Status bindFloatDiv(BindContext &cx);
Status bindFloatAbs(BindContext &cx);
Status bindFloatNeg(BindContext &cx);
Status bindFloatMin(BindContext &cx);
Status bindFloatMax(BindContext &cx);

} // namespace fp4::sim
