//===- QuantizeCommand.cpp - Quantizers on a command line -----------------===//

#include "fp4/Harness/QuantizeCommand.h"

#include "QuantizeFiles.h"
#include "QuantizeReport.h"
#include "fp4/Harness/TensorNpy.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

/// A recipe whose scales are bytes, as the files have them.
Expected<numerics::Recipe> recipeOfFiles(const std::string &text) {
  FP4_ASSIGN(auto recipe, numerics::parseRecipe(text));
  if (!numerics::hasF32Scales(recipe.format))
    return recipe;
  return makeError(ErrorKind::Usage,
                   fmt::format("files must have scales of 8 bits, but recipe '{}' has scales of f32",
                               recipe.name),
                   "compile a program with fp4.quantize");
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

Expected<Quantized> quantizeWith(const std::string &text, const QuantizeCommand &command,
                                 const Matrix &matrix) {
  FP4_ASSIGN(auto recipe, recipeOfFiles(text));
  FP4_ASSIGN(auto layout, layoutOf(command));
  numerics::QuantizeOptions options;
  numerics::SideOptions side;
  side.amax = command.amax;
  options.rowwise.reset();
  (command.columnwise ? options.columnwise : options.rowwise) = side;
  options.layout = layout;
  options.amaxPerRow = command.perRow;
  FP4_ASSIGN(auto pair,
             quantizeMatrix(recipe, matrix.values, matrix.rows, matrix.columns, options));
  auto &made = command.columnwise ? pair.columnwise : pair.rowwise;
  return measure(text, recipe, std::move(*made), matrix, command.columnwise);
}

Expected<std::string> quantize(const QuantizeCommand &command) {
  FP4_ASSIGN(auto array, readNpy(command.input));
  FP4_ASSIGN(auto shape, matrixOf(array, command.input));
  FP4_ASSIGN(auto values, valuesOf(array, command.type, command.input));
  const uint64_t columns = values.size() / std::max<uint64_t>(shape.first, 1);
  const Matrix matrix{std::move(values), shape.first, columns};
  FP4_ASSIGN(auto first, quantizeWith(command.recipe, command, matrix));
  if (!command.output.empty())
    FP4_TRY(writeSide(first.side, first.decisions, command));
  QuantizeReport report{command.input, array.str(), {std::move(first)}};
  if (!command.compare.empty()) {
    FP4_ASSIGN(auto second, quantizeWith(command.compare, command, matrix));
    report.made.push_back(std::move(second));
  }
  return command.json ? report.json() : report.text();
}

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

Expected<std::string> dequantize(const QuantizeCommand &command) {
  FP4_ASSIGN(auto recipe, recipeOfFiles(command.recipe));
  FP4_ASSIGN(auto side, readSide(command, recipe));
  FP4_ASSIGN(auto values, numerics::dequantizeSide(recipe, side));
  FP4_TRY(
      writeNpy(command.output, floatsToNpy(values, {int64_t(side.rows), int64_t(side.columns)})));
  return fmt::format("{}: {}x{} of '<f4', by {}\n", command.output, side.rows, side.columns,
                     command.recipe);
}

void addShared(CLI::App &app, QuantizeCommand &command) {
  app.add_option("--recipe", command.recipe,
                 "a recipe, or one with other decisions: \"modelopt, guard = none\"")
      ->required();
  app.add_option("--layout", command.layout,
                 "layout of the scales: linear, padded_128x4, tiled_128x4, tiled_8x4; or ggml: "
                 "scales and codes in ggml's blocks, PREFIX.ggml.npy")
      ->capture_default_str();
  app.add_option("--amax", command.amax, "amax of the tensor, instead of its own")
      ->check([](const std::string &text) {
        float amax = -1;
        const bool isAmax = CLI::detail::lexical_cast(text, amax) && std::isfinite(amax) && amax >= 0;
        return isAmax ? "" : "must be a finite number that is not negative, but got '" + text + "'";
      });
}

} // namespace

void addQuantizeCommands(CLI::App &app, QuantizeCommand &command) {
  CLI::App *quantize =
      app.add_subcommand("quantize", "Quantize a matrix of a .npy file with a named recipe");
  addShared(*quantize, command);
  quantize->add_option("input", command.input, "x.npy")->required();
  quantize->add_option("-o", command.output, "PREFIX of .codes.npy, .scales.npy and .amax.npy");
  quantize->add_option("--compare", command.compare, "a second recipe: say where it differs");
  quantize->add_option("--type", command.type,
                       "type of the bytes of the input: bf16, f8E4M3FN, f8E5M2, f8E8M0FNU, "
                       "f6E2M3FN, f6E3M2FN, f4E2M1FN");
  quantize->add_flag("--columnwise", command.columnwise, "blocks along the rows' dimension");
  quantize->add_flag("--per-row", command.perRow, "an amax for each row of the output (per token)");
  quantize->add_flag("--json", command.json, "print one JSON object");
  quantize->callback([&command] { command.verb = QuantizeCommand::Verb::Quantize; });
  CLI::App *dequantize =
      app.add_subcommand("dequantize", "Convert the files of quantize back to fp32");
  addShared(*dequantize, command);
  dequantize->add_option("input", command.input, "PREFIX of quantize, or the codes")->required();
  dequantize->add_option("-o", command.output, "y.npy")->required();
  dequantize->add_option("--scales", command.scales, "the scales, where the input is no prefix");
  dequantize->callback([&command] { command.verb = QuantizeCommand::Verb::Dequantize; });
}

Expected<std::string> runQuantizeCommand(const QuantizeCommand &command) {
  return command.verb == QuantizeCommand::Verb::Quantize ? quantize(command) : dequantize(command);
}

} // namespace fp4::harness
