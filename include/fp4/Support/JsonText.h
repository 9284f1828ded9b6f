//===- JsonText.h - JSON that may quote what is no text -------------------===//
//
// Names of files are bytes, and JSON is UTF-8 text. Bytes that are no UTF-8 become U+FFFD, so that
// a report never fails for the name of a file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace fp4 {

/// `value`, of nlohmann's classes, in one line, or with `indent` spaces for each level.
template <typename Json> std::string jsonText(const Json &value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

} // namespace fp4
