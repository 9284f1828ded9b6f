//===- LaneEpilogue.h - Results of GEMMs with sums in tensor memory -------===//
#pragma once

#include "Epilogue.h"
#include "LaneSums.h"
#include "SumConversion.h"

namespace fp4 {

class LaneEpilogue : public Epilogue {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  LaneEpilogue(GemmKernel &kernel, const WorkLoop &works)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), lanes(kernel, works),
        conversion(kernel) {}

  void begin() override;
  void finish(ValueRange accs, const Tile &ofCta) override;

private:
  Value broadcast(Value scalar);
  SumConversion::Place placeOf(Value column);
  Value factors(Value alphas, Value column);
  void takeAlphas();
  Value convert(ValueRange chunks, Value column);
  void store(Value chunk, Value column);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  LaneSums lanes;
  SumConversion conversion;
  Value alphaVector, alpha2Vector; ///< alpha in every lane; null where there is none or not one
  Value factor, factor2; ///< alphas of the tile in every lane; null where chunks have their own
  std::optional<ResultStores> results; ///< results besides the elements
};

} // namespace fp4
