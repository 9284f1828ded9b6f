//===- Breakpoints.cpp - Places where a debugger stops --------------------===//
#include "Breakpoints.h"
#include "Sim/Decode/OpcodeTable.h"

#include <algorithm>

namespace fp4::sim::debug {
namespace {

bool synchronizes(std::string_view opcode) {
  return opcode == "bar" || opcode == "barrier" || opcode.starts_with("mbarrier.");
}

/// Returns true when `path` is the file, or ends with it behind a '/'.
bool isFile(std::string_view path, std::string_view file) {
  if (!path.ends_with(file))
    return false;
  path.remove_suffix(file.size());
  return path.empty() || path.ends_with('/') || file.starts_with('/');
}

/// The opcode with its modifiers as the text has it, if the instruction begins its line.
std::string_view spelledOpcode(const ProgramImpl &program, const Insn &insn) {
  std::string_view text = program.sourceLine(insn.line);
  if (text.starts_with('@'))
    text.remove_prefix(std::min(text.size(), text.find(' ')));
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return text.substr(0, text.find_first_of(" ;"));
}

/// Returns true when the instruction is one of `opcode`, or synchronizes for "barriers".
bool isOpcode(const ProgramImpl &program, const Insn &insn, const std::string &opcode) {
  const std::string_view base = opcodeTable()[insn.row].base;
  if (opcode == "barriers")
    return synchronizes(base);
  return base.starts_with(opcode) || spelledOpcode(program, insn).starts_with(opcode);
}

} // namespace

int Breakpoints::add(Breakpoint breakpoint) {
  breakpoint.id = ++last;
  all.push_back(std::move(breakpoint));
  place();
  return last;
}

bool Breakpoints::remove(int id) {
  const bool removed = std::erase_if(all, [&](const Breakpoint &b) { return b.id == id; }) > 0;
  place();
  return removed;
}

void Breakpoints::removeLines(const std::string &file) {
  std::erase_if(all, [&](const Breakpoint &b) { return b.line && b.file == file; });
  place();
}

void Breakpoints::removeNames() {
  std::erase_if(all, [](const Breakpoint &b) { return !b.line; });
  place();
}

void Breakpoints::enter(const ProgramImpl &ofKernel, const Kernel &next) {
  program = &ofKernel;
  kernel = &next;
  place();
}

uint32_t Breakpoints::lineOf(int id) const {
  const auto found = std::ranges::find(byPc, id);
  if (!kernel || found == byPc.end())
    return 0;
  const Insn &insn = kernel->code[size_t(found - byPc.begin())];
  const auto breakpoint = std::ranges::find(all, id, &Breakpoint::id);
  return breakpoint->file.empty() ? insn.line : insn.debugLine;
}

size_t Breakpoints::placesOf(int id) const { return size_t(std::ranges::count(byPc, id)); }

void Breakpoints::place() {
  byPc.assign(kernel ? kernel->code.size() : 0, 0);
  begin = 0;
  for (const Breakpoint &breakpoint : all)
    if (kernel)
      placeOne(breakpoint);
}

/// A line without instructions counts as the next one of the kernel that has some.
void Breakpoints::placeOne(const Breakpoint &breakpoint) {
  if (!breakpoint.kernel.empty()) {
    if (kernel->info.name == breakpoint.kernel ||
        displayName(kernel->info.name) == breakpoint.kernel)
      begin = breakpoint.id;
    return;
  }
  const auto lineOf = [&](const Insn &insn) {
    if (breakpoint.file.empty())
      return insn.line;
    const bool here = insn.debugFile && insn.debugFile < program->files.size() &&
                      isFile(program->files[insn.debugFile], breakpoint.file);
    return here ? insn.debugLine : 0;
  };
  uint32_t line = 0;
  for (const Insn &insn : kernel->code)
    if (const uint32_t at = lineOf(insn); at >= breakpoint.line && (!line || at < line))
      line = at;
  if (breakpoint.file.empty() && breakpoint.line < kernel->info.line)
    line = 0; // of another kernel
  bool inside = false;
  for (size_t pc = 0; pc < kernel->code.size(); ++pc) {
    const Insn &insn = kernel->code[pc];
    const bool named = !breakpoint.opcode.empty() && isOpcode(*program, insn, breakpoint.opcode);
    const bool onLine = breakpoint.line && line && lineOf(insn) == line;
    if (named || (onLine && !inside)) // the first of several instructions of one line
      byPc[pc] = breakpoint.id;
    inside = onLine;
  }
}

} // namespace fp4::sim::debug
