//===- QuantizeReport.h - Errors of a quantized matrix --------------------===//
#pragma once

#include "fp4/Numerics/QuantizeMatrix.h"

#include <string>
#include <vector>

namespace fp4::harness {

struct Matrix {
  std::vector<float> values;
  uint64_t rows = 0, columns = 0;
};

/// |dequantized - original| over the finite elements of both.
struct QuantizeError {
  double largest = 0, rootMeanSquare = 0;
  double signalToNoise = 0; ///< dB; infinite without an error
  uint64_t elements = 0, notFinite = 0;
};

/// A matrix quantized by one recipe, and the error of that.
struct Quantized {
  std::string recipe; ///< text of the user
  numerics::Recipe decisions;
  numerics::QuantizedSide side;
  std::vector<uint8_t> codes;  ///< one per byte
  std::vector<uint8_t> scales; ///< linear
  QuantizeError error;
};

Expected<Quantized> measure(std::string text, const numerics::Recipe &recipe,
                            numerics::QuantizedSide side, const Matrix &matrix, bool columnwise);

struct QuantizeReport {
  std::string file, array;
  std::vector<Quantized> made; ///< one, or two to compare

  std::string text() const;
  std::string json() const;
};

} // namespace fp4::harness
