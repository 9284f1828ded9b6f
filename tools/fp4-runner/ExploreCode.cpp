//===- ExploreCode.cpp - PTX and SASS for the page ------------------------===//
//
// PTX names the lines of its origin in .loc, and nvdisasm in comments ("//## File ..., line 7"): a
// line of the listing belongs to the last one before it.
//
//===----------------------------------------------------------------------===//

#include "Explore.h"

#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Process.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace fp4::runner {
namespace {

namespace json = llvm::json;
using llvm::StringRef;

/// The number of the origin's line that `line` announces; 0 for none.
unsigned announcedLine(StringRef line) {
  unsigned number = 0;
  line = line.ltrim();
  if (line.consume_front(".loc")) {
    llvm::SmallVector<StringRef> words;
    line.split(words, ' ', -1, /*KeepEmpty=*/false);
    StringRef second = words.size() > 1 ? words[1] : line.ltrim("\t 0123456789");
    return second.trim().getAsInteger(10, number) ? 0 : number;
  }
  if (!line.consume_front("//## File"))
    return 0;
  StringRef digits = line.rsplit("line ").second.take_while(llvm::isDigit);
  return digits.getAsInteger(10, number) ? 0 : number;
}

/// Directives, labels and comments came from nothing.
bool isInstruction(StringRef line) {
  line = line.trim();
  return !line.empty() && !line.starts_with(".") && !line.starts_with("//") &&
         !line.starts_with("$") && !line.ends_with(":") && line != "{" && line != "}";
}

json::Object listing(std::string name, const std::string &module, StringRef text) {
  json::Array origins;
  unsigned current = 0;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (unsigned announced = announcedLine(line))
      current = announced;
    origins.push_back(current && isInstruction(line) ? json::Array{current} : json::Array{});
  }
  return json::Object{{"name", std::move(name)}, {"module", module}, {"base", "scheduled"},
                      {"text", text.str()},      {"origins", std::move(origins)}};
}

/// The output of nvdisasm for a cubin.
Expected<std::string> disassemble(const std::string &cubin) {
  std::string program = llvm::sys::Process::GetEnv("NVDISASM").value_or("");
  if (program.empty())
    if (auto found = llvm::sys::findProgramByName("nvdisasm"))
      program = *found;
  if (program.empty())
    return makeError(ErrorKind::Usage, "there is no nvdisasm on PATH or in $NVDISASM");
  FP4_ASSIGN(auto file, TemporaryFile::create("cubin"));
  FP4_TRY(writeFile(file->path(), cubin));
  const auto limit = std::chrono::seconds(60);
  FP4_ASSIGN(auto result, runProcess({program, "-g", "-c", file->path()}, limit));
  if (result.code != 0 || result.timedOut)
    return makeError(ErrorKind::Usage, "nvdisasm " + result.ending(limit));
  return result.output;
}

} // namespace

json::Array codeListings(const KernelCode &kernel, std::string &why) {
  json::Array listings;
  listings.push_back(listing("ptx " + kernel.module, kernel.module, kernel.ptx));
  if (kernel.cubin.empty()) {
    why = "there is no ptxas, so there are no cubins";
    return listings;
  }
  Expected<std::string> sass = disassemble(kernel.cubin);
  if (sass)
    listings.push_back(listing("sass " + kernel.module, kernel.module, *sass));
  else
    why = sass.error().message;
  return listings;
}

} // namespace fp4::runner
