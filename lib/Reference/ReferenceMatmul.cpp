//===- ReferenceMatmul.cpp - GEMMs and their scales, on the host ----------===//

#include "Interpreter.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/WarpOperands.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/ByteWeights.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/PackedWeights.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Routes/Routes.h"
#include "fp4/Support/GroupRows.h"
#include "fp4/Support/Progress.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace fp4::harness {

Expected<std::vector<uint8_t>> linearScales(const Tensor &scales) {
  if (scales.type.layout == Layout::Tiled128x4 && scales.type.shape.size() == 2)
    return numerics::unswizzleScales(bytesOf(scales), uint64_t(scales.type.shape[0]),
                                     uint64_t(scales.type.shape[1]));
  return std::vector<uint8_t>(bytesOf(scales).begin(), bytesOf(scales).end());
}

static Expected<numerics::BlockFormat> formatOf(const Step &step,
                                                const char *attribute = "format") {
  FP4_ASSIGN(auto name, step.attribute(attribute));
  auto format = numerics::parseBlockFormat(name);
  if (!format)
    return step.wrong(fmt::format("has the unknown format '{}'", name));
  return *format;
}

/// Runs `convert`, which makes scales of one layout out of those of another.
static Status runConversion(Step &step, decltype(&numerics::swizzleScales) convert) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto scales, convert(bytesOf(*step.operands[0]), shape.first, shape.second));
  return step.define(0, scales);
}

/// Swizzles scales to the list of tiles of groups that only the device knows.
static Status swizzleGroups(Step &step, const Tensor &offsets) {
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto groups, groupsBetween(offsets, shape.first));
  std::vector<uint8_t> tiles;
  for (const RowRange &group : groups) {
    const auto rows =
        bytesOf(*step.operands[0]).subspan(group.begin * shape.second, group.rows * shape.second);
    FP4_ASSIGN(auto part, numerics::swizzleScales(rows, group.rows, shape.second));
    tiles.insert(tiles.end(), part.begin(), part.end());
  }
  tiles.resize(step.types[0].bufferBytes()); // tiles that are not used are zero
  return step.define(0, tiles);
}

Status runSwizzle(Step &step) {
  return step.operands.size() > 1 ? swizzleGroups(step, *step.operands[1])
                                  : runConversion(step, numerics::swizzleScales);
}
Status runUnswizzle(Step &step) { return runConversion(step, numerics::unswizzleScales); }

/// Matrices that are stacked in weights of so many rows, and the rows of each.
static Expected<std::pair<uint64_t, uint64_t>> stackedGroups(const Step &step, uint64_t rows) {
  const std::string text = step.attributeOr("groups", "1");
  uint64_t groups = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), groups);
  if (error != std::errc() || end != text.data() + text.size() || !groups || rows % groups)
    return step.wrong(
        fmt::format("expects a divisor of {} rows in 'groups', but got '{}'", rows, text));
  return std::pair(groups, rows / groups);
}

/// The bytes of part `index` of `count`.
static std::span<const uint8_t> partOf(std::span<const uint8_t> all, uint64_t index,
                                       uint64_t count) {
  return all.subspan(index * (all.size() / count), all.size() / count);
}

Status runPrepack(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto format, formatOf(step));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto groups, stackedGroups(step, shape.first));
  const bool isForBytes = step.types[0].shape.back() == hw::byteTileBytes;
  const auto powers = step.types[0].layout == Layout::WgmmaRows ? numerics::PowersOf::Rows
                                                                : numerics::PowersOf::Tiles;
  std::vector<uint8_t> all;
  for (uint64_t i = 0; i < groups.first; ++i) {
    const auto codes = partOf(bytesOf(*step.operands[0]), i, groups.first);
    const auto scales = partOf(bytesOf(*step.operands[1]), i, groups.first);
    FP4_ASSIGN(auto tiles,
               isForBytes
                   ? numerics::packByteWeights(codes, scales, groups.second, shape.second, powers)
                   : numerics::packWeights(format, codes, scales, groups.second, shape.second));
    all.insert(all.end(), tiles.begin(), tiles.end());
  }
  return step.define(0, all);
}

