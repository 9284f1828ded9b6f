// cutlass_kernels.cu: the kernels of CUTLASS' examples 54, 67 (groupwise) and 68 with results in bf16, rows first, and
// without the activation and the second result of example 54. Tiles, clusters and schedules are those of the examples.
//
// cutlass.py compiles it against a checkout. The kind of cutlass_launch.h's peer_create is 54, 67 or 68; a is M x K and b is N x K of e4m3 (groups
// one after the other, of M/groups rows each), sfa is K/128 x M f32 (of each group), sfb N/128 x K/128 f32.
#include <memory>
#include <vector>

#include "cute/tensor.hpp"
#include "cutlass/detail/blockwise_scale_layout.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/dispatch_policy.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/group_array_problem_shape.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

#include "cutlass_launch.h"

using namespace cute;
using E4M3 = cutlass::float_e4m3_t;
using Bf16 = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Cluster = Shape<_1, _2, _1>;
using Scales = cutlass::detail::Sm90BlockwiseScaleConfig<1, 128, 128, GMMA::Major::MN, GMMA::Major::K>;
using LayoutSFA = decltype(Scales::deduce_layoutSFA());
using LayoutSFB = decltype(Scales::deduce_layoutSFB());

namespace {

/// A pointer to LayoutD for arrays of matrices, else LayoutD.
template <class Tile, class EpilogueTile, class LayoutD, class Schedule>
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, EpilogueTile, float, float, void, LayoutD, 8,
    Bf16, LayoutD, 8, Schedule>::CollectiveOp;

template <class Problem, class Tile, class LayoutA, class LayoutB, class Epilogue, class Schedule>
using Kernel = cutlass::gemm::device::GemmUniversalAdapter<cutlass::gemm::kernel::GemmUniversal<
    Problem,
    typename cutlass::gemm::collective::CollectiveBuilder<
        cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, E4M3, LayoutA, 16, E4M3, LayoutB, 16, float, Tile, Cluster,
        cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
        Schedule>::CollectiveOp,
    Epilogue>>;

using Tile128 = Shape<_128, _128, _128>;
using Tile256 = Shape<_256, _128, _128>;
using Dense = Shape<int, int, int, int>;
using Groups = cutlass::gemm::GroupProblemShape<Shape<int, int, int>>;

using Epilogue54 = Epilogue<Tile128, cutlass::epilogue::collective::EpilogueTileAuto, Row,
                            cutlass::epilogue::TmaWarpSpecializedCooperative>;
using Gemm54 = Kernel<Dense, Tile128, Row, Column, Epilogue54, cutlass::gemm::KernelTmaWarpSpecializedCooperative>;

using Epilogue67 = Epilogue<Tile256, Shape<_128, _128>, Row, cutlass::epilogue::TmaWarpSpecializedCooperative>;
using Gemm67 = Kernel<Dense, Tile256, cute::tuple<Row, LayoutSFA>, cute::tuple<Column, LayoutSFB>, Epilogue67,
                      cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8Blockwise>;

using Epilogue68 = Epilogue<Tile128, cutlass::epilogue::collective::EpilogueTileAuto, Row *,
                            cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative>;
using Gemm68 = Kernel<Groups, Tile128, cute::tuple<Row *, LayoutSFA *>, cute::tuple<Column *, LayoutSFB *>, Epilogue68,
                      cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperativeFP8Blockwise>;

/// Device memory with these values; it lives until the process ends.
template <class T>
T *upload(const std::vector<T> &values) {
  T *memory = nullptr;
  cudaMalloc(&memory, values.size() * sizeof(T));
  cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}

struct Operands {
  int m, n, k, groups;
  const E4M3 *a, *b;
  const float *sfa, *sfb;
  Bf16 *d;
};

template <class Gemm, class... ScaleArguments>
Launchable *dense(const Operands &o, ScaleArguments... scales) {
  using K = typename Gemm::GemmKernel;
  auto strideA = cutlass::make_cute_packed_stride(typename K::StrideA{}, make_shape(o.m, o.k, 1));
  auto strideB = cutlass::make_cute_packed_stride(typename K::StrideB{}, make_shape(o.n, o.k, 1));
  auto strideD = cutlass::make_cute_packed_stride(typename K::StrideD{}, make_shape(o.m, o.n, 1));
  auto instance = std::make_unique<Instance<Gemm>>();
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                     {o.m, o.n, o.k, 1},
                                     {o.a, strideA, o.b, strideB, scales...},
                                     {{}, nullptr, {}, o.d, strideD}};
  return instance->initialize(arguments) ? instance.release() : nullptr;
}

Launchable *grouped(const Operands &o) {
  using K = Gemm68::GemmKernel;
  int rows = o.m / o.groups, blocks = o.k / 128;
  auto shape = make_shape(rows, o.n, o.k, 1);
  size_t count = o.groups;
  std::vector<typename Groups::UnderlyingProblemShape> sizes(count, {rows, o.n, o.k});
  std::vector<const E4M3 *> a, b;
  std::vector<const float *> sfa, sfb;
  std::vector<Bf16 *> d;
  for (int64_t g = 0; g < o.groups; ++g) {
    a.push_back(o.a + g * rows * o.k), b.push_back(o.b + g * o.n * o.k), d.push_back(o.d + g * rows * o.n);
    sfa.push_back(o.sfa + g * rows * blocks), sfb.push_back(o.sfb + g * (o.n / 128) * blocks);
  }
  using A = typename K::InternalStrideA;
  using B = typename K::InternalStrideB;
  using D = typename K::InternalStrideD;
  A *strideA = upload(std::vector<A>(count, cutlass::make_cute_packed_stride(A{}, make_shape(rows, o.k, 1))));
  B *strideB = upload(std::vector<B>(count, cutlass::make_cute_packed_stride(B{}, make_shape(o.n, o.k, 1))));
  D *strideD = upload(std::vector<D>(count, cutlass::make_cute_packed_stride(D{}, make_shape(rows, o.n, 1))));
  auto *layoutA = upload(std::vector<LayoutSFA>(count, Scales::tile_atom_to_shape_SFA(shape)));
  auto *layoutB = upload(std::vector<LayoutSFB>(count, Scales::tile_atom_to_shape_SFB(shape)));
  auto instance = std::make_unique<Instance<Gemm68>>();
  typename Gemm68::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGrouped,
      {o.groups, upload(sizes), sizes.data()},
      {upload(a), strideA, upload(b), strideB, upload(sfa), layoutA, upload(sfb), layoutB},
      {{}, nullptr, nullptr, upload(d), strideD},
      cutlass::KernelHardwareInfo::make_kernel_hardware_info<K>(0)};
  return instance->initialize(arguments) ? instance.release() : nullptr;
}

} // namespace

extern "C" void *peer_create(int kind, int m, int n, int k, int groups, const void *a, const void *b, const void *sfa,
                             const void *sfb, void *d) {
  Operands o{m, n, k, groups, static_cast<const E4M3 *>(a), static_cast<const E4M3 *>(b),
             static_cast<const float *>(sfa), static_cast<const float *>(sfb), static_cast<Bf16 *>(d)};
  if (kind == 54)
    return dense<Gemm54>(o);
  auto shape = make_shape(m, n, k, 1);
  if (kind == 67)
    return dense<Gemm67>(o, o.sfa, Scales::tile_atom_to_shape_SFA(shape), o.sfb, Scales::tile_atom_to_shape_SFB(shape));
  return grouped(o);
}
