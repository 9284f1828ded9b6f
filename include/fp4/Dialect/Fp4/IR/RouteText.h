//===- RouteText.h - The text of a route in MLIR --------------------------===//
#pragma once

#include "fp4/Routes/Route.h"

#include "mlir/IR/OpImplementation.h"

namespace fp4 {

/// Parses "<core = wgmma, a = registers>", the axes in any order.
mlir::ParseResult parseRoute(mlir::AsmParser &parser, route::Route &route);

} // namespace fp4
