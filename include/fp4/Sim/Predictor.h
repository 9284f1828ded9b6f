//===- Predictor.h - Prediction of times ----------------------------------===//
//
// A value for SimOptions::predicted that says more than who receives the times:
//
//   settings.predicted = Predictor{.sampleAfter = 0, .receive = [](KernelTime time, ...) { ... }};
//
// Any other function gets predictions of the default kind.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/Simulator.h"

namespace fp4::sim {

/// Source of the machine instructions of a kernel.
enum class InstructionMix : uint8_t {
  Ptx,   ///< estimated from the text
  Cubin, ///< counts of what ptxas makes of it; without ptxas and nvdisasm no prediction
  Auto,  ///< the cubin if both are there, else the text
};

inline constexpr uint64_t kSampleAfter = uint64_t(6) << 20;

struct Predictor {
  /// True to execute only what the prediction needs: MMAs are not computed, and CTAs outside of the
  /// sample do not run. Results are then meaningless.
  bool timesOnly = false;
  /// Warp instructions after which a part of the SMs goes on as a sample where that saves time
  /// (docs/concepts/time-model.md, "Large grids"); 0: never.
  uint64_t sampleAfter = kSampleAfter;
  InstructionMix mix = InstructionMix::Ptx;
  /// Clock of the SMs; 0: that of the target's table of rates. The bandwidth of L2 and device
  /// memory in a second, and the latency of device memory behind L2, do not change with this clock.
  double gigahertz = 0;
  /// The product whose memory the prediction is for (fp4/ISA/GpuModel.h); empty: the one that the
  /// target's table of rates was measured on.
  std::string gpu = {};
  /// Called with the time of every launch, and where its instructions come from: "of the cubin", or
  /// "estimated from PTX" and why, if that was asked for.
  std::function<void(KernelTime, std::string)> receive = {};

  void operator()(KernelTime time) const { receive(std::move(time), ""); }

  /// Returns the predictor that `options` ask for.
  static Predictor of(const SimOptions &options) {
    const Predictor *own = options.predicted.target<Predictor>();
    return own ? *own : Predictor();
  }
};

} // namespace fp4::sim
