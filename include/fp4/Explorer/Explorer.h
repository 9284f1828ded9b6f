//===- Explorer.h - The page of a run -------------------------------------===//
//
// One self-contained page of HTML about a program that was simulated: its texts side by side, the
// simulation over time, hazards at their lines. `fp4-runner --explore` and `fp4-sim run --explore`
// collect its data:
//
//   file, target, verdict     strings; passed: the program was right
//   texts                     toJson(Text), from the source to machine code
//   no_sass                   why there is no machine code; empty: there is
//   launches, names           readTrace()
//   times                     sim::toJson(KernelTime) of each launch, with a prediction
//   hazards, faults           sim::toJson(HazardReport); messages of kernels that failed
//   memory, layout            of programs that fp4 compiled: Compiler::memoryMap, tables of lib/ISA
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/SimulationOptions.h"
#include "fp4/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp4::explorer {

using Json = nlohmann::ordered_json;

/// SMs whose clusters have tracks: as many as run to their end in every sample of a launch.
inline constexpr uint32_t kSms = 2;

/// Returns true when the page's simulation predicts times: nobody asked for a policy that has none.
inline bool predicts(const sim::SimulationOptions &options) {
  return options.policy == "eager" || options.policy == "timed";
}

/// A text of the page, and the lines of other texts that each of its lines came from.
struct Text {
  std::string name;        ///< "source", "ptx", or the name of a file; unique for each module
  std::string module = {}; ///< PTX module of the text; empty: the whole program
  std::string text = {};
  std::vector<std::string> bases = {};             ///< names of the other texts
  /// Lines of its base text that each line came from, counted from 1.
  std::vector<std::vector<unsigned>> origins = {};
  std::vector<unsigned> base = {}; ///< index in `bases` of each line's base text; empty: 0
};
Json toJson(Text text);

/// PTX, whose lines come from those that its .loc directives name: of the text `base`, or where
/// that is empty of the files that .file directives name.
Text ptxText(std::string module, std::string ptx, const std::string &base);

/// The machine code that ptxas makes of a module for `target` (sim::listMachineCode); lines come
/// from the text "ptx".
Expected<Text> sassText(std::string module, const std::string &ptx, const std::string &target,
                        const std::string &ptxas = "");

/// The files from which most instructions of `texts` came, as far as they can be read.
std::vector<Text> sourceTexts(const std::vector<Text> &texts);

/// Adds `launches` and `names` from a trace (Timeline.h). A launch of more events than a browser
/// draws well loses its last ones, and has `cut`.
void readTrace(const std::string &path, Json &data);

/// The page with its data.
std::string makePage(const Json &data);

} // namespace fp4::explorer
