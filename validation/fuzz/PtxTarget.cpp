//===- PtxTarget.cpp - Mutated PTX, decoded and run -----------------------===//
#include "PtxTarget.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/ObserverList.h"
#include "fp4/Sim/Simulator.h"
#include "fp4/Sim/Timeline.h"
#include <cstring>
#include <sstream>

using namespace fp4;
using namespace fp4::fuzz;

namespace {

constexpr uint64_t kInstructions = 4000, kBufferBytes = 1 << 16;

/// A kernel with registers of every type, variables in every space, and instructions that stand in
/// the list behind "90| ", separated by "; ".
constexpr const char *kFrame = R"(
.version 9.0
.target sm_100a
.address_size 64
.global .align 16 .b8 gl[256];
.const .align 16 .b8 co[64];
.visible .func (.reg .b32 result) fn(.reg .b32 x)
{
  mov.b32 result, x;
  ret;
}
.visible .entry forms(.param .b64 p0, .param .b64 p1, .param .align 64 .b8 map[128], .param .b32 n)
{
  .reg .pred %p<16>; .reg .b8 %b<16>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<32>;
  .reg .b128 %q<8>; .reg .f32 %f<32>; .reg .f64 %e<16>;
  .shared .align 128 .b8 sm[4096];
  .local .align 16 .b8 lo[64];
  ld.param.b64 %d1, [p0];
  ld.param.b64 %d2, [p1];
  mov.u32 %r1, sm;
  mov.b64 %d3, map;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p1, %r2, 0;
  mbarrier.init.shared.b64 [sm], 1;
  bar.sync 0;
)";

constexpr const char *kEnd = "L:\n  ret;\n}\n";

bool says(const std::string &how, const char *word) {
  return how.find(word) != std::string::npos;
}

uint32_t numberBehind(const std::string &how, const std::string &word, uint32_t otherwise) {
  size_t at = how.find(word + "=");
  return at == std::string::npos
             ? otherwise
             : static_cast<uint32_t>(std::strtoul(how.c_str() + at + word.size() + 1, nullptr, 0));
}

sim::SimOptions simulation(const std::string &how) {
  sim::SimOptions options;
  options.hostThreads = 1;
  options.instructionLimit = kInstructions;
  options.seed = numberBehind(how, "seed", 1);
  for (const char *policy : {"eager", "lazy", "random", "delay"})
    if (says(how, policy))
      options.policy = *sim::parseCompletionPolicy(policy);
  if (says(how, "practice"))
    options.judgement = sim::Judgement::Practice;
  if (says(how, "sm_90a"))
    options.target = "sm_90a";
  options.print = [](std::string_view) {};
  return options;
}

sim::LaunchConfig launch(const sim::KernelInfo &kernel, const std::string &how) {
  sim::LaunchConfig config;
  config.block = {numberBehind(how, "block", 64), 1, 1};
  if (kernel.requiredCta[0] && !says(how, "otherblock"))
    config.block = kernel.requiredCta;
  config.grid[0] = numberBehind(how, "grid", 1);
  for (size_t i = 0; i < 3 && kernel.requiredCluster[0]; ++i)
    config.grid[i] *= std::min(std::max(kernel.requiredCluster[i], 1u), 16u);
  config.dynamicSharedBytes = numberBehind(how, "shared", 0);
  return config;
}

/// Pointers, tensor maps and small numbers, by the size of the parameter.
std::vector<std::byte> parameters(const sim::KernelInfo &kernel, sim::GlobalMemory &memory,
                                  const std::string &how) {
  std::vector<std::byte> bytes(kernel.paramBytes);
  const std::vector<std::byte> contents(kBufferBytes, std::byte(numberBehind(how, "fill", 0)));
  for (size_t i = 0; i < std::min<size_t>(kernel.params.size(), 64); ++i) {
    const sim::ParamInfo &param = kernel.params[i];
    if (param.size != 8 && param.size != 128)
      continue;
    const uint64_t address = memory.allocate(kBufferBytes);
    (void)memory.write(address, contents.data(), contents.size());
    std::memcpy(bytes.data() + param.offset, &address, 8);
    hw::TensorMap map;
    map.address = address;
    map.dims = {128, 128};
    map.strides = {128};
    map.box = {numberBehind(how, "box", 64), 64};
    auto encoded = map.encode();
    if (param.size == 128 && encoded && !says(how, "nomap"))
      std::memcpy(bytes.data() + param.offset, encoded->data(), encoded->size());
    if (uint32_t flip = numberBehind(how, "flip", 0); param.size == 128 && flip)
      bytes[param.offset + flip % 128] ^= std::byte(1 << flip / 128 % 8);
  }
  return bytes;
}

} // namespace

