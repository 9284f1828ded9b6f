//===- QuantizeFiles.h - Quantized matrices in .npy files -----------------===//
//
// Files have two forms. In the first, codes, scales and amaxes have a file each: PREFIX.codes.npy,
// PREFIX.scales.npy, PREFIX.amax.npy. In the second, layout ggml, PREFIX.ggml.npy has the rows of
// blocks that ggml stores (fp4/Numerics/GgmlBlocks.h), scales and codes together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/QuantizeMatrix.h"
#include "fp4/Harness/Npy.h"
#include "fp4/Harness/QuantizeCommand.h"

#include <string>
#include <utility>

namespace fp4::harness {

/// Rows and columns of an array: all but its last dimension are rows.
Expected<std::pair<uint64_t, uint64_t>> matrixOf(const NpyArray &array, const std::string &name);

/// The layout that --layout names; linear for ggml, whose files are made of linear scales.
Expected<numerics::ScaleLayout> layoutOf(const QuantizeCommand &command);

/// Writes the files of a side under the prefix command.output.
Status writeSide(const numerics::QuantizedSide &side, const numerics::Recipe &recipe,
                 const QuantizeCommand &command);

/// Reads the files that writeSide wrote, or single files that the command names. Scales become
/// linear.
Expected<numerics::QuantizedSide> readSide(const QuantizeCommand &command,
                                           const numerics::Recipe &recipe);

/// fp32 values as an array.
NpyArray floatsToNpy(std::span<const float> values, std::vector<int64_t> shape);

} // namespace fp4::harness
