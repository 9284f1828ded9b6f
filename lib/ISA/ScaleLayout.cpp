// Scale-factor positions and their explanation in words.
#include "fp4/ISA/ScaleLayout.h"
#include <array>
#include <fmt/format.h>

namespace fp4::hw {
namespace {

constexpr std::array<ScaleFormat, 2> formats = {{
    {"nvfp4", 16, ScaleVector::X4},
    {"mxfp4", 32, ScaleVector::X2},
}};

constexpr unsigned elementsPerMma = 64; // K of a dense fp4 MMA

std::string explainTmem(unsigned localRow, unsigned blockInMma, unsigned id) {
  const ScaleCell c = scaleCell(localRow, blockInMma, id, 0);
  return fmt::format("TMEM lanes {}, {}, {}, {}; column +{}; byte {}", c.lane, c.lane + 32,
                     c.lane + 64, c.lane + 96, c.column, c.byte);
}

} // namespace

ScalePosition tiled128x4Position(uint64_t offset, uint64_t numBlocks) {
  const uint64_t tilesPerRow = (numBlocks + 3) / 4;
  const uint64_t tile = offset / scaleBlockBytes, within = offset % scaleBlockBytes;
  const uint64_t lane = within / 16, word = within % 16 / 4, byte = within % 4;
  return {tile / tilesPerRow * 128 + word * 32 + lane, tile % tilesPerRow * 4 + byte};
}

ScaleCell scaleCell(unsigned row, unsigned block, unsigned id, unsigned quadrant,
                    ScaleOperand operand, unsigned n) {
  if (operand == ScaleOperand::ColumnsPairM128) {
    const unsigned half = n / 2;
    return {row % 32 + 32 * (2 * (row / half) + quadrant % 2), row % half / 32, id + block};
  }
  // RowsPairM128 is the same formula over 64 local rows: columns 0 and 1.
  return {row % 32 + 32 * quadrant, row / 32, id + block};
}

const ScaleFormat *lookupScaleFormat(std::string_view name) {
  for (const ScaleFormat &f : formats)
    if (f.name == name)
      return &f;
  return nullptr;
}

Expected<std::string> explainScale(const ScaleQuestion &q) {
  const ScaleFormat *format = lookupScaleFormat(q.format);
  if (!format)
    return makeError(ErrorKind::Usage, fmt::format("unknown scale format '{}'", q.format),
                     "known formats: nvfp4, mxfp4");
  const uint64_t rows = q.rows ? q.rows : q.row + 1, depth = q.depth ? q.depth : q.k + 1;
  if (q.row >= rows || q.k >= depth)
    return makeError(ErrorKind::Usage, fmt::format("element ({}, {}) must lie in a {}x{} matrix",
                                                   q.row, q.k, rows, depth));
  if (q.ctaGroup != 1 && q.ctaGroup != 2)
    return makeError(ErrorKind::Usage,
                     fmt::format("cta group must be 1 or 2, but got {}", q.ctaGroup));
  const uint64_t block = q.k / format->blockSize;
  const uint64_t numBlocks = scalesPerRow(depth, format->blockSize);
  const uint64_t mmaStep = q.k / elementsPerMma;
  const ScaleStep step =
      scaleStep(static_cast<unsigned>(format->vector), static_cast<unsigned>(mmaStep));
  const unsigned inMma = static_cast<unsigned>(block % static_cast<unsigned>(format->vector));
  std::string text = fmt::format("{} scale of element ({}, {}): row {}, block {} of {}\n",
                                 format->name, q.row, q.k, q.row, block, numBlocks);
  text += fmt::format("  global, linear      offset {}\n", q.row * numBlocks + block);
  text += fmt::format("  global, tiled_128x4 offset {} = tile ({}, {}) * 512 + {}\n",
                      tiled128x4Offset(q.row, block, numBlocks), q.row / 128, block / 4,
                      scaleOffsetInBlock(q.row, block));
  text += fmt::format("  shared              byte {} of the 512-byte tile\n",
                      scaleOffsetInBlock(q.row, block));
  text +=
      fmt::format("  tensor memory       {}{}\n",
                  explainTmem(static_cast<unsigned>(q.row % 128), inMma, step.id),
                  q.ctaGroup == 2 ? fmt::format(" of CTA {} of the pair as SFA (M 256), of both "
                                                "as SFB",
                                                q.row / 128 % 2)
                                  : "");
  text +=
      fmt::format("  read by             K step {} (elements {}..{}), scale id {}\n", mmaStep,
                  mmaStep * elementsPerMma, mmaStep * elementsPerMma + elementsPerMma - 1, step.id);
  return text;
}

} // namespace fp4::hw