Status runUnprepack(Step &step) {
  FP4_TRY(step.expect(1, 2));
  FP4_ASSIGN(auto format, formatOf(step));
  const std::vector<int64_t> &shape = step.types[0].shape;
  const std::span<const uint8_t> tiles = bytesOf(*step.operands[0]);
  const bool isForBytes = step.operands[0]->type.shape.back() == hw::byteTileBytes;
  const uint64_t columns = uint64_t(shape.at(1));
  FP4_ASSIGN(auto groups, stackedGroups(step, uint64_t(shape.at(0))));
  numerics::UnpackedWeights all;
  for (uint64_t i = 0; i < groups.first; ++i) {
    const auto part = partOf(tiles, i, groups.first);
    FP4_ASSIGN(auto weights, isForBytes
                                 ? numerics::unpackByteWeights(part, groups.second, columns)
                                 : numerics::unpackWeights(format, part, groups.second, columns));
    all.codes.insert(all.codes.end(), weights.codes.begin(), weights.codes.end());
    all.scales.insert(all.scales.end(), weights.scales.begin(), weights.scales.end());
  }
  FP4_TRY(step.define(0, all.codes));
  return step.define(1, all.scales);
}

Status runAlpha(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto lhs, numerics::parseRecipe(step.attributeOr("lhs_recipe", "transformer_engine")));
  FP4_ASSIGN(auto rhs, numerics::parseRecipe(step.attributeOr("rhs_recipe", "transformer_engine")));
  return step.defineFloats(
      0, numerics::matmulAlpha(lhs, floats(*step.operands[0]), rhs, floats(*step.operands[1])));
}

namespace {

/// One GEMM of a step, with those of its data that the step does not own.
struct OwnedProblem {
  numerics::GemmProblem gemm;
  std::vector<uint8_t> scalesA, scalesB, codesB;
  std::vector<uint16_t> floatsA;
};

/// The operands of a GEMM, null if they are absent.
struct MatmulOperands {
  const Tensor *lhs, *lhsScales, *rhs, *rhsScales, *alpha, *offsets;
};

/// The data that all GEMMs of a step share.
struct GemmStep {
  Step &step;
  MatmulOperands operands;
  std::pair<uint64_t, uint64_t> lhs, rhs; ///< rows and columns
  std::vector<RowRange> groups;           ///< groups of rows of lhs
  bool isGrouped;
  const Tensor *alpha; ///< alpha, or null
  std::vector<float> alphas;
  numerics::GemmProblem common;
  const route::Record *record; ///< record whose model of the arithmetic is followed

