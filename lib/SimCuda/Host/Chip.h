//===- Chip.h - The GPU that a program finds ------------------------------===//
#pragma once

#include "Report.h"
#include "fp4/ISA/TargetModel.h"
#include <optional>

namespace fp4::simcuda {

/// A product: `--device b200`. Capacities of the architecture are the target's.
struct Chip {
  std::string_view option;
  std::string_view name; ///< as cudaGetDeviceProperties gives it
  std::string_view target;
  uint64_t memoryBytes;
  unsigned memoryBusBits;

  const hw::TargetModel &model() const { return *hw::lookupTarget(target); }
  int major() const { return static_cast<int>(model().computeMajor); }
  int minor() const { return static_cast<int>(model().computeMinor); }
};

inline constexpr uint32_t kDefaultSharedBytes = 48 << 10; ///< without an attribute of the kernel
inline constexpr uint32_t kConstantBytes = 64 << 10;

std::span<const Chip> chips();
/// The error lists the known ones.
Expected<const Chip *> findChip(std::string_view option);

/// cudaDeviceGetAttribute and cuDeviceGetAttribute; nothing for a number that we do not know.
FP4_HOST_API std::optional<int> deviceAttribute(const Chip &chip, int attribute);

} // namespace fp4::simcuda
