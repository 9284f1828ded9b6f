//===- Fatbin.h - The PTX that nvcc embedded in a program -----------------===//
//
// A fat binary is a container of entries, one per architecture and kind: PTX text or machine code.
// nvcc compresses the text with zstd (LZ4 in older toolkits). The simulator runs only PTX. Among
// several texts it takes the one that fits the chip best.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::simcuda {

enum class EntryKind : uint16_t { Ptx = 1, Cubin = 2, Other = 0 };

struct FatbinEntry {
  EntryKind kind = EntryKind::Other;
  uint32_t architecture = 0; ///< 100 for sm_100, sm_100a and sm_100f
  std::string ptx;           ///< decompressed; empty for machine code
  std::string target;        ///< .target of PTX: "sm_100a"
};

/// Bytes of the container that begins at `bytes`, or 0 when none does.
uint64_t fatbinBytes(std::span<const std::byte> bytes);

/// The entries of one container.
Expected<std::vector<FatbinEntry>> readFatbin(std::span<const std::byte> container);

/// The containers of a file: a fat binary itself, or an ELF file with section .nv_fatbin. Empty
/// when there are none.
Expected<std::vector<std::vector<FatbinEntry>>> readFatbins(std::span<const std::byte> file);

/// "sm_100a" of "\n.target sm_100a, texmode_independent\n"; empty when there is no such line.
std::string targetOf(std::string_view ptx);

/// Returns true when PTX for `target` may run on `chip` ("sm_100a"): "sm_90" on every later chip,
/// "sm_100f" on its family, "sm_100a" on that chip alone.
bool runsOn(std::string_view target, std::string_view chip);

/// The text that a driver for `chip` would compile: the most specific of those that run there. The
/// error lists what the container has instead.
Expected<const FatbinEntry *> choosePtx(const std::vector<FatbinEntry> &entries,
                                        std::string_view chip);

} // namespace fp4::simcuda
