// Orientations, block shapes and groups around BlockQuantizer.
#include "fp4/Numerics/QuantizeMatrix.h"
#include "BlockQuantizer.h"
#include "F32Blocks.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Quantize.h"
#include <algorithm>
#include <string>

namespace fp4::numerics {

std::vector<float> transposed(std::span<const float> values, uint64_t rows, uint64_t columns) {
  std::vector<float> out(values.size());
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c)
      out[c * rows + r] = values[r * columns + c];
  return out;
}

namespace {

constexpr uint64_t squareSide = 16;

tl::unexpected<Error> usage(std::string message, std::string note = "") {
  return makeError(ErrorKind::Usage, std::move(message), std::move(note));
}

//===--- An output -------------------------------------------------------===//

/// Quantizes one output matrix from values in its own orientation.
class SideQuantizer {
public:
  SideQuantizer(const Recipe &recipe, const RecipeProgram &program, const SideOptions &options,
                const RandomDomain &domain)
      : recipe(recipe), options(options), domain(domain), blockSize(blockSizeOf(recipe.format)),
        quantizer(program) {}

  QuantizedSide run(std::span<const float> values, bool squareBlocks, bool amaxPerRow);

private:
  void prepareAmax(std::span<const float> values, bool perRow);
  void quantizeRow(std::span<const float> values, uint64_t row);
  void quantizeTile(std::span<const float> values, uint64_t row, uint64_t column);
  ElementRounding roundingOf(uint64_t row, uint64_t column, uint64_t count);
  void packRows();

