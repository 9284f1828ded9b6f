// The table of GEMMs of weights and of activations without scales.
#include "fp4/ISA/WeightGemms.h"

#include <algorithm>
#include <string>

namespace fp4::hw {
namespace {

constexpr WeightGemm rows[] = {
    {Activation::Half, Weights::Scaled, &TargetModel::hasWgmma, WeightRoute::Registers},
    {Activation::Half, Weights::Scaled, &TargetModel::hasMmaBlockScale, WeightRoute::Registers},
    {Activation::Half, Weights::Scaled, &TargetModel::hasTcgen05, WeightRoute::Lanes},
    {Activation::Half, Weights::Prepacked, &TargetModel::hasWgmma, WeightRoute::Registers},
    {Activation::Half, Weights::Prepacked, &TargetModel::hasMmaBlockScale, WeightRoute::Registers},
    {Activation::Half, Weights::Prepacked, &TargetModel::hasTcgen05, WeightRoute::Lanes},
    {Activation::E4M3, Weights::Scaled, &TargetModel::hasTcgen05, WeightRoute::UnitScales},
    {Activation::E4M3, Weights::Scaled, &TargetModel::hasMmaBlockScale, WeightRoute::UnitScales},
    {Activation::E4M3, Weights::Prepacked, &TargetModel::hasWgmma, WeightRoute::Registers},
};

const WeightGemm *find(const TargetModel &target, Activation activation, Weights weights) {
  const auto *row = std::ranges::find_if(rows, [&](const WeightGemm &row) {
    return row.activation == activation && row.weights == weights && target.*row.needs;
  });
  return row == std::end(rows) ? nullptr : row;
}

} // namespace

std::span<const WeightGemm> weightGemms() { return rows; }

Expected<WeightRoute> requireWeightGemm(const TargetModel &target, Activation activation,
                                        Weights weights) {
  if (const WeightGemm *row = find(target, activation, weights))
    return row->route;
  std::string others;
  for (const TargetModel &other : targets())
    if (find(other, activation, weights))
      others += (others.empty() ? "" : ", ") + std::string(other.name);
  const bool isPrepacked = weights == Weights::Prepacked;
  const bool hasOther =
      find(target, activation, isPrepacked ? Weights::Scaled : Weights::Prepacked);
  return makeError(
      ErrorKind::Compile,
      "target '" + std::string(target.name) + "' has no GEMMs of " +
          (activation == Activation::E4M3 ? "f8E4M3FN" : "bf16 and f16") + " without scales and " +
          (isPrepacked ? "prepacked weights" : "weights with scales"),
      "targets that have them: " + others +
          (!hasOther     ? ""
           : isPrepacked ? "; or pass the weights with their tiled scales, as fp4.unprepack and "
                           "fp4.swizzle_scales give them, and leave fast_accumulation out"
                         : "; or prepack the weights with fp4.prepack"));
}

} // namespace fp4::hw
