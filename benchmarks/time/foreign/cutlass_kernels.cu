// cutlass_kernels.cu: kernels of CUTLASS' examples 48 (tf32) and 49 (fp16, four of its schedules), with the tiles, clusters and
// layouts of the examples and without C; those of 54 and 67 are benchmarks/peers/libraries/cutlass_kernels.cu.
//
// The kind of cutlass_launch.h's peer_create is a number of Kind below. a is M x K and b is N x K, d is M x N with columns
// first; there are neither groups nor scales.
#include <memory>

#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

#include "../../peers/libraries/cutlass_launch.h"

using namespace cute;
using Column = cutlass::layout::ColumnMajor;

namespace foreign {

enum Kind { Tf32 = 48, Specialized = 490, Pingpong = 491, Cooperative = 492, StreamK = 493 };

template <class Element, class Tile, class Cluster, class Schedule, class EpilogueSchedule, class Scheduler>
struct Example {
  static constexpr int align = 16 / sizeof(Element);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
      float, float, void, Column, align, Element, Column, align, EpilogueSchedule>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, align, Element, Column, align,
      float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>, Schedule>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, Scheduler>>;
};

template <class Types, class Element>
Launchable *create(int m, int n, int k, const void *a, const void *b, void *d) {
  using Gemm = typename Types::Gemm;
  using K = typename Gemm::GemmKernel;
  auto strideA = cutlass::make_cute_packed_stride(typename K::StrideA{}, make_shape(m, k, 1));
  auto strideB = cutlass::make_cute_packed_stride(typename K::StrideB{}, make_shape(n, k, 1));
  auto strideD = cutlass::make_cute_packed_stride(typename K::StrideD{}, make_shape(m, n, 1));
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                     {m, n, k, 1},
                                     {static_cast<const Element *>(a), strideA, static_cast<const Element *>(b), strideB},
                                     {{}, nullptr, {}, static_cast<Element *>(d), strideD}};
  auto instance = std::make_unique<Instance<Gemm>>();
  return instance->initialize(arguments) ? instance.release() : nullptr;
}

using Half = cutlass::half_t;
using Tile49 = Shape<_128, _128, _64>;
template <class Cluster, class Schedule, class EpilogueSchedule, class Scheduler = cutlass::gemm::PersistentScheduler>
using Example49 = Example<Half, Tile49, Cluster, Schedule, EpilogueSchedule, Scheduler>;
using Pair = Shape<_2, _1, _1>;
using Example48 = Example<float, Shape<_128, _128, _32>, Shape<_4, _2, _1>, cutlass::gemm::collective::KernelScheduleAuto,
                          cutlass::epilogue::collective::EpilogueScheduleAuto, cutlass::gemm::PersistentScheduler>;

} // namespace foreign

using namespace foreign;

extern "C" void *peer_create(int kind, int m, int n, int k, int, const void *a, const void *b, const void *, const void *,
                             void *d) {
  namespace g = cutlass::gemm;
  namespace e = cutlass::epilogue;
  switch (kind) {
  case Tf32:
    return create<Example48, float>(m, n, k, a, b, d);
  case Specialized:
    return create<Example49<Pair, g::KernelTmaWarpSpecialized, e::NoSmemWarpSpecialized>, Half>(m, n, k, a, b, d);
  case Pingpong:
    return create<Example49<Pair, g::KernelTmaWarpSpecializedPingpong, e::TmaWarpSpecialized>, Half>(m, n, k, a, b, d);
  case Cooperative:
    return create<Example49<Pair, g::KernelTmaWarpSpecializedCooperative, e::TmaWarpSpecializedCooperative>, Half>(
        m, n, k, a, b, d);
  case StreamK:
    return create<Example49<Pair, g::KernelTmaWarpSpecializedCooperative, e::TmaWarpSpecializedCooperative,
                            g::StreamKScheduler>, Half>(m, n, k, a, b, d);
  default:
    return problem = "no such kernel", nullptr;
  }
}