  uint64_t columns() const { return rhs.first / groups.size(); }
  /// The bytes of `rhs` that group `group` has of prepacked tiles.
  std::span<const uint8_t> tilesOf(size_t group) const {
    return partOf(bytesOf(*operands.rhs), group, groups.size());
  }
};

/// Sets alpha: one number, one for each row, one for each column, or one for each group.
void setAlpha(numerics::GemmProblem &gemm, const GemmStep &product, size_t group) {
  if (!product.alpha)
    return;
  const std::vector<int64_t> &shape = product.alpha->type.shape;
  const std::span<const float> alphas = product.alphas;
  if (shape.size() < 2)
    gemm.alpha = alphas[shape.empty() ? 0 : group];
  else if (shape.back() == 1)
    gemm.rowAlpha = alphas.subspan(product.groups[group].begin, product.groups[group].rows);
  else
    gemm.columnAlpha = alphas;
}

/// Bytes of the 512-byte scale tiles of a matrix.
uint64_t tileBytes(uint64_t rows, uint64_t blocks) {
  return (rows + 127) / 128 * ((blocks + 3) / 4) * 512;
}

/// The scales of `rows` that begin at byte `at` of a list of tiles; moves `at` behind them.
Expected<std::vector<uint8_t>> nextScales(const GemmStep &product, const Tensor &tiles,
                                          uint64_t rows, uint64_t &at) {
  const uint64_t blocks = product.common.depth / numerics::blockSizeOf(product.common.format);
  const uint64_t size = tileBytes(rows, blocks);
  const std::span<const uint8_t> bytes = bytesOf(tiles);
  if (bytes.size() < at + size)
    return product.step.wrong(fmt::format("has too few tiles of scales in {}", tiles.type.str()));
  at += size;
  return numerics::unswizzleScales(bytes.subspan(at - size, size), rows, blocks);
}

/// The f32 scales of `count` lines of scale blocks of a matrix, from line `first` on.
std::vector<uint8_t> scaleLines(const GemmStep &product, const Tensor &scales, uint64_t first,
                                uint64_t count) {
  const uint64_t block = numerics::blockSizeOf(product.common.format);
  const uint64_t pitch = (product.common.depth + block - 1) / block * sizeof(float);
  const std::span<const uint8_t> lines = bytesOf(scales).subspan(first * pitch, count * pitch);
  return {lines.begin(), lines.end()};
}

Expected<MatmulOperands> operandsOf(const Step &step, WhichGemm which) {
  FP4_TRY(step.expect(2, step.op.results.size()));
  const bool isSecond = which == WhichGemm::Second;
  FP4_ASSIGN(auto lhs, step.optional(0));
  FP4_ASSIGN(auto lhsScales, step.optional(1));
  FP4_ASSIGN(auto rhs, step.optional(isSecond ? 7 : 2));
  FP4_ASSIGN(auto rhsScales, step.optional(isSecond ? 8 : 3));
  FP4_ASSIGN(auto alpha, step.optional(isSecond ? 9 : 4));
  FP4_ASSIGN(auto offsets, step.optional(6));
  const auto isMatrix = [](const Tensor *tensor, bool isPrepacked) {
    return tensor && tensor->type.shape.size() == (isPrepacked ? 3 : 2);
  };
  if (!isMatrix(lhs, false) || !isMatrix(rhs, !rhsScales))
    return step.wrong("must have two matrices");
  return MatmulOperands{lhs, lhsScales, rhs, rhsScales, alpha, offsets};
}

/// Rows and columns of a matrix.
std::pair<uint64_t, uint64_t> sizesOf(const Tensor &tensor) {
  return {uint64_t(tensor.type.shape[0]), uint64_t(tensor.type.shape[1])};
}

/// Rows and columns of the rhs beside a lhs of `depth` columns. Prepacked weights have as many rows
/// for each of `groups` as the result has columns, which end in their last tiles, as `depth` does.
Expected<std::pair<uint64_t, uint64_t>>
sizesOfWeights(const Step &step, const MatmulOperands &operands, uint64_t depth, uint64_t groups) {
  const std::vector<int64_t> &shape = operands.rhs->type.shape;
  std::pair<uint64_t, uint64_t> sizes{uint64_t(shape[0]), uint64_t(shape[1])};
  bool fits = sizes.second == depth;
  if (!operands.rhsScales) {
    const int64_t n = step.types[0].shape.back();
    fits = hw::weightTilesOfColumns(int64_t(depth), shape[2]) == shape[1] &&
           hw::weightTilesOfRows(n) * int64_t(groups) == shape[0];
    sizes = {uint64_t(n) * groups, depth};
  }
  if (!fits)
    return step.wrong(fmt::format("must have matrices of equal depth, and N of the result within "
                                  "the last tiles, but got {} and {}",
                                  operands.lhs->type.str(), operands.rhs->type.str()));
  return sizes;
}

/// The numbers of an attribute, "3,128,64"; none where it is absent.
Expected<std::vector<uint64_t>> numbersOf(const Step &step, const char *name) {
  const std::string text = step.attributeOr(name, "");
  std::vector<uint64_t> numbers;
  const char *at = text.data(), *last = at + text.size();
  while (at != last) {
    const auto [end, error] = std::from_chars(at, last, numbers.emplace_back());
    if (error != std::errc() || (end != last && (*end != ',' || end + 1 == last)))
      return step.wrong(fmt::format("expects numbers in '{}', but got '{}'", name, text));
    at = end == last ? end : end + 1;
  }
  return numbers;
}

/// The workers of attribute "stream_k", and the tile, as in "148,256,192".
Expected<std::optional<numerics::StreamK>> streamOf(const Step &step) {
  FP4_ASSIGN(auto numbers, numbersOf(step, "stream_k"));
  if (numbers.empty())
    return std::optional<numerics::StreamK>();
  if (numbers.size() != 3)
    return step.wrong(fmt::format("expects 3 numbers in 'stream_k', but got '{}'",
                                  step.attributeOr("stream_k", "")));
  return std::optional(numerics::StreamK{numbers[0], numbers[1], numbers[2]});
}

/// The signature of a matmul of formats `lhs` and `rhs`.
route::Signature signatureOf(const Step &step, const MatmulOperands &operands,
                             numerics::BlockFormat lhs, numerics::BlockFormat rhs) {
  route::Signature signature{.lhs = lhs, .rhs = rhs};
  if (!operands.lhsScales)
    signature.activations = operands.lhs->type.element == ElementType::F8E4M3FN
                                ? route::Activations::E4M3
                                : route::Activations::Half;
  if (!operands.rhsScales)
    signature.weights = route::Weights::Prepacked;
  const std::string arithmetic = step.attributeOr("arithmetic", "tensor_core");
  if (arithmetic == "fma")
    signature.arithmetic = route::Arithmetic::Fma;
  else if (arithmetic == "tensor_core_k96")
    signature.arithmetic = route::Arithmetic::K96;
  else if (arithmetic == "tensor_core_double_k")
    signature.arithmetic = route::Arithmetic::DoubleK;
  else if (arithmetic == "fast_accumulation")
    signature.arithmetic = route::Arithmetic::Fast;
  return signature;
}

/// Sets the model of the arithmetic that the route has, and what instructions multiply.
void setModel(numerics::GemmProblem &common, const MatmulOperands &operands, route::Pair pair,
              const route::Record &record) {
  common.core = record.unit;
  switch (pair) {
  case route::Pair::ByteScaled: // instructions with scales; the lhs has unit scales
    common.rhsFormat = common.format;
    common.format = numerics::BlockFormat::MXFP8E4M3;
    return;
  case route::Pair::BytePrepacked:
  case route::Pair::BytePrepackedFast:
    common.format = numerics::BlockFormat::FP8Block128;
    common.rowsPerScaleB = 1;
    return;
  case route::Pair::HalfScaled:
  case route::Pair::HalfMx6:
  case route::Pair::HalfPrepacked:
  case route::Pair::Fp4Prepacked: // the lhs becomes bf16
    common.floatA =
        operands.lhsScales ? numerics::FloatType::BF16 : floatType(operands.lhs->type.element);
    common.filledK = operands.rhsScales ? 0 : hw::weightTileColumns;
    return;
  case route::Pair::Mx8:
  case route::Pair::Mx6:
    common.filledK = record.route.core == route::Core::MmaSync ? hw::warpByteTileK : 0;
    return;
  case route::Pair::Fp4:
  case route::Pair::F32Scaled:
  case route::Pair::Fma:
    return;
  case route::Pair::Fp4K96:
    common.mmaDepth = hw::MmaDepth::K96;
    return;
  case route::Pair::Fp4DoubleK:
  case route::Pair::Mx8DoubleK:
  case route::Pair::F32ScaledDoubleK:
    common.mmaDepth = hw::MmaDepth::Double;
    return;
  }
}

/// Split-K ranges of a GEMM of `rows` rows: the factor of the first number of `split_rows` that is
/// no smaller, else the last factor where it has no number, else 1.
Expected<uint64_t> splitsOf(Step &step, uint64_t rows) {
  FP4_ASSIGN(auto factors, numbersOf(step, "split_k"));
  FP4_ASSIGN(auto most, numbersOf(step, "split_rows"));
  for (size_t i = 0; i < std::min(factors.size(), most.size()); ++i)
    if (rows <= most[i])
      return factors[i];
  return most.size() < factors.size() ? factors.back() : 1;
}

Expected<GemmStep> readGemm(Step &step, WhichGemm which = WhichGemm::First) {
  FP4_ASSIGN(auto operands, operandsOf(step, which));
  FP4_ASSIGN(auto format, formatOf(step));
  const auto lhs = sizesOf(*operands.lhs);
  FP4_ASSIGN(auto groups, groupsOf(step, lhs.first));
  if (operands.offsets) {
    FP4_ASSIGN(groups, groupsBetween(*operands.offsets, lhs.first));
  }
  FP4_ASSIGN(auto rhs, sizesOfWeights(step, operands, lhs.second, groups.size()));
  const bool isGrouped = operands.offsets || step.op.attributes.contains("groups");
  const Tensor *alpha = operands.alpha;
  std::vector<float> factors = alpha ? floats(*alpha) : std::vector<float>();
  GemmStep product{step,  operands,           lhs, rhs,    std::move(groups), isGrouped,
                   alpha, std::move(factors), {},  nullptr};
  numerics::GemmProblem &common = product.common;
  common.format = format;
  if (step.op.attributes.contains("rhs_format")) {
    FP4_ASSIGN(common.rhsFormat, formatOf(step, "rhs_format"));
  }
  common.depth = lhs.second;
  common.output = step.op.attributes.contains("program") // the program rounds by itself
                      ? numerics::FloatType::F32
                      : floatType(step.types[0].element);
  FP4_ASSIGN(common.epilogue, numerics::parseEpilogue(step.attributeOr("epilogue", "")));
  FP4_ASSIGN(common.splits, splitsOf(step, lhs.first));
  FP4_ASSIGN(common.streamK, streamOf(step));
  const route::Signature signature = signatureOf(step, operands, format, formatOfB(common));
  common.accumulatesFast = signature.arithmetic == route::Arithmetic::Fast;
  product.record = &route::modelOf(signature, step.target);
  setModel(common, operands, route::pairOf(signature), *product.record);
  common.threads = step.threads;
  return product;
}

/// The rows of group `group` of a lhs without scales.
numerics::GemmOperand plainRows(const GemmStep &product, size_t group) {
  const RowRange range = product.groups[group];
  const std::span<const uint8_t> rows = bytesOf(*product.operands.lhs);
  const uint64_t pitch = product.lhs.first ? rows.size() / product.lhs.first : 0;
  return {rows.data() + range.begin * pitch, nullptr, range.rows, 0, 0};
}

/// Bytes of a row of elements.
uint64_t pitchOf(numerics::BlockFormat format, uint64_t depth) {
  return numerics::isPacked(format) ? static_cast<uint64_t>(hw::denseRowBytes(int64_t(depth)))
                                    : depth;
}

/// The elements of group `group` of a lhs with scales, as fp4.dequantize gives them. The scales
/// begin at `at` of those of all groups.
Expected<std::vector<uint16_t>> floatsOf(const GemmStep &product, size_t group, uint64_t &at) {
  const RowRange range = product.groups[group];
  const Tensor &tiled = *product.operands.lhsScales;
  const numerics::BlockFormat format = product.common.format;
  const uint64_t pitch = pitchOf(format, product.common.depth);
  FP4_ASSIGN(auto scales,
             product.isGrouped ? nextScales(product, tiled, range.rows, at) : linearScales(tiled));
  FP4_ASSIGN(auto values,
             numerics::dequantizeRows(
                 numerics::defaultRecipe(format),
                 bytesOf(*product.operands.lhs).subspan(range.begin * pitch, range.rows * pitch),
                 scales, range.rows, product.common.depth));
  std::vector<uint16_t> floats(values.size());
  std::ranges::transform(values, floats.begin(), numerics::encodeBF16);
  return floats;
}

/// The scales of the weights of the next group, which begin at `at` of those of all.
Expected<std::vector<uint8_t>> nextWeightScales(const GemmStep &product, uint64_t &at) {
  const Tensor &scales = *product.operands.rhsScales;
  return product.isGrouped ? nextScales(product, scales, product.columns(), at)
                           : linearScales(scales);
}

/// Group `group` of a GEMM of floats and of weights, which may be prepacked. Scales begin at `atA`
/// and `atB` of those of all groups.
Expected<OwnedProblem> floatProblem(const GemmStep &product, size_t group, uint64_t &atA,
                                    uint64_t &atB) {
  const MatmulOperands &operands = product.operands;
  OwnedProblem owned{product.common, {}, {}, {}, {}};
  owned.gemm.a = plainRows(product, group);
  if (operands.lhsScales) {
    FP4_ASSIGN(owned.floatsA, floatsOf(product, group, atA));
    owned.gemm.a.data = reinterpret_cast<const uint8_t *>(owned.floatsA.data());
    owned.gemm.a.dataPitch = 2 * product.common.depth;
  }
  const uint64_t pitch = pitchOf(formatOfB(product.common), product.common.depth);
  const uint8_t *codes = bytesOf(*operands.rhs).data();
  if (operands.rhsScales) {
    FP4_ASSIGN(owned.scalesB, nextWeightScales(product, atB));
    codes += group * product.columns() * pitch;
  } else {
    FP4_ASSIGN(auto weights, numerics::unpackWeights(product.common.format, product.tilesOf(group),
                                                     product.columns(), product.rhs.second));
    owned.scalesB = std::move(weights.scales);
    owned.codesB = std::move(weights.codes);
    codes = owned.codesB.data();
  }
  owned.gemm.b = {codes, owned.scalesB.data(), product.columns(), pitch, 0};
  setAlpha(owned.gemm, product, group);
  return owned;
}

/// Group `group` of a GEMM of e4m3 and of weights that are prepacked for it.
Expected<OwnedProblem> byteProblem(const GemmStep &product, size_t group) {
  OwnedProblem owned{product.common, {}, {}, {}, {}};
  FP4_ASSIGN(auto weights, numerics::decodeByteWeights(product.tilesOf(group), product.columns(),
                                                       product.rhs.second));
  owned.codesB = std::move(weights.elements);
  owned.scalesB.resize(weights.powers.size() * sizeof(float));
  std::memcpy(owned.scalesB.data(), weights.powers.data(), owned.scalesB.size());
  owned.gemm.a = plainRows(product, group);
  owned.gemm.b = {owned.codesB.data(), owned.scalesB.data(), product.columns(), 0, 0};
  setAlpha(owned.gemm, product, group);
  return owned;
}

/// Group `group` of a GEMM of e4m3 without scales and of weights with scales, which begin at `at`
/// of those of all groups.
Expected<OwnedProblem> unitProblem(const GemmStep &product, size_t group, uint64_t &at) {
  OwnedProblem owned{product.common, {}, {}, {}, {}};
  const uint64_t depth = product.common.depth, rows = product.groups[group].rows;
  const uint64_t pitch = pitchOf(formatOfB(product.common), depth);
  owned.scalesA.assign(rows * (depth / numerics::blockSizeOf(product.common.format)),
                       numerics::ue8m0One);
  FP4_ASSIGN(owned.scalesB, nextWeightScales(product, at));
  owned.gemm.a = plainRows(product, group);
  owned.gemm.a.scales = owned.scalesA.data();
  owned.gemm.a.dataPitch = depth;
  owned.gemm.b = {bytesOf(*product.operands.rhs).data() + group * product.columns() * pitch,
                  owned.scalesB.data(), product.columns(), pitch, 0};
  setAlpha(owned.gemm, product, group);
  return owned;
}

/// Group `group`, whose scales begin at `atA` and `atB` of the lists of tiles.
Expected<OwnedProblem> problemOf(const GemmStep &product, size_t group, uint64_t &atA,
                                 uint64_t &atB) {
  const MatmulOperands &operands = product.operands;
  const uint64_t pitchA = pitchOf(product.common.format, product.common.depth);
  const uint64_t pitchB = pitchOf(formatOfB(product.common), product.common.depth);
  const RowRange range = product.groups[group];
  OwnedProblem owned{product.common, {}, {}, {}, {}};
  if (!operands.lhsScales || !operands.rhsScales)
    return product.common.floatA ? floatProblem(product, group, atA, atB)
           : operands.rhsScales  ? unitProblem(product, group, atB)
                                 : byteProblem(product, group);
  if (numerics::hasF32Scales(product.common.format)) {
    const uint64_t block = numerics::blockSizeOf(product.common.format);
    const uint64_t lines = (product.columns() + block - 1) / block;
    owned.scalesA = scaleLines(product, *operands.lhsScales, range.begin, range.rows);
    owned.scalesB = scaleLines(product, *operands.rhsScales, group * lines, lines);
  } else if (product.isGrouped) {
    FP4_ASSIGN(owned.scalesA, nextScales(product, *operands.lhsScales, range.rows, atA));
    FP4_ASSIGN(owned.scalesB, nextScales(product, *operands.rhsScales, product.columns(), atB));
  } else {
    FP4_ASSIGN(owned.scalesA, linearScales(*operands.lhsScales));
    FP4_ASSIGN(owned.scalesB, linearScales(*operands.rhsScales));
  }
  owned.gemm.a = {bytesOf(*operands.lhs).data() + range.begin * pitchA, owned.scalesA.data(),
                  range.rows, pitchA, 0};
  owned.gemm.b = {bytesOf(*operands.rhs).data() + group * product.columns() * pitchB,
                  owned.scalesB.data(), product.columns(), pitchB, 0};
  setAlpha(owned.gemm, product, group);
  return owned;
}

template <typename T> void put(std::vector<T> &all, uint64_t at, const std::vector<T> &part) {
  std::copy(part.begin(), part.end(), all.begin() + int64_t(at));
}

} // namespace

