//===- MachineMix.cpp - Machine instructions of each PTX instruction ------===//
#include "Sim/Time/MachineMix.h"
#include "Sim/Time/RegisterReads.h"
#include "fp4/Sim/MachineCode.h"
#include "fp4/Support/Host.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Process.h"
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>

namespace fp4::sim {
namespace {

struct MachineRow {
  std::string_view prefix;
  Pipe pipe;
  bool wide = false;
};
constexpr MachineRow machineRows[] = {
#define FP4_MACHINE(prefix, pipe) {prefix, pipe},
#define FP4_MACHINE_WIDE(prefix) {prefix, PipeHeavy, true},
#include "Sim/Time/MachineUnits.def"
};

/// Machine instructions of which each PTX instruction has one: ptxas copies these only where it
/// unrolls.
constexpr std::string_view anchorPrefixes[] = {
    "LD",   "ST",   "ATOM", "RED", "BAR",     "SYNCS", "UTMA",      "UBLK",   "HMMA",
    "QMMA", "IMMA", "OMMA", "UTC", "UTMACMD", "SHFL",  "WARPGROUP", "MEMBAR", "FENCE"};

/// MMAs of a warpgroup.
constexpr std::string_view wgmmaPrefixes[] = {"HGMMA", "QGMMA", "IGMMA", "BGMMA"};

/// Instructions that ptxas adds where it likes: parameters, descriptors of memory, spilled
/// registers.
constexpr std::string_view addedPrefixes[] = {"LDC", "LDL", "STL"};

constexpr auto limit = std::chrono::seconds(60);

uint32_t number(std::string_view text) {
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

//===----------------------------------------------------------------------===//
// The module with lines
//===----------------------------------------------------------------------===//

bool isDebugDirective(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view name = line.substr(0, line.find_first_of(" \t\r"));
  return name == ".loc" || name == ".file"; // and not .local
}

/// `lines` in order. The directives that the module had are left out.
std::string withLines(const std::string &ptx, const std::vector<uint32_t> &lines) {
  std::string text;
  uint32_t number = 0;
  auto next = lines.begin();
  bool named = false;
  for (size_t begin = 0; begin < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', begin), ptx.size());
    const std::string_view line(ptx.data() + begin, end - begin);
    begin = end + 1;
    if (++number; isDebugDirective(line))
      continue;
    if (next != lines.end() && *next == number) {
      text += ".loc 1 " + std::to_string(number) + " 0\n";
      ++next;
    }
    (text += line) += '\n';
    if (!named && line.find(".address_size") != line.npos) {
      text += ".file 1 \"ptx\"\n";
      named = true;
    }
  }
  return text;
}

/// Returns a bit for each line of parameters that operands name, as "c[0x0][0x2c0]" does, but for
/// the first one, which comes with the launch.
uint64_t parametersOf(std::string_view operands) {
  constexpr std::string_view bank = "c[0x0][0x";
  constexpr uint32_t begin = 0x210, lineBytes = 64, most = 63;
  uint64_t lines = 0;
  for (size_t at = operands.find(bank); at != operands.npos; at = operands.find(bank, at)) {
    at += bank.size();
    uint32_t address = 0;
    std::from_chars(operands.data() + at, operands.data() + operands.size(), address, 16);
    if (const uint32_t line = address / lineBytes; line > begin / lineBytes)
      lines |= uint64_t(1) << std::min(line - begin / lineBytes, most);
  }
  return lines;
}

//===----------------------------------------------------------------------===//
// The listing
//===----------------------------------------------------------------------===//

/// Reads a listing line by line.
class Counter {
public:
  std::map<std::string, MachineKernel> kernels;

  void read(std::string_view line) {
    if (const size_t at = line.find(".text."); at != line.npos && line.find("//---") != line.npos) {
      std::string_view name = line.substr(at + 6);
      name = name.substr(0, name.find_first_of(" \t"));
      kernel = &kernels[std::string(name)];
      function = '$' + std::string(name) + '$';
      counts = true;
      source = 0;
      place = 0;
      skipTo.clear();
      passed.clear();
    } else if (!kernel) {
      return;
    } else if (line.starts_with('$')) { // called functions come behind the kernel
      counts = line.starts_with(function) && line.find("$__internal_") == line.npos;
      source = 0;
      skipTo.clear();
    } else if (!counts) { // ptxas' own: a slow path, which is called rarely
      return;
    } else if (const size_t at = line.find(", line ");
               at != line.npos && line.find("//##") != line.npos) {
      const uint32_t next = number(line.substr(at + 7));
      if (next != std::exchange(source, next))
        skipTo.clear(); // the target is far away, and no end of a slow path
    } else if (line.starts_with(".L_")) {
      const std::string_view label = line.substr(0, line.find(':'));
      if (label == skipTo)
        skipTo.clear();
      passed.emplace(label);
    } else if (line.find("/*") != line.npos && line.find(';') != line.npos) {
      instruction(line);
    }
  }

private:
  /// "/*0080*/  @!P0 BRA `(.L_x_0) ;"
  void instruction(std::string_view line) {
    line.remove_prefix(std::min(line.find("*/") + 2, line.size()));
    const auto word = [&] {
      line.remove_prefix(std::min(line.find_first_not_of(" \t{"), line.size()));
      std::string_view text = line.substr(0, line.find_first_of(" \t;"));
      line.remove_prefix(text.size());
      return text;
    };
    std::string_view name = word();
    const bool guarded = name.starts_with('@');
    if (guarded)
      name = word();
    if (!source || name == "NOP")
      return;
    ++place;
    add(name, line.substr(0, line.find(';')));
    // Instructions between a branch and its target within one line of PTX are a slow path.
    if (name.starts_with("CALL"))
      dropSlowPath();
    if (name == "BRA" && guarded)
      lastBranch = {source, std::string(label(line)), kernel->lines[source]};
  }

  static std::string_view label(std::string_view line) {
    const size_t begin = line.find(".L_");
    if (begin == line.npos)
      return {};
    return line.substr(begin, line.find_first_of(")` ;", begin) - begin);
  }

  void add(std::string_view name, std::string_view operands) {
    if (!skipTo.empty())
      return;
    MachineCount &count = kernel->lines[source];
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::ranges::any_of(wgmmaPrefixes, begins)) {
      ++count.wgmma;
      kernel->mmas.push_back({source, place});
      return;
    }
    ++count.issue;
    count.places += place;
    count.parameters |= parametersOf(operands);
    count.anchors +=
        std::ranges::any_of(anchorPrefixes, begins) && std::ranges::none_of(addedPrefixes, begins)
            ? 1
            : 0;
    if (begins("LDL") || begins("STL"))
      (begins("LDL") ? count.reloads : count.spills) += rowsOf(name);
    for (const MachineRow &row : machineRows)
      if (begins(row.prefix)) {
        ++(row.wide ? count.wide : row.pipe == PipeLite ? count.fp32 : count.pipes[row.pipe]);
        registers.next(operands, name.starts_with("IMAD.WIDE"), count.reads);
        return;
      }
  }

  /// Rows of 128 bytes that a warp's LDL or STL moves.
  static uint32_t rowsOf(std::string_view name) {
    return name.find(".128") != name.npos ? 4 : name.find(".64") != name.npos ? 2 : 1;
  }

  void dropSlowPath() {
    if (lastBranch.source != source || lastBranch.target.empty() ||
        passed.contains(lastBranch.target))
      return;
    kernel->lines[source] = lastBranch.before;
    ++kernel->lines[source].rejoins;
    skipTo = lastBranch.target;
  }

  MachineKernel *kernel = nullptr;
  std::string function; ///< prefix of the names of the module's functions that the kernel calls
  bool counts = false;
  uint32_t source = 0;
  uint64_t place = 0; ///< place of the present instruction
  RegisterReads registers;
  std::string skipTo; ///< the label at which counting goes on
  std::set<std::string, std::less<>> passed; ///< labels of the kernel so far
  struct {
    uint32_t source = 0;
    std::string target;
    MachineCount before; ///< count of the line, the branch included
  } lastBranch;
};

Expected<std::string> toolPath(std::string given, const char *variable, const char *name) {
  if (const char *value = std::getenv(variable); value && given.empty())
    given = value;
  if (!given.empty() && given != "none")
    return given;
  if (auto found = findProgram(name); found && given.empty())
    return found;
  for (const std::string &folder : given.empty() ? toolkitFolders() : std::vector<std::string>())
    if (auto found = findProgram(folder + "/" + name))
      return found;
  return makeError(ErrorKind::Usage, std::string("there is no ") + name,
                   std::string("put it on PATH, or name it with $") + variable);
}

/// "Compiling entry function 'NAME' ...", then "8 bytes stack frame, 16 bytes spill stores" and
/// "Used 40 registers", as ptxas says.
void addRegisters(std::string_view report, std::map<std::string, MachineKernel> &kernels) {
  constexpr std::string_view entry = "entry function '", used = "Used ", frame = "stack frame, ",
                             stores = " bytes spill stores";
  for (size_t at = report.find(entry); at != report.npos;) {
    at += entry.size();
    const size_t next = report.find(entry, at);
    const std::string_view part = report.substr(at, next - at);
    at = next;
    const auto found = kernels.find(std::string(part.substr(0, part.find('\''))));
    if (found == kernels.end())
      continue;
    if (const size_t count = part.find(used); count != part.npos)
      found->second.registers = number(part.substr(count + used.size()));
    if (const size_t bytes = part.find(frame);
        bytes != part.npos && part.find(stores, bytes) != part.npos)
      found->second.spilledBytes = number(part.substr(bytes + frame.size()));
  }
}

Expected<std::string> output(const std::vector<std::string> &command) {
  FP4_ASSIGN(auto result, runProcess(command, limit));
  if (result.code || result.timedOut)
    return makeError(ErrorKind::Usage, command.front() + " " + result.ending(limit),
                     result.output.substr(0, result.output.find('\n')));
  return result.output;
}

/// Reports of ptxas and nvdisasm about one module.
struct Assembled {
  std::string report, listing;
};

Expected<Assembled> assemble(const std::string &ptx, const std::vector<uint32_t> &lines,
                             const std::string &target, const std::string &named = "") {
  FP4_ASSIGN(auto ptxas, toolPath(named, "FP4_PTXAS", "ptxas"));
  FP4_ASSIGN(auto disassembler, toolPath("", "NVDISASM", "nvdisasm"));
  FP4_ASSIGN(auto source, TemporaryFile::create("ptx"));
  FP4_ASSIGN(auto cubin, TemporaryFile::create("cubin"));
  FP4_ASSIGN(auto listing, TemporaryFile::create("sass"));
  FP4_TRY(writeFile(source->path(), withLines(ptx, lines)));
  FP4_ASSIGN(auto report, output({ptxas, "-v", "-arch=" + target, "-lineinfo", source->path(), "-o",
                                  cubin->path()}));
  constexpr const char *toFile = "exec \"$0\" -g -c \"$1\" > \"$2\""; // it may be long
  FP4_TRY(output({"/bin/sh", "-c", toFile, disassembler, cubin->path(), listing->path()}));
  FP4_ASSIGN(auto text, readText(listing->path()));
  return Assembled{std::move(report), std::move(text)};
}

} // namespace

std::map<std::string, MachineKernel> countMachineCode(std::string_view listing) {
  Counter counter;
  for (size_t begin = 0; begin < listing.size();) {
    const size_t end = std::min(listing.find('\n', begin), listing.size());
    counter.read(listing.substr(begin, end - begin));
    begin = end + 1;
  }
  return std::move(counter.kernels);
}

Expected<std::map<std::string, MachineKernel>>
assembleMix(const std::string &ptx, const std::vector<uint32_t> &lines, const std::string &target) {
  FP4_ASSIGN(auto made, assemble(ptx, lines, target));
  auto kernels = countMachineCode(made.listing);
  addRegisters(made.report, kernels);
  return kernels;
}

namespace {

/// The lines at which instructions of any kernel begin, in order.
std::vector<uint32_t> linesOf(const ProgramImpl &program) {
  std::vector<uint32_t> lines;
  for (const auto &kernel : program.kernels)
    for (const Insn &insn : kernel->code)
      if (insn.line)
        lines.push_back(insn.line);
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

using Module = Expected<std::map<std::string, MachineKernel>>;

/// Modules live as long as the process: a tuner or a test suite launches them again and again.
std::shared_ptr<const Module> assembled(const ProgramImpl &program, const std::string &target) {
  static std::mutex lock;
  static std::map<std::pair<size_t, std::string>, std::shared_ptr<const Module>> known;
  std::lock_guard<std::mutex> guard(lock);
  auto &module = known[{std::hash<std::string>()(program.text), target}];
  if (!module)
    module = std::make_shared<const Module>(assembleMix(program.text, linesOf(program), target));
  return module;
}

} // namespace

Expected<std::string> listMachineCode(const Program &program, const std::string &target,
                                      const std::string &ptxas) {
  const ProgramImpl &impl = program.impl();
  FP4_ASSIGN(auto made, assemble(impl.text, linesOf(impl), target, ptxas));
  return std::move(made.listing);
}

MachineCode findMachineCode(const ProgramImpl &program, const std::string &kernel,
                            const std::string &target) {
  MachineCode code;
  const std::shared_ptr<const Module> module = assembled(program, target);
  if (!*module) {
    code.note = module->error().message;
    return code;
  }
  auto found = (*module)->find(kernel);
  if (found == (*module)->end() || found->second.lines.empty()) {
    code.note = "the listing of nvdisasm has no lines of '" + kernel + "'";
    return code;
  }
  code.kernel = {module, &found->second}; // it lives as long as the module
  return code;
}

} // namespace fp4::sim
