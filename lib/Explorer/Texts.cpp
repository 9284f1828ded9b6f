//===- Texts.cpp - PTX, machine code and sources --------------------------===//
//
// PTX names the lines of its origin in .loc, and nvdisasm in comments ("//## File ..., line 7"),
// which are left out: a line of the listing belongs to the last one before it.
//
//===----------------------------------------------------------------------===//
#include "fp4/Explorer/Explorer.h"
#include "fp4/Sim/MachineCode.h"
#include "fp4/Sim/Program.h"
#include "fp4/Support/InputFile.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

namespace fp4::explorer {
namespace {

/// Reads words of a line of text.
class Words {
public:
  explicit Words(std::string_view line) : rest(line) {}
  std::string_view next() {
    skipBlanks();
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t,\r"));
    rest.remove_prefix(word.size());
    return word;
  }
  unsigned number() {
    const std::string_view word = next();
    unsigned value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
  }
  /// The text between the next two quotes.
  std::string_view quoted() {
    const size_t begin = rest.find('"'),
                 end = begin == rest.npos ? begin : rest.find('"', begin + 1);
    return end == rest.npos ? std::string_view() : rest.substr(begin + 1, end - begin - 1);
  }

private:
  void skipBlanks() { rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size())); }
  std::string_view rest;
};

std::string_view trimmed(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

/// Calls `f` with every line of `text`.
template <typename Function> void forLines(std::string_view text, Function f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    f(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// Directives, labels and comments came from nothing.
bool isInstruction(std::string_view line) {
  line = trimmed(line);
  return !line.empty() && !line.starts_with(".") && !line.starts_with("/") &&
         !line.starts_with("$") && !line.ends_with(":") && line != "{" && line != "}";
}

/// Makes the origins of a text from a last place that lines announce.
class Origins {
public:
  explicit Origins(Text &text) : text(text) {}
  void announce(unsigned base, unsigned line) {
    file = base;
    number = line;
  }
  void add(bool instruction) {
    const bool known = instruction && number;
    text.origins.push_back(known ? std::vector{number} : std::vector<unsigned>());
    text.base.push_back(known ? file : 0);
  }

private:
  Text &text;
  unsigned file = 0, number = 0;
};

/// The places in `bases` of the files that .file directives number.
std::map<unsigned, unsigned> readFiles(std::string_view ptx, std::vector<std::string> &bases) {
  std::map<unsigned, unsigned> files;
  forLines(ptx, [&](std::string_view line) {
    Words words(line);
    if (words.next() != ".file")
      return;
    const unsigned number = words.number();
    const auto known = std::ranges::find(bases, words.quoted());
    files[number] = unsigned(known - bases.begin());
    if (known == bases.end())
      bases.emplace_back(words.quoted());
  });
  return files;
}

/// The line of PTX that a comment of nvdisasm names; 0: it is none.
unsigned announcedLine(std::string_view line) {
  constexpr std::string_view mark = ", line ";
  const size_t at = line.find(mark);
  if (at == line.npos || line.find("//##") == line.npos)
    return 0;
  return Words(line.substr(at + mark.size())).number();
}

/// "/*0080*/  @!P0 BRA `(.L_x_0) ;"
bool isMachineInstruction(std::string_view line) {
  return line.find("/*") != line.npos && line.find(';') != line.npos;
}

/// The line without the wide blanks that nvdisasm has in front of and behind an address.
std::string tidied(std::string_view line) {
  constexpr std::string_view mark = "*/";
  const size_t end = line.find(mark);
  if (!isMachineInstruction(line) || end == line.npos)
    return std::string(line);
  const size_t code = end + mark.size();
  return std::string(trimmed(line.substr(0, code))) + "  " +
         std::string(trimmed(line.substr(code)));
}

} // namespace

Text ptxText(std::string module, std::string ptx, const std::string &base) {
  Text text{.name = "ptx", .module = std::move(module)};
  std::map<unsigned, unsigned> files;
  if (base.empty())
    files = readFiles(ptx, text.bases);
  else
    text.bases.push_back(base);
  Origins origins(text);
  forLines(ptx, [&](std::string_view line) {
    Words words(line);
    if (words.next() == ".loc") {
      const unsigned file = words.number();
      origins.announce(files.contains(file) ? files[file] : 0, words.number());
    }
    origins.add(isInstruction(line));
  });
  text.text = std::move(ptx);
  return text;
}

Expected<Text> sassText(std::string module, const std::string &ptx, const std::string &target,
                        const std::string &ptxas) {
  FP4_ASSIGN(auto program, sim::Program::parseAvailable(ptx, module));
  Text text{.name = "sass", .module = std::move(module), .bases = {"ptx"}};
  FP4_ASSIGN(auto listing, sim::listMachineCode(*program, target, ptxas));
  Origins origins(text);
  forLines(listing, [&](std::string_view line) {
    if (const unsigned number = announcedLine(line)) {
      origins.announce(0, number);
      return; // the page shows where a line came from
    }
    if (line.find("//---") != line.npos)
      origins.announce(0, 0);
    origins.add(isMachineInstruction(line));
    text.text += tidied(line) + "\n";
  });
  return text;
}

std::vector<Text> sourceTexts(const std::vector<Text> &texts) {
  constexpr size_t mostFiles = 12;
  constexpr uintmax_t mostBytes = 1 << 20;
  std::map<std::string, size_t> counts;
  for (const Text &text : texts)
    for (size_t i = 0; i < text.origins.size() && !text.bases.empty(); ++i)
      if (!text.origins[i].empty())
        ++counts[text.bases[text.base[i]]];
  std::vector<std::pair<std::string, size_t>> files(counts.begin(), counts.end());
  std::ranges::sort(files, [](const auto &a, const auto &b) {
    return std::pair(b.second, a.first) < std::pair(a.second, b.first);
  });
  std::vector<Text> result;
  for (const auto &[file, count] : files) {
    std::error_code failed;
    if (result.size() == mostFiles || std::filesystem::file_size(file, failed) > mostBytes ||
        failed)
      continue;
    if (auto content = readText(file))
      result.push_back({.name = file, .text = std::move(*content)});
  }
  return result;
}

} // namespace fp4::explorer
