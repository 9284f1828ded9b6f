// Encodings and names of the swizzle modes; the address functions are inline in the header.
#include "fp4/ISA/Swizzle.h"
#include <array>

namespace fp4::hw {
namespace {

struct ModeFacts {
  SwizzleMode mode;
  unsigned descriptorCode; ///< PTX ISA, tcgen05 shared-memory descriptor bits 61-63
  unsigned tensorMapCode;  ///< cuda.h, CUtensorMapSwizzle
  std::string_view name;
};

constexpr std::array<ModeFacts, 5> modes = {{
    {SwizzleMode::None, 0, 0, "none"},
    {SwizzleMode::B32, 6, 1, "swizzle_32B"},
    {SwizzleMode::B64, 4, 2, "swizzle_64B"},
    {SwizzleMode::B128, 2, 3, "swizzle_128B"},
    {SwizzleMode::B128Atom32, 1, 4, "swizzle_128B_atom_32B"},
}};

const ModeFacts &facts(SwizzleMode mode) { return modes[static_cast<unsigned>(mode)]; }

} // namespace

unsigned descriptorSwizzleCode(SwizzleMode mode) { return facts(mode).descriptorCode; }

std::optional<SwizzleMode> swizzleFromDescriptorCode(unsigned code) {
  for (const ModeFacts &m : modes)
    if (m.descriptorCode == code)
      return m.mode;
  return std::nullopt;
}

unsigned tensorMapSwizzleCode(SwizzleMode mode) { return facts(mode).tensorMapCode; }

std::optional<SwizzleMode> swizzleFromTensorMapCode(unsigned code) {
  for (const ModeFacts &m : modes)
    if (m.tensorMapCode == code)
      return m.mode;
  return std::nullopt;
}

std::string_view stringify(SwizzleMode mode) { return facts(mode).name; }

std::optional<SwizzleMode> parseSwizzleMode(std::string_view text) {
  for (const ModeFacts &m : modes)
    if (m.name == text)
      return m.mode;
  return std::nullopt;
}

} // namespace fp4::hw