std::vector<ByteRange> bytesOfNoGroup(std::span<const RowRange> groups, uint64_t rows,
                                      uint64_t size) {
  const uint64_t pitch = rows ? size / rows : 0;
  std::vector<ByteRange> bytes;
  uint64_t end = 0;
  const auto skipTo = [&](uint64_t begin) {
    if (begin > end)
      bytes.push_back({end * pitch, (begin - end) * pitch});
  };
  for (const RowRange &group : groups) {
    skipTo(group.begin);
    end = group.begin + group.rows;
  }
  skipTo(rows);
  return bytes;
}

Expected<GemmSums> sumsOfGemm(Step &step, WhichGemm which) {
  FP4_ASSIGN(auto product, readGemm(step, which));
  const uint64_t rows = product.lhs.first, columns = product.columns();
  std::vector<float> sums(rows * columns);
  uint64_t atA = 0, atB = 0;
  for (size_t group = 0; group < product.groups.size(); ++group) {
    FP4_ASSIGN(auto owned, problemOf(product, group, atA, atB));
    if (product.groups[group].rows == 0)
      continue;
    FP4_ASSIGN(auto values, numerics::gemmMmaModel(owned.gemm));
    put(sums, product.groups[group].begin * columns, values);
  }
  return GemmSums{std::move(sums), std::move(product.groups), rows, columns};
}