  const Recipe &recipe;
  const SideOptions &options;
  const RandomDomain &domain;
  const uint64_t blockSize;
  BlockQuantizer quantizer;
  QuantizedSide out;
  std::vector<uint8_t> codes; ///< rows x columns, one per byte
  std::array<uint8_t, maxTile> random;
};

void SideQuantizer::prepareAmax(std::span<const float> values, bool perRow) {
  if (!hasE4M3Scales(recipe.format))
    return;
  for (uint64_t r = 0; r < (perRow ? out.rows : 1); ++r) {
    const auto part = perRow ? values.subspan(r * out.columns, out.columns) : values;
    if (perRow && !options.rowAmax.empty())
      out.amax.push_back(options.rowAmax[r]);
    else
      out.amax.push_back(options.amax ? *options.amax : amax(part, recipe.amaxNaN));
  }
  if (!out.amax.empty())
    quantizer.setTensor(out.amax[0]);
}

/// Random bytes for `count` elements of a row from `column` on, which `random` keeps from its
/// start.
ElementRounding SideQuantizer::roundingOf(uint64_t row, uint64_t column, uint64_t count) {
  if (!options.stochastic)
    return {};
  for (uint64_t i = 0; i < count; i += 16) {
    const auto bytes = randomBytes(*options.stochastic, domain, row, (column + i) / 16);
    std::copy_n(bytes.begin(), std::min<uint64_t>(16, count - i), random.begin() + i);
  }
  return {std::span(random).first(count), options.stochastic->arithmetic};
}

void SideQuantizer::quantizeRow(std::span<const float> values, uint64_t row) {
  for (uint64_t b = 0; b < out.blocks; ++b) {
    const uint64_t column = b * blockSize, count = std::min(blockSize, out.columns - column);
    const uint64_t at = row * out.columns + column;
    out.scales[row * out.blocks + b] =
        quantizer.quantize(values.subspan(at, count), std::span(codes).subspan(at, count), 0,
                           roundingOf(row, column, count));
  }
}

/// Quantizes one tile. A tile is always taken in the input's orientation, so that both outputs
/// choose alike.
void SideQuantizer::quantizeTile(std::span<const float> values, uint64_t row, uint64_t column) {
  const uint64_t height = std::min(squareSide, out.rows - row);
  const uint64_t width = std::min(squareSide, out.columns - column);
  const bool flip = domain.columnwise;
  const auto place = [&](uint64_t r, uint64_t c) { return flip ? c * height + r : r * width + c; };
  std::array<float, maxTile> tile;
  std::array<uint8_t, maxTile> tileCodes, tileRandom;
  ElementRounding rounding;
  for (uint64_t r = 0; r < height; ++r) {
    rounding = roundingOf(row + r, column, width);
    for (uint64_t c = 0; c < width; ++c) {
      tile[place(r, c)] = values[(row + r) * out.columns + column + c];
      tileRandom[place(r, c)] = rounding.bytes.empty() ? 0 : rounding.bytes[c];
    }
  }
  const uint64_t count = height * width;
  if (!rounding.bytes.empty())
    rounding.bytes = std::span(tileRandom).first(count);
  const uint8_t scale =
      quantizer.quantize(std::span(tile).first(count), tileCodes, flip ? height : width, rounding);
  for (uint64_t r = 0; r < height; ++r) {
    out.scales[(row + r) * out.blocks + column / squareSide] = scale;
    for (uint64_t c = 0; c < width; ++c)
      codes[(row + r) * out.columns + column + c] = tileCodes[place(r, c)];
  }
}

void SideQuantizer::packRows() {
  if (!isPacked(recipe.format)) {
    out.data = std::move(codes);
    return;
  }
  out.data.resize(out.rows * out.rowBytes());
  for (uint64_t r = 0; r < out.rows; ++r)
    packE2M1(std::span(codes).subspan(r * out.columns, out.columns),
             std::span(out.data).subspan(r * out.rowBytes(), out.rowBytes()));
}

QuantizedSide SideQuantizer::run(std::span<const float> values, bool squareBlocks,
                                 bool amaxPerRow) {
  out.rows = domain.rows;
  out.columns = domain.columns;
  out.packed = isPacked(recipe.format);
  out.blocks = (out.columns + blockSize - 1) / blockSize;
  out.scales.resize(out.rows * out.blocks);
  codes.resize(values.size());
  prepareAmax(values, amaxPerRow);
  for (uint64_t r = 0; r < out.rows; r += squareBlocks ? squareSide : 1) {
    if (amaxPerRow)
      quantizer.setTensor(out.amax[r]);
    if (!squareBlocks)
      quantizeRow(values, r);
    for (uint64_t c = 0; squareBlocks && c < out.columns; c += squareSide)
      quantizeTile(values, r, c);
  }
  packRows();
  return std::move(out);
}

//===--- Checks ----------------------------------------------------------===//

Status checkSide(const Recipe &recipe, const SideOptions &side, const QuantizeOptions &options,
                 uint64_t columns, std::string_view name) {
  const unsigned block = blockSizeOf(recipe.format);
  if (isMX(recipe.format) && columns % block)
    return usage("rows of the " + std::string(name) + " output must be multiples of " +
                     std::to_string(block) + " for " + std::string(stringify(recipe.format)) +
                     ", but got " + std::to_string(columns),
                 "pad the matrix with zeros");
  if (side.stochastic && roundsToNearestOnly(recipe))
    return usage("recipe '" + std::string(recipe.name) + "' must round to nearest",
                 "remove stochastic rounding or take another recipe");
  if (side.stochastic && side.stochastic->mapping != PhiloxMapping::Element &&
      (options.squareBlocks || isMX(recipe.format)))
    return usage("the blockwise mapping of TransformerEngine expects nvfp4 blocks of 1 x 16",
                 "use the element mapping");
  if (side.hadamard && options.squareBlocks)
    return usage("square blocks must not be combined with a hadamard transform",
                 "the outputs would no longer be each other's transposed");
  return {};
}

/// Checks the amaxes of the `rows` rows of the output.
Status checkRowAmax(const SideOptions &side, const QuantizeOptions &options, uint64_t rows,
                    std::string_view name) {
  if (!options.amaxPerRow || side.rowAmax.empty() || side.rowAmax.size() == rows)
    return {};
  return usage("amaxes of rows of the " + std::string(name) + " output must be " +
               std::to_string(rows) + " numbers, but got " + std::to_string(side.rowAmax.size()));
}

/// Rejects the options that have no meaning for formats with f32 scales.
Status checkF32Options(const QuantizeOptions &options) {
  const auto isPlain = [](const SideOptions &side) { return !side.hadamard && !side.stochastic; };
  if (options.squareBlocks && options.wholeRows)
    return usage("blocks must be square or whole rows, but got both");
  if (options.columnwise || options.amaxPerRow || !isPlain(*options.rowwise) ||
      options.layout != ScaleLayout::Linear)
    return usage("blocks under an f32 expect a plain row-wise output with linear scales");
  return {};
}

Status checkOptions(const Recipe &recipe, std::span<const float> values, uint64_t rows,
                    uint64_t columns, const QuantizeOptions &options) {
  if (values.size() != rows * columns)
    return usage("values must have " + std::to_string(rows * columns) + " elements, but got " +
                 std::to_string(values.size()));
  if (!options.rowwise && !options.columnwise)
    return usage("quantizing expects a row-wise or a column-wise output, but got none");
  const bool nvfp4 = hasE4M3Scales(recipe.format);
  if (hasF32Scales(recipe.format))
    return checkF32Options(options);
  if (options.wholeRows)
    return usage("blocks of whole rows must be of format fp8_block128, but got " +
                 std::string(stringify(recipe.format)));
  if (options.squareBlocks && !nvfp4)
    return usage("square blocks must be of format nvfp4, but got " +
                 std::string(stringify(recipe.format)));
  if (options.amaxPerRow && (!nvfp4 || options.squareBlocks))
    return usage("an amax per row expects nvfp4 outputs of 1 x 16 blocks");
  if (options.rowwise) {
    FP4_TRY(checkSide(recipe, *options.rowwise, options, columns, "row-wise"));
    FP4_TRY(checkRowAmax(*options.rowwise, options, rows, "row-wise"));
  }
  if (options.columnwise) {
    FP4_TRY(checkSide(recipe, *options.columnwise, options, rows, "column-wise"));
    FP4_TRY(checkRowAmax(*options.columnwise, options, columns, "column-wise"));
  }
  return {};
}

//===--- A matrix --------------------------------------------------------===//

Expected<QuantizedSide> makeSide(const Recipe &recipe, const RecipeProgram &program,
                                 std::vector<float> values, const SideOptions &side,
                                 const QuantizeOptions &options, const RandomDomain &domain) {
  if (side.hadamard)
    FP4_TRY(hadamardRows(values, domain.rows, domain.columns, *side.hadamard));
  QuantizedSide out = SideQuantizer(recipe, program, side, domain)
                          .run(values, options.squareBlocks, options.amaxPerRow);
  out.layout = options.layout;
  FP4_ASSIGN(auto scales, layOutScales(out.scales, out.rows, out.blocks, options.layout));
  out.scales = std::move(scales);
  return out;
}

/// The options of group number `group`.
QuantizeOptions optionsOfGroup(QuantizeOptions options, size_t group) {
  for (auto *side : {&options.rowwise, &options.columnwise})
    if (*side && !(*side)->groupAmax.empty())
      (*side)->amax = (*side)->groupAmax[group];
  return options;
}

Status checkGroups(std::span<const uint64_t> groupRows, const QuantizeOptions &options) {
  for (const auto *side : {&options.rowwise, &options.columnwise})
    if (*side && !(*side)->groupAmax.empty() && (*side)->groupAmax.size() != groupRows.size())
      return usage("an amax per group must be " + std::to_string(groupRows.size()) +
                   " numbers, but got " + std::to_string((*side)->groupAmax.size()));
  return {};
}

/// Groups of 16 before a matrix, in each orientation.
struct FirstGroups {
  uint64_t rowwise = 0, columnwise = 0;
};

Expected<QuantizedPair> quantizeFrom(const Recipe &recipe, const RecipeProgram &program,
                                     std::span<const float> values, uint64_t rows, uint64_t columns,
                                     const QuantizeOptions &options, FirstGroups first) {
  FP4_TRY(checkOptions(recipe, values, rows, columns, options));
  QuantizedPair pair;
  if (hasF32Scales(recipe.format)) {
    const uint64_t block = blockSizeOf(recipe.format);
    const BlockExtent extent = {options.squareBlocks ? block : 1,
                                options.wholeRows ? std::max<uint64_t>(columns, 1) : block};
    pair.rowwise = quantizeF32Blocks(program, values, rows, columns, extent);
    return pair;
  }
  if (options.rowwise) {
    FP4_ASSIGN(auto side,
               makeSide(recipe, program, {values.begin(), values.end()}, *options.rowwise, options,
                        {rows, columns, false, false, first.rowwise}));
    pair.rowwise = std::move(side);
  }
  if (options.columnwise) {
    FP4_ASSIGN(auto side,
               makeSide(recipe, program, transposed(values, rows, columns), *options.columnwise,
                        options,
                        {columns, rows, true, options.rowwise.has_value(), first.columnwise}));
    pair.columnwise = std::move(side);
  }
  return pair;
}

} // namespace

