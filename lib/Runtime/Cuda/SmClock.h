//===- SmClock.h - The clock of a GPU's multiprocessors -------------------===//
//
// Read through NVML, which is loaded on first use; a machine without it has no clock to show.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>

namespace fp4::rt {

class SmClock {
public:
  /// Megahertz at this moment of the GPU at a PCI bus address, or nothing without NVML.
  std::optional<uint32_t> read(const char *pciBusId);

private:
  bool open(const char *pciBusId);

  bool tried_ = false;
  void *gpu_ = nullptr;
  int (*clockInfo_)(void *gpu, int type, unsigned *megahertz) = nullptr;
};

} // namespace fp4::rt