void fp4::fuzz::runPtx(const std::string &text, const std::string &how) {
  auto program = sim::Program::parseAvailable(text, "fuzz.ptx");
  if (!program)
    return;
  size_t count = 0;
  for (const sim::KernelInfo &kernel : (*program)->kernels()) {
    if (++count > 3)
      return;
    sim::SimOptions options = simulation(how);
    sim::HazardChecker checker({.strict = says(how, "strict")});
    sim::AccessStatistics statistics;
    std::ostringstream json;
    sim::Timeline timeline(json);
    sim::ObserverList list;
    list.add(&checker);
    if (says(how, "statistics")) {
      list.add(&statistics);
      list.add(&timeline);
    }
    if (says(how, "check"))
      options.observer = &list;
    sim::Simulator simulator(options);
    const auto bytes = parameters(kernel, simulator.memory(), how);
    (void)simulator.launch(**program, kernel.name, launch(kernel, how), bytes);
    for (const sim::HazardReport &report : checker.reports())
      (void)report.text();
  }
}

void PtxTarget::addForms(const std::string &list) {
  std::istringstream in(list);
  std::string body;
  unsigned forms = 0;
  auto finish = [&] {
    mutator.add(kFrame + body + kEnd);
    body.clear();
  };
  for (std::string line; std::getline(in, line);) {
    const size_t bar = line.find("| ");
    if (bar == std::string::npos || bar > 4 || line.substr(0, 1) == "@")
      continue;
    std::istringstream rest(line.substr(bar + 2));
    for (std::string form; std::getline(rest, form, ';');) {
      mutator.addLine("  " + form + ";");
      body += "  " + form + ";\n";
      if (++forms % 12 == 0)
        finish();
    }
  }
  finish();
}

bool PtxTarget::load(const std::vector<std::filesystem::path> &corpus) {
  for (const auto &file : filesOf(corpus, {".ptx", ".txt"})) {
    if (file.extension() == ".ptx")
      mutator.add(slurp(file));
    else if (file.filename() == "ptx-isa.txt")
      addForms(slurp(file));
  }
  return !mutator.empty();
}

std::string PtxTarget::make(Random &random) {
  static const std::vector<std::string> words = {"check",   "strict",     "practice", "statistics",
                                                 "sm_90a", "otherblock", "nomap"};
  static const std::vector<std::string> policies = {"eager", "lazy", "random", "delay"};
  static const std::vector<unsigned> blocks = {1, 31, 32, 64, 128, 192, 256}, grids = {1, 1, 2, 4},
                                     shared = {0, 0, 64, 1024, 49152, 227 << 10},
                                     boxes = {64, 64, 16, 128};
  std::string how = "// fuzz: " + random.of(policies);
  for (const std::string &word : words)
    if (random.oneIn(word == "check" ? 2 : 5))
      how += " " + word;
  how += " seed=" + std::to_string(random.below(100)) +
         " block=" + std::to_string(random.of(blocks)) +
         " grid=" + std::to_string(random.of(grids)) +
         " shared=" + std::to_string(random.of(shared)) +
         " box=" + std::to_string(random.of(boxes)) +
         " fill=" + std::to_string(random.below(256));
  if (random.oneIn(6))
    how += " flip=" + std::to_string(1 + random.below(1023));
  if (random.oneIn(2))
    return how + "\n" + mutator.make(random);
  std::string body;
  for (size_t count = 1 + random.below(8); count > 0; --count)
    body += mutator.makeLine(random);
  return how + kFrame + body + kEnd;
}

void PtxTarget::run(const std::string &input) { runPtx(input, input.substr(0, input.find('\n'))); }
