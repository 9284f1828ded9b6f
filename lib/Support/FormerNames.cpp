//===- FormerNames.cpp - Words that version 0.2 renamed -------------------===//
#include "fp4/Support/FormerNames.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace fp4 {
namespace {

struct Renamed {
  std::string_view former, present;
};

constexpr Renamed kRenamed[] = {
    // Families and fields of plans.
    {"tile_product", "tile_gemm"},
    {"stream_dots", "gemv"},
    {"resident", "ctas_per_sm"},
    {"overlap", "pdl"},
    {"join", "reduction"},
    {"ranges", "k_slices"},
    {"swap", "route = <orientation = swapped>"},
    {"max_rows", "m = [1, ..] of #fp4.case"},
    {"depth_unit", "k_unit of #fp4.case"},
    {"split_k", "split_k of #fp4.case or of #fp4.work"},
    {"pdl = both", "pdl = before_wait of GEMMs, behind_loads of stream_blocks, else in_turn"},
    {"pdl = waits", "pdl = at_end"},
    // Attributes of programs.
    {"product_arithmetic", "matmul_arithmetic"},
    {"multiprocessors", "sms"},
    {"fp4.overlaps", "fp4.pdl"},
    {"fp4.waits", "fp4.pdl = #fp4.launch_dependents<at_end>"},
    {"fp4.pdl_in_turn", "fp4.pdl = #fp4.launch_dependents<in_turn>"},
    {"fp4.pdl_behind_loads", "fp4.pdl = #fp4.launch_dependents<behind_loads>"},
    // Operations of the pipe dialect.
    {"pipe.join", "pipe.count_partial"},
    {"pipe.join_fragment", "pipe.reduce"},
    {"pipe.join_lanes", "pipe.reduce"},
    {"pipe.hold_weights", "pipe.dequantize"},
    {"pipe.mma_held", "pipe.mma"},
    {"pipe.convert_tile", "pipe.dequantize"},
    {"pipe.convert_lanes", "pipe.dequantize"},
    {"pipe.unpack_lanes", "pipe.dequantize"},
    {"pipe.load_resident", "pipe.dequantize"},
    {"pipe.mma_converted", "pipe.mma"},
    {"pipe.mma_dense", "pipe.mma"},
    {"pipe.mma_fragment", "pipe.mma"},
    {"pipe.mma_lanes", "pipe.mma"},
    {"pipe.mma_prepacked", "pipe.mma"},
    {"pipe.mma_resident", "pipe.mma"},
    {"pipe.mma_sync", "pipe.mma"},
    {"pipe.load_scales", "pipe.load"},
    {"pipe.load_rows", "pipe.load"},
    {"pipe.read_fragment", "pipe.read"},
    {"pipe.read_lanes", "pipe.read"},
    {"pipe.read_warp_fragment", "pipe.read"},
    {"pipe.store_fragment", "pipe.store"},
    {"pipe.store_column", "pipe.store"},
    {"pipe.store_few_scales", "pipe.store"},
    {"pipe.stage_fragment", "pipe.stage"},
    {"pipe.row_amax", "pipe.amax"},
    {"pipe.fragment_amax", "pipe.amax"},
    {"pipe.fragment_factors", "pipe.fetch"},
    {"pipe.lane_column", "pipe.place"},
    {"pipe.lane_half", "pipe.place"},
    {"pipe.warp_place", "pipe.place"},
    {"pipe.fetch_fragment", "pipe.fetch"},
    {"pipe.lane_scale", "pipe.scales"},
    {"pipe.lane_tile_scale", "pipe.scales"},
    {"pipe.promote_lanes", "pipe.promote"},
    {"pipe.to_vector", "pipe.elements"},
    {"pipe.from_vector", "pipe.elements"},
    {"pipe.make_matrix_map", "pipe.make_tensor_map"},
    {"pipe.fragment", "pipe.accumulator"},
    {"pipe.block_scales", "pipe.scales"},
    {"pipe.tile_scales", "pipe.scales"},
    {"pipe.tile_powers", "pipe.scales"},
    {"pipe.row_powers", "pipe.fetch"},
    {"pipe.reduce_fragment", "pipe.reduce"},
    {"pipe.reduce_tmem", "pipe.reduce"},
    {"pipe.partial_release", "pipe.consumer_release partial"},
    {"pipe.store_tile", "pipe.store"},
    {"pipe.leave_fragment", "pipe.store"},
    {"pipe.copied_scales", "pipe.copy_scales copied"},
    {"pipe.mma_blockwise", "pipe.mma"},
    {"pipe.load_scalar", "pipe.load_entry"},
    {"pipe.load_factors", "pipe.fetch"},
    {"pipe.global_view", "pipe.view"},
    {"pipe.buffer_view", "pipe.view"},
    {"pipe.global_ptr", "pipe.view"},
    {"pipe.matrix", "pipe.view"},
    // Flags of tools.
    {"--overlap-launches", "--pdl"},
    {"--no-overlap-launches", "--no-pdl"},
    {"--multiprocessors", "--sms"},
    {"--fp4-overlap-launches", "--fp4-pdl-launches"},
    {"multiprocessors=", "sms="}, // an option of a pass
};

} // namespace

std::optional<std::string_view> presentName(std::string_view former) {
  const auto *found = std::ranges::find(kRenamed, former, &Renamed::former);
  if (found == std::end(kRenamed))
    return std::nullopt;
  return found->present;
}

std::string renamedNote(std::string_view word, std::string otherwise) {
  const auto present = presentName(word);
  return present ? fmt::format("'{}' is called '{}' now", word, *present) : otherwise;
}

} // namespace fp4