Status runMatmul(Step &step) {
  if (step.op.attributes.contains("program"))
    return runGemmWithBody(step);
  FP4_ASSIGN(auto product, readGemm(step));
  product.common.progress = makeProgressLine("verifying", "elements");
  // Elements of no group are zero, or unspecified.
  const uint64_t elements = product.lhs.first * product.columns();
  std::vector<float> model(elements);
  numerics::GemmReference plain{std::vector<double>(elements), std::vector<double>(elements),
                                std::vector<numerics::Overflow>(elements)};
  uint64_t atA = 0, atB = 0;
  for (size_t group = 0; group < product.groups.size(); ++group) {
    FP4_ASSIGN(auto owned, problemOf(product, group, atA, atB));
    if (product.isGrouped && product.groups[group].rows == 0)
      continue;
    FP4_ASSIGN(auto values, numerics::gemmMmaModel(owned.gemm));
    FP4_ASSIGN(auto sums, numerics::gemmReference(owned.gemm));
    const uint64_t at = product.groups[group].begin * product.columns();
    put(model, at, values);
    put(plain.values, at, sums.values);
    put(plain.bounds, at, sums.bounds);
    put(plain.mayOverflow, at, sums.mayOverflow);
  }
  FP4_TRY(step.defineFloats(0, model));
  ReferenceValue &result = step.results[0];
  if (step.op.attributes.contains("unspecified_rows"))
    result.unspecified =
        bytesOfNoGroup(product.groups, product.lhs.first, result.value.bytes.size());
  result.model = route::ptxName(*product.record->route.core);
  result.sums = std::move(plain.values);
  result.bounds = std::move(plain.bounds);
  result.mayOverflow = std::move(plain.mayOverflow);
  return {};
}

} // namespace fp4::harness
