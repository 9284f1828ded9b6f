//===- Chip.h - The GPU that a program finds ------------------------------===//
#pragma once

#include "Report.h"
#include "fp4/ISA/GpuModel.h"
#include <optional>

namespace fp4::simcuda {

/// `--device b200`. Capacities of the architecture are the target's.
using Chip = hw::GpuModel;

inline constexpr uint32_t kDefaultSharedBytes = 48 << 10; ///< bytes without a kernel's attribute
inline constexpr uint32_t kConstantBytes = 64 << 10;

/// cudaDeviceGetAttribute and cuDeviceGetAttribute; nothing for a number that we do not know.
FP4_HOST_API std::optional<int> deviceAttribute(const Chip &chip, int attribute);

} // namespace fp4::simcuda
