//===- QuantizeCommand.h - Quantizers on a command line -------------------===//
//
//   fp4-runner quantize --recipe transformer_engine x.npy -o q       q.codes.npy, q.scales.npy, ...
//   fp4-runner quantize --recipe modelopt --compare vllm x.npy       in which codes do they differ
//   fp4-runner dequantize --recipe transformer_engine q -o y.npy
//   fp4-runner quantize --recipe ggml_mxfp4 --layout ggml x.npy -o q    q.ggml.npy, as ggml stores it
//
// The reference quantizers of lib/Numerics on .npy files, without a program or a device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <optional>
#include <vector>

namespace CLI {
class App;
}

namespace fp4::harness {

struct QuantizeCommand {
  enum class Verb { None, Quantize, Dequantize } verb = Verb::None;
  std::string recipe;
  std::string compare; ///< a second recipe; empty: none
  std::string input;   ///< x.npy; to dequantize the prefix of three files, or the codes
  std::string output;  ///< prefix of the files; to dequantize the file. Empty: nothing is written
  std::string type;    ///< element type of the input, if the file does not say
  std::string layout = "linear";
  std::string scales; ///< file to dequantize from, instead of PREFIX.scales.npy
  std::optional<float> amax;
  bool columnwise = false;
  bool perRow = false; ///< an amax for each row of the output
  bool json = false;
};

/// Adds the subcommands quantize and dequantize. `command` must outlive the parse.
void addQuantizeCommands(CLI::App &app, QuantizeCommand &command);

/// The output of the command: a few lines, or one JSON object. The files of the command are then
/// written.
Expected<std::string> runQuantizeCommand(const QuantizeCommand &command);

} // namespace fp4::harness
