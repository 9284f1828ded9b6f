//===- Rates.h - Rates of a target's units --------------------------------===//
//
// Numbers that the cost model ranks tiles with. Each says where it comes from and how it is known,
// so that a reader sees at the row of a target which numbers to trust. Cycles are those of the SM's
// clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace fp4::hw {

/// Origin of a number.
enum class Mark : uint8_t {
  Documented, ///< the vendor publishes it
  Measured,   ///< somebody measured this quantity alone
  Fitted,     ///< a fit makes a model agree with measurements of whole kernels
  Assumed     ///< taken from another target, because nobody published a better number
};

struct Rate {
  double value;
  Mark mark;
  std::string_view source;

  constexpr operator double() const { return value; }
};

/// Cost of the tiles of a block-scaled GEMM on tcgen05.
struct MmaRates {
  Rate flopsPerCycle;           ///< rate of dense fp4 on one SM
  Rate sharedBytesPerCycle;     ///< operands that the tensor core reads from shared memory
  Rate l2BytesPerCycle;         ///< rate at which L2 delivers to one SM
  Rate fillCycles;              ///< filling the ring of stages and draining the last instructions
  Rate epilogueCyclesPerColumn; ///< reading, converting and storing 128 rows of the accumulator
  Rate serialShare;             ///< share of the epilogue that one accumulator alone cannot hide
  Rate tailCycles;              ///< cycles of a kernel besides its tiles
  Rate launchCycles;            ///< cycles of a launch besides its kernel
  Rate memoryBytesPerCycle;     ///< rate at which device memory delivers to all SMs
  Rate clusteredShare;          ///< share of the SMs that clusters of 4 CTAs and more reach
  Rate gigahertz;               ///< the clock at which the fitted rates were measured
};

} // namespace fp4::hw
