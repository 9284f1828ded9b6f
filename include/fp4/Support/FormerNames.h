//===- FormerNames.h - Words that version 0.2 renamed -----------*- C++ -*-===//
//
// A former spelling is an error whose note gives the present one. The words are those of plans,
// attributes, operations, options and flags; docs/Glossary.md says what they mean.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fp4 {

/// Returns the present name of `former`, such as "ctas_per_sm" of "resident"; nothing for a word that
/// was not renamed.
std::optional<std::string_view> presentName(std::string_view former);

/// Returns the note of an error about `word`: "'resident' is called 'ctas_per_sm' now", and for a word
/// that was not renamed `otherwise`.
std::string renamedNote(std::string_view word, std::string otherwise = "");

} // namespace fp4
