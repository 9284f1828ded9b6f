//===- Fmt.cpp - The fmt library, compiled once ---------------------------===//
//
// Debian has fmt as headers and as a shared library, which our wheels could not bring along. A source
// that includes the definitions too compiles them again: most of the time of a short source.
//
//===----------------------------------------------------------------------===//

#include <fmt/format-inl.h>

namespace fmt::detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
} // namespace fmt::detail
