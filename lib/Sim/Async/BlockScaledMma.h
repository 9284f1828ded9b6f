//===- BlockScaledMma.h - Arithmetic of the fp4 block-scaled MMA ----------===//
//
// One K=64 step of tcgen05.mma kind::mxf4 / mxf4nvf4 (PTX ISA, "tcgen05.mma"): per row and column
// four groups of 16 products, each with a scale of A and of B, one fused accumulation with C.
// The bit-accurate model is the one MMA-Sim (arXiv 2511.10909) verified on hardware:
//
//   e_g  = exponent(scaleA_g) + exponent(scaleB_g)     (-139 if every product or a scale is zero)
//   emax = max(e_0..e_3, exponent(C))                  (-139 for C = 0)
//   D    = RZ_fp32(2^emax * sum over x in {0..3, C} of truncate(term_x * 2^-emax, 2^-35))
//
// Two implementations. The scalar one is the definition. The fast one uses that double precision
// holds the sum exactly whenever no term is truncated, checks that condition per element, and
// sends every other element to the scalar one; the tests hold them equal bit for bit.
//
// Operands are decoded tiles: rows of 64 fp4 codes packed two per byte (even k in the low nibble),
// and four scale bytes per row, one per group of 16 k (a scale block of 32 repeats its byte). A
// step of K = 96 (sm_103a) has six groups, and one of K = 128 (sm_107a) eight. [uncertain] A step
// is taken to be one such sum of seven or nine terms.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"

#include <cstddef>
#include <cstdint>

namespace fp4::sim {

/// The operands of one MMA step for the part of D that one CTA holds.
struct BlockScaledOperands {
  int rows = 0;                     ///< M of this CTA
  int columns = 0;                  ///< N of this CTA, a multiple of 8
  int groups = 4;                   ///< groups of 16 k: 4, 6 of K = 96 or 8 of K = 128
  const uint8_t *a = nullptr;       ///< rows x 8 * groups bytes
  const uint8_t *b = nullptr;       ///< columns x 8 * groups bytes
  const uint8_t *scalesA = nullptr; ///< rows x groups bytes
  const uint8_t *scalesB = nullptr; ///< columns x groups bytes
  hw::ScaleType format = hw::ScaleType::UE4M3;
  bool negateA = false, negateB = false;
  bool accumulate = true; ///< false: C is +0 and D is not read
  float *d = nullptr;     ///< D and C, row major
  size_t pitch = 0;       ///< floats between rows of D
};

/// D = A * B + C of the whole tile, bit exact, with the widest vectors the machine has.
void blockScaledMma(const BlockScaledOperands &operands);

/// One element by the scalar definition: `a`, `b` 8 * groups bytes of codes, `scalesA`, `scalesB` one
/// byte for each group.
float blockScaledElement(const uint8_t *a, const uint8_t *b, const uint8_t *scalesA,
                         const uint8_t *scalesB, hw::ScaleType format, bool negate, float c,
                         int groups = 4);

/// The implementations blockScaledMma chooses from; `supported` says whether the machine runs it.
struct BlockScaledKernel {
  const char *name;
  bool (*supported)();
  void (*run)(const BlockScaledOperands &);
};
/// The kernels in order of preference, of which the last is portable; for tests and benchmarks.
const BlockScaledKernel *blockScaledKernels(size_t &count);

} // namespace fp4::sim