Expected<QuantizedPair> quantizeMatrix(const Recipe &recipe, std::span<const float> values,
                                       uint64_t rows, uint64_t columns,
                                       const QuantizeOptions &options) {
  return quantizeFrom(recipe, makeProgram(recipe), values, rows, columns, options, {});
}

//===--- Groups ----------------------------------------------------------===//

Expected<std::vector<QuantizedPair>> quantizeGroups(const Recipe &recipe,
                                                    std::span<const float> values,
                                                    std::span<const uint64_t> groupRows,
                                                    uint64_t columns,
                                                    const QuantizeOptions &options) {
  uint64_t rows = 0;
  for (uint64_t r : groupRows)
    rows += r;
  if (values.size() != rows * columns)
    return usage("values must have " + std::to_string(rows * columns) + " elements for " +
                 std::to_string(groupRows.size()) + " groups, but got " +
                 std::to_string(values.size()));
  FP4_TRY(checkGroups(groupRows, options));
  const RecipeProgram program = makeProgram(recipe);
  std::vector<QuantizedPair> groups;
  FirstGroups first;
  for (uint64_t r : groupRows) {
    const auto part = values.first(r * columns);
    FP4_ASSIGN(auto pair, quantizeFrom(recipe, program, part, r, columns,
                                       optionsOfGroup(options, groups.size()), first));
    groups.push_back(std::move(pair));
    values = values.subspan(r * columns);
    first.rowwise += r * ((columns + 15) / 16);
    first.columnwise += columns * ((r + 15) / 16);
  }
  return groups;
}

