//===- SmClock.cpp - The clock of SMs under load --------------------------===//

#include "SmClock.h"
#include "fp4/ISA/TargetModel.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

/// SM i has words 2i and 2i + 1.
constexpr std::string_view kBody = R"(.address_size 64
.visible .entry {}(.param .u64 words)
{{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %d<4>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p ret;
  mov.u32 %r1, %smid;
  ld.param.u64 %d0, [words];
  mad.wide.u32 %d1, %r1, 16, %d0;
  mov.u64 %d2, %clock64;
  mov.u64 %d3, %globaltimer;
  st.global.v2.u64 [%d1], {{%d2, %d3}};
  ret;
}}
)";

struct Note {
  uint64_t cycles = 0, nanoseconds = 0;
};

/// Places for notes: numbers of SMs may have gaps.
constexpr size_t kPlaces = 1024;

} // namespace

SmClock::~SmClock() {
  if (words_)
    (void)device_.free(words_);
  if (module_)
    (void)device_.unloadModule(*module_);
}

Status SmClock::load() {
  const std::string name = device_.target();
  const hw::TargetModel *target = hw::lookupTarget(name);
  if (!target)
    return makeError(ErrorKind::Internal, fmt::format("the clock of '{}' is not known", name));
  const std::string_view version = target->ptxFeature.substr(std::string_view("+ptx").size());
  const std::string text =
      fmt::format(".version {}.{}\n.target {}\n", version.substr(0, 1), version.substr(1), name) +
      fmt::format(fmt::runtime(kBody), kClockKernel);
  FP4_ASSIGN(module_,
             device_.loadModule({"clock", name.c_str(), text.data(), text.size(), nullptr, 0}));
  FP4_ASSIGN(words_, device_.allocateZeroed(2 * kPlaces * sizeof(Note)));
  return {};
}

/// Launches as many CTAs as SMs, each so large that two fit at most: all SMs get one.
Status SmClock::note(bool behind) {
  if (has_ && !words_)
    has_ = device_.isHardware() && load();
  if (!has_)
    return {};
  rt::DevicePtr words = words_ + (behind ? kPlaces * sizeof(Note) : 0);
  void *const params[] = {&words};
  rt::LaunchShape shape;
  shape.grid.x = uint32_t(device_.smCount());
  shape.block.x = 1024;
  return device_.launch(*module_, kClockKernel, shape, params);
}

Expected<double> SmClock::megahertz() {
  if (!has_)
    return 0;
  std::vector<Note> notes(2 * kPlaces);
  FP4_TRY(device_.synchronize());
  FP4_TRY(device_.copyToHost(std::as_writable_bytes(std::span(notes)), words_));
  std::vector<double> clocks;
  for (size_t i = 0; i < kPlaces; ++i) {
    const Note &first = notes[i], &second = notes[kPlaces + i];
    if (first.nanoseconds && second.nanoseconds > first.nanoseconds)
      clocks.push_back(1e3 * double(second.cycles - first.cycles) /
                       double(second.nanoseconds - first.nanoseconds));
  }
  if (clocks.empty())
    return 0;
  std::nth_element(clocks.begin(), clocks.begin() + ptrdiff_t(clocks.size() / 2), clocks.end());
  return clocks[clocks.size() / 2];
}

} // namespace fp4::harness
