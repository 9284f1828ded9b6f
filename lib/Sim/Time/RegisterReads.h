//===- RegisterReads.h - The registers that machine instructions read -----===//
//
// From the operands as nvdisasm prints them: "R14, R3.reuse, R22, R80, 0x1e, !PT". The first is the
// result. A register that an instruction names twice is read once. One with .reuse is kept in the
// place of its operand until another instruction has an operand there, and any operand finds it
// (H200, micro: mma-sync: LOP3 and IMAD in turn that share two registers take 2.3 clk, PRMT and
// IMAD 2.2; with the same place alone they would take 3).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Time/TimedCode.h"
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fp4::sim {

class RegisterReads {
public:
  /// Adds what the next instruction reads from each bank. `wide`: its last operand is a pair.
  void next(std::string_view operands, bool wide, std::array<uint32_t, kBanks> &reads) {
    std::vector<uint32_t> read;
    std::vector<std::optional<uint32_t>> keeps; // a place for each operand
    bool result = true;
    while (!operands.empty()) {
      const std::string_view one = operands.substr(0, operands.find(','));
      operands.remove_prefix(std::min(one.size() + 1, operands.size()));
      const auto number = registerOf(one);
      const bool first = std::exchange(result, false);
      if ((first && number) || (keeps.empty() && isPredicate(one)))
        continue;
      const size_t slot = keeps.size();
      keeps.push_back(one.find(".reuse") == one.npos ? std::nullopt : number);
      if (!number || std::ranges::find(kept, number) != kept.end())
        continue;
      read.push_back(*number);
      if (wide && slot == 2)
        read.push_back(*number + 1);
    }
    for (size_t slot = keeps.size(); slot < kept.size(); ++slot)
      keeps.push_back(kept[slot]);
    kept = std::move(keeps);
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (uint32_t number : read)
      ++reads[number % kBanks];
  }

private:
  static bool isPredicate(std::string_view operand) {
    operand.remove_prefix(std::min(operand.find_first_not_of(" !"), operand.size()));
    return operand.starts_with('P') || operand.starts_with("UP");
  }

  /// Returns the register of "-R7.H0_H0" or "|R14|"; nothing for RZ, an immediate, or a uniform
  /// register.
  static std::optional<uint32_t> registerOf(std::string_view operand) {
    operand.remove_prefix(std::min(operand.find_first_not_of(" -~|!"), operand.size()));
    uint32_t number = 0;
    if (!operand.starts_with('R') ||
        std::from_chars(operand.data() + 1, operand.data() + operand.size(), number).ec !=
            std::errc())
      return std::nullopt;
    return number;
  }

  std::vector<std::optional<uint32_t>> kept; ///< registers that .reuse keeps, for each operand
};

} // namespace fp4::sim