GroupedScales concatenateScales(std::span<const QuantizedPair> groups, bool columnwise) {
  GroupedScales all;
  for (const QuantizedPair &pair : groups) {
    all.offsets.push_back(all.bytes.size());
    const auto &side = columnwise ? pair.columnwise : pair.rowwise;
    if (side)
      all.bytes.insert(all.bytes.end(), side->scales.begin(), side->scales.end());
  }
  all.offsets.push_back(all.bytes.size());
  return all;
}

//===--- Gathering -------------------------------------------------------===//

namespace {

Status checkShards(std::span<const QuantizedSide> shards, bool columnwise) {
  if (shards.empty())
    return usage("gathering expects at least one shard, but got none");
  const QuantizedSide &first = shards[0];
  for (const QuantizedSide &s : shards) {
    if (s.columns != first.columns || s.layout != first.layout ||
        (columnwise && s.rows != first.rows))
      return usage("shards must have one shape and layout, but got " + std::to_string(s.rows) +
                   " x " + std::to_string(s.columns) + " beside " + std::to_string(first.rows) +
                   " x " + std::to_string(first.columns));
    const bool perRow = s.amax.size() > 1;
    if (!perRow && s.amax != first.amax)
      return usage("shards must be quantized with one amax", "reduce the amaxes over the ranks "
                                                             "before quantizing");
  }
  return {};
}

} // namespace

Expected<QuantizedSide> gatherRowwise(std::span<const QuantizedSide> shards) {
  FP4_TRY(checkShards(shards, false));
  QuantizedSide whole = shards[0];
  std::vector<ScaleShard> scales;
  whole.rows = 0;
  whole.data.clear();
  for (const QuantizedSide &s : shards) {
    whole.rows += s.rows;
    whole.data.insert(whole.data.end(), s.data.begin(), s.data.end());
    scales.push_back({s.scales, s.rows});
    if (&s != &shards[0] && whole.amax.size() > 1)
      whole.amax.insert(whole.amax.end(), s.amax.begin(), s.amax.end());
  }
  FP4_ASSIGN(auto stacked, stackScales(scales, whole.blocks, whole.layout));
  whole.scales = std::move(stacked);
  return whole;
}

Expected<QuantizedSide> gatherColumnwise(std::span<const QuantizedSide> shards) {
  FP4_TRY(checkShards(shards, true));
  QuantizedSide whole = shards[0];
  const uint64_t block = whole.blocks ? whole.columns / whole.blocks : 0;
  if ((block != 16 && block != 32) || whole.columns % block)
    return usage("column-wise shards must be whole blocks long, but got " +
                 std::to_string(whole.columns) + " columns");
  std::vector<uint8_t> data, scales; // as an all-gather stacks them
  for (const QuantizedSide &s : shards) {
    data.insert(data.end(), s.data.begin(), s.data.end());
    FP4_ASSIGN(auto linear, readScales(s.scales, s.rows, s.blocks, s.layout));
    scales.insert(scales.end(), linear.begin(), linear.end());
  }
  auto codes = interleaveShards(data, shards.size(), whole.rows, whole.rowBytes());
  auto linear = interleaveShards(scales, shards.size(), whole.rows, whole.blocks);
  if (!codes || !linear)
    return tl::unexpected(codes ? linear.error() : codes.error());
  whole.columns *= shards.size();
  whole.blocks *= shards.size();
  whole.data = std::move(*codes);
  FP4_ASSIGN(auto laidOut, layOutScales(*linear, whole.rows, whole.blocks, whole.layout));
  whole.scales = std::move(laidOut);
  return whole;
}

//===--- Dequantizing ----------------------------------------------------===//

Expected<std::vector<float>> dequantizeSide(const Recipe &recipe, const QuantizedSide &side) {
  FP4_ASSIGN(auto scales, readScales(side.scales, side.rows, side.blocks, side.layout));
  const RecipeProgram program = makeDequantizer(recipe);
  RecipeEvaluator evaluator(program);
  const uint64_t blockSize = blockSizeOf(recipe.format);
  evaluator.setTensor(side.amax.empty() ? 0.f : side.amax[0]);
  std::vector<float> out(side.rows * side.columns);
  for (uint64_t r = 0; r < side.rows; ++r) {
    if (side.amax.size() > 1)
      evaluator.setTensor(side.amax[r]);
    for (uint64_t c = 0; c < side.columns; ++c) {
      if (c % blockSize == 0)
        evaluator.setScaleByte(scales[r * side.blocks + c / blockSize]);
      out[r * side.columns + c] = evaluator.decode(side.code(r, c));
    }
  }
  return out;
}

} // namespace fp4::numerics
