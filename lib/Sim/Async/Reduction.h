//===- Reduction.h - Element-wise reductions of bulk copies ---------------===//
//
// PTX ISA, "cp.reduce.async.bulk" and "cp.reduce.async.bulk.tensor". Each element is updated
// atomically, so clusters on several host threads may reduce into the same array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Modifiers/Copy.h"
#include "fp4/Support/Error.h"
#include <cstddef>
#include <optional>

namespace fp4::sim {

ReductionOp reductionFromText(std::string_view text); ///< "add", ...

/// Updates `count` elements at `destination` with those at `source`.
using ReduceFn = void (*)(std::byte *destination, const std::byte *source, size_t count);

/// The implementation, or null where the PTX ISA has no such operation on the type.
/// `keepsSubnormals`: sums of f32 do, with .noftz.
ReduceFn reduction(ReductionOp op, Type type, bool keepsSubnormals = false);

} // namespace fp4::sim
