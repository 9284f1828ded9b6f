//===- ProgramTypes.h - The sizes of a program's values -------------------===//
//
// The types of a manifest may be dynamic. The sizes of the arguments determine those of every
// value: rows of a matrix are columns of its transposed quantization.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Manifest.h"

#include <span>

namespace fp4::harness {

/// The result types of `op` for operands of these static types; Usage errors where the manifest's
/// types contradict them.
Expected<std::vector<Type>> resultTypes(const ProgramOp &op, std::span<const Type> operands);

/// The types of all values of `program`, by name. Usage errors where dynamic sizes of arguments
/// contradict each other, such as those of data and its scales.
Expected<std::map<std::string, Type>> valueTypes(std::span<const ProgramOp> program,
                                                 std::span<const Type> arguments);

/// The error for a manifest whose program this tool cannot interpret.
tl::unexpected<Error> badProgram(const ProgramOp &op, const std::string &what);

/// The optional operand at `place` of the operation's definition is there; "operand_segments" says
/// so.
bool hasOperand(const ProgramOp &op, size_t place);
/// The name of that operand, or of the first where there are several; empty where there is none.
std::string operandAt(const ProgramOp &op, size_t place);
/// The second operand of a matmul are scales of the first, and the third is rhs; beside a lhs of
/// floats the second is rhs.
bool hasLhsScales(const ProgramOp &op);
/// a grouped GEMM, whose tiled scales are lists of tiles.
bool isGroupedGemm(const ProgramOp &op);

/// The operand of `op` that says the rows of its groups where only the device knows them; empty
/// where it has none.
std::string offsetsOf(const ProgramOp &op);

/// Dimensions of the result that index each operand of an elementwise operation ("linalg.generic"),
/// or those of the matrix whose rows "linalg.reduce" combines, from its attribute "dimensions",
/// such as "0,1 x,1 -". For x, a dimension of size 1 that is the same for all, and for expressions
/// such as "(d0/4)", a number that no dimension has.
std::vector<std::vector<size_t>> operandDimensions(const ProgramOp &op);

} // namespace fp4::harness
