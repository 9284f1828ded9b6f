//===- Foresee.cpp - Instructions that a device cannot run ----------------===//
//
// Instructions are judged by their words, and instruction descriptors if a register is given a
// constant once, as compilers do. Computed values are judged when they run.
//
//===----------------------------------------------------------------------===//
#include "fp4/Sim/Foresee.h"
#include "Sim/PTX/Parser.h"
#include "fp4/ISA/InstrDescriptor.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace fp4::sim {
namespace {

using ptx::ArgKind;
using ptx::Instruction;

bool hasModifier(const Instruction &insn, std::string_view begin) {
  return std::ranges::any_of(insn.modifiers, [&](auto m) { return m.starts_with(begin); });
}

/// An instruction has a feature of the target when its first word is `opcode` and one of its
/// modifiers begins with `modifier`, where there is one.
struct Need {
  std::string_view opcode, modifier;
  bool hw::TargetFeatures::*has;
  std::string_view feature;
};
constexpr Need needs[] = {
    {"wgmma", "", &hw::TargetFeatures::hasWgmma, "wgmma"},
    {"tcgen05", "", &hw::TargetFeatures::hasTcgen05, "tcgen05"},
    {"tcgen05", "kind::i8", &hw::TargetFeatures::hasTcgen05Int8, "tcgen05 of integers"},
    {"clusterlaunchcontrol", "", &hw::TargetFeatures::hasClusterLaunchControl,
     "cluster launch control"},
    {"cp", "bulk", &hw::TargetFeatures::hasTma, "TMA"},
    {"tensormap", "", &hw::TargetFeatures::hasTma, "TMA"},
    {"mma", "block_scale", &hw::TargetFeatures::hasMmaBlockScale, "block-scaled mma.sync"},
    {"cvt", "rs", &hw::TargetFeatures::hasStochasticConvert, "stochastic conversion"},
    {"cvt", "e2m1x", &hw::TargetFeatures::hasFp4Convert, "fp4 conversion"},
    {"cvt", "ue8m0x", &hw::TargetFeatures::hasFp4Convert, "fp4 conversion"},
    {"cvt", "ue5m3x", &hw::TargetFeatures::hasUE5M3, "scales of ue5m3"},
};

/// Registers of a function that exactly one instruction gives a value, a constant.
std::map<std::string_view, uint64_t> constantsOf(const ptx::Function &function) {
  std::map<std::string_view, uint64_t> constants;
  std::set<std::string_view> written;
  for (const Instruction &insn : function.instructions) {
    if (insn.args.empty() || insn.args[0].kind != ArgKind::Name)
      continue;
    const std::string_view name = insn.args[0].text;
    const bool first = written.insert(name).second;
    if (first && insn.opcode == "mov" && insn.args.size() == 2 && insn.guard.empty() &&
        insn.args[1].kind == ArgKind::Int)
      constants[name] = insn.args[1].value;
    else
      constants.erase(name);
  }
  return constants;
}

class Foresight {
public:
  explicit Foresight(const hw::TargetModel &target) : target(target) {}

  void look(const ptx::Function &function, std::string_view file) {
    const auto constants = constantsOf(function);
    std::set<std::string> said;
    for (const Instruction &insn : function.instructions)
      if (Status good = judge(insn, constants); !good && said.insert(good.error().message).second)
        errors.push_back(
            Error{ErrorKind::Simulation,
                  fmt::format("{}:{}:{}: '{}' in '{}': {}", file, insn.loc.line, insn.loc.column,
                              wordsOf(insn), function.name, good.error().message),
                  good.error().note});
  }

  void look(const KernelInfo &kernel) {
    const auto volume = [](const std::array<uint32_t, 3> &v) {
      return uint64_t(v[0]) * v[1] * v[2];
    };
    constexpr uint64_t largestCluster = 16; // with the attribute of the function
    limit(kernel, "bytes of static shared memory", kernel.staticSharedBytes,
          target.limits.sharedBytesPerCta);
    limit(kernel, "threads in a CTA", volume(kernel.requiredCta), target.limits.maxThreadsPerCta);
    limit(kernel, "CTAs in a cluster", volume(kernel.requiredCluster), largestCluster);
  }

  std::vector<Error> errors;

private:
  static std::string wordsOf(const Instruction &insn) {
    std::string words(insn.opcode);
    for (std::string_view modifier : insn.modifiers)
      words += fmt::format(".{}", modifier);
    return words;
  }

  Status judge(const Instruction &insn,
               const std::map<std::string_view, uint64_t> &constants) const {
    for (const Need &need : needs)
      if (insn.opcode == need.opcode && (need.modifier.empty() || hasModifier(insn, need.modifier)))
        FP4_TRY(hw::requireFeature(target, need.has, need.feature));
    return judgeDescriptor(insn, constants);
  }

  Status judgeDescriptor(const Instruction &insn,
                         const std::map<std::string_view, uint64_t> &constants) const {
    const auto kind =
        std::ranges::find_if(insn.modifiers, [](auto m) { return m.starts_with("kind::"); });
    if (insn.opcode != "tcgen05" || !hasModifier(insn, "mma") || kind == insn.modifiers.end())
      return {};
    const size_t at = hasModifier(insn, "sp") ? 4 : 3; // behind the metadata
    const auto found = at < insn.args.size() ? constants.find(insn.args[at].text) : constants.end();
    const auto parsed = hw::parseMmaKind(std::string_view(*kind).substr(6));
    if (found == constants.end() || !parsed)
      return {};
    const hw::MmaDepth depth = depthOf(*parsed, uint32_t(found->second));
    if (depth == hw::MmaDepth::K96)
      FP4_TRY(hw::requireFeature(target, &hw::TargetFeatures::hasFp4K96, "product of K = 96"));
    if (depth == hw::MmaDepth::Double)
      FP4_TRY(
          hw::requireFeature(target, &hw::TargetFeatures::hasDoubleK, "product of the double K"));
    return {};
  }

  /// A descriptor that decodes says its depth; others are judged when they run.
  static hw::MmaDepth depthOf(hw::MmaKind kind, uint32_t bits) {
    if (hw::isBlockScaled(kind)) {
      const auto scaled = hw::BlockScaledInstrDesc::decode(kind, bits);
      return scaled ? scaled->depth : hw::MmaDepth::Single;
    }
    const auto dense = hw::InstrDesc::decode(kind, bits);
    return dense && dense->doubleK ? hw::MmaDepth::Double : hw::MmaDepth::Single;
  }

  void limit(const KernelInfo &kernel, std::string_view what, uint64_t value, uint64_t most) {
    if (value > most)
      errors.push_back(Error{ErrorKind::Simulation,
                             fmt::format("kernel '{}' has {} {}, but target '{}' allows {}",
                                         kernel.name, value, what, target.name, most),
                             ""});
  }

  const hw::TargetModel &target;
};

} // namespace

std::vector<Error> foresee(std::string_view text, const Program &program,
                           const hw::TargetModel &target) {
  Foresight foresight(target);
  if (auto module = ptx::parse(text, program.name()))
    for (const ptx::Function &function : module->functions)
      foresight.look(function, program.name());
  for (const KernelInfo &kernel : program.kernels())
    foresight.look(kernel);
  return std::move(foresight.errors);
}

} // namespace fp4::sim
