#include "fp4/ISA/FragmentLayout.h"

#include <bit>
#include <fmt/format.h>
#include <string_view>

namespace fp4::hw {
namespace {

struct FragmentRule {
  std::string_view name, columns;
  bool (*hasColumns)(uint32_t columns);
};

FragmentRule ruleOf(FragmentKind kind) {
  switch (kind) {
  case FragmentKind::Wgmma:
    return {"wgmma", "8 to 256 columns in steps of 8",
            [](uint32_t n) { return n % fragmentTileColumns == 0 && n <= 256; }};
  case FragmentKind::MmaSync:
    return {"mma.sync", "a multiple of 8 columns",
            [](uint32_t n) { return n % fragmentTileColumns == 0; }};
  case FragmentKind::Lanes:
    return {"tensor memory", "16, 32, 64 or 128 columns",
            [](uint32_t n) { return std::has_single_bit(n) && n >= 16 && n <= 128; }};
  case FragmentKind::Columns:
    return {"columns", "to be read from an accumulator first", [](uint32_t) { return false; }};
  }
  return {};
}

} // namespace

Status validateFragment(FragmentKind kind, uint32_t rows, uint32_t columns) {
  const FragmentRule rule = ruleOf(kind);
  const bool isWhole = kind == FragmentKind::Lanes ? rows == fragmentRows(kind)
                                                   : rows > 0 && rows % fragmentRows(kind) == 0;
  if (!isWhole)
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects {}{} rows, but got {}", rule.name,
                                 kind == FragmentKind::Lanes ? "" : "a multiple of ",
                                 fragmentRows(kind), rows));
  if (columns == 0 || !rule.hasColumns(columns))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects {}, but got {}", rule.name, rule.columns, columns));
  return {};
}

Status validateDistribution(FragmentKind kind, uint32_t rows, uint32_t columns) {
  const bool areColumns = kind == FragmentKind::Columns, areLanes = kind == FragmentKind::Lanes;
  const uint32_t unit = areLanes ? 1 : areColumns ? transposedColumns : fragmentTileColumns;
  const bool hasRows =
      areColumns ? rows > 0 && rows % fragmentRows(kind) == 0 : rows == fragmentRows(kind);
  const bool hasColumns = areColumns ? columns == unit : columns > 0 && columns % unit == 0;
  const bool mayBeOne = !areColumns && !areLanes;
  if (hasRows && (hasColumns || isRowNumber(kind, columns)))
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("{}{} rows and {}{}{} columns, but got {}x{}",
                               areColumns ? "a multiple of " : "", fragmentRows(kind),
                               mayBeOne ? "1 or " : "", areColumns ? "" : "a multiple of ", unit,
                               rows, columns));
}

} // namespace fp4::hw
