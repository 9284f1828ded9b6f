//===- PtxasReport.cpp - Reading what ptxas prints ------------------------===//
//
// ptxas -v prints, per kernel (release 13.0):
//   ptxas info    : Compiling entry function 'k' for 'sm_100a'
//   ptxas info    : Function properties for k
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
// and for a mistake
//   ptxas FILE, line 6; error   : Unknown modifier '.bar'
//
//===----------------------------------------------------------------------===//
#include "fp4/Target/Ptxas.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace {

/// The number right before `what` in `line`, or 0.
int64_t numberBefore(StringRef line, StringRef what) {
  size_t at = line.find(what);
  if (at == StringRef::npos)
    return 0;
  StringRef head = line.take_front(at).rtrim();
  StringRef digits = head.substr(head.find_last_not_of("0123456789") + 1);
  int64_t value = 0;
  return digits.getAsInteger(10, value) ? 0 : value;
}

/// Splits "ptxas FILE, line N; error   : TEXT" into N and TEXT; N is 0 where no line is named.
bool parseError(StringRef line, unsigned &number, StringRef &text) {
  number = 0;
  if (line.starts_with("ptxas fatal")) {
    text = line.split(':').second.trim();
    return true;
  }
  auto [where, rest] = line.split("; error");
  if (rest.empty())
    return false;
  text = rest.split(':').second.trim();
  where.rsplit("line ").second.trim().getAsInteger(10, number);
  return true;
}

} // namespace

std::vector<fp4::KernelResources> fp4::parsePtxasReport(std::string_view report) {
  std::vector<KernelResources> kernels;
  for (StringRef line : llvm::split(StringRef(report), '\n')) {
    if (line.contains("Compiling entry function '")) {
      kernels.emplace_back();
      kernels.back().name = line.split('\'').second.split('\'').first.str();
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (line.contains("bytes stack frame")) {
      kernel.stackBytes = numberBefore(line, " bytes stack frame");
      kernel.spillStores = numberBefore(line, " bytes spill stores");
      kernel.spillLoads = numberBefore(line, " bytes spill loads");
    } else if (line.contains(": Used ")) {
      kernel.registers = numberBefore(line, " registers");
      kernel.barriers = numberBefore(line, " barriers");
      kernel.sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

std::vector<std::string> fp4::parsePtxasWarnings(std::string_view report) {
  std::vector<std::string> warnings;
  for (StringRef line : llvm::split(StringRef(report), '\n'))
    if (size_t at = line.find("warning"); line.starts_with("ptxas") && at != StringRef::npos)
      warnings.push_back(line.substr(at).split(':').second.trim().str());
  return warnings;
}

std::string fp4::explainPtxasErrors(std::string_view report, std::string_view ptx) {
  llvm::SmallVector<StringRef> source;
  StringRef(ptx).split(source, '\n');
  std::string message;
  for (StringRef line : llvm::split(StringRef(report), '\n')) {
    unsigned number = 0;
    StringRef text;
    if (!parseError(line, number, text) || text.contains("aborted due to errors"))
      continue;
    message += message.empty() ? "" : "; ";
    message += text.str();
    if (number >= 1 && number <= source.size())
      message +=
          " (ptx line " + std::to_string(number) + ": " + source[number - 1].trim().str() + ")";
  }
  return message.empty() ? StringRef(report).trim().str() : message;
}

fp4::Expected<fp4::CudaVersion> fp4::parsePtxasVersion(std::string_view text) {
  StringRef release = StringRef(text).split("release ").second.take_while(
      [](char c) { return llvm::isDigit(c) || c == '.'; });
  CudaVersion version;
  auto [major, minor] = release.split('.');
  if (major.getAsInteger(10, version.major) || minor.getAsInteger(10, version.minor))
    return makeError(ErrorKind::Compile,
                     "ptxas --version must print a release such as 'release 13.0', but got '" +
                         StringRef(text).trim().str() + "'");
  return version;
}

fp4::CudaVersion fp4::requiredCuda(std::string_view features) {
  // The PTX ISA release history: the CUDA release that introduced each version.
  struct Row {
    int ptx;
    CudaVersion cuda;
  };
  static constexpr Row rows[] = {{80, {12, 0}}, {81, {12, 1}}, {82, {12, 2}}, {83, {12, 3}},
                                 {84, {12, 4}}, {85, {12, 5}}, {86, {12, 7}}, {87, {12, 8}},
                                 {88, {12, 9}}, {90, {13, 0}}, {91, {13, 1}}, {92, {13, 2}},
                                 {93, {13, 3}}, {94, {13, 4}}, {95, {13, 5}}};
  int ptx = 0;
  if (StringRef(features).split("+ptx").second.split(',').first.getAsInteger(10, ptx))
    return {};
  for (const Row &row : rows)
    if (row.ptx >= ptx)
      return row.cuda;
  return std::end(rows)[-1].cuda;
}
