//===- TensorCopy.cpp - cp.async.bulk.tensor ------------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: Tensor copy". One box per active lane in
// tile mode; in the modes tile::gather4 and tile::scatter4 four boxes of one row each, which lie
// one after the other in shared memory; in im2col mode a column of pixels. Cache hints are accepted
// and have no effect.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/Reduction.h"
#include "Sim/Async/TensorBox.h"
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include "fp4/Sim/Observer.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::TensorMap;
using MapPtr = std::shared_ptr<const TensorMap>;

/// Maps elsewhere do not change while a kernel runs.
void reportUse(ExecContext &cx, const ExecContext::Place &map, int lane) {
  if (!cx.observer || map.space != Space::Global)
    return;
  MemoryEvent event;
  event.actor = cx.actor();
  event.at = cx.here();
  event.proxy = Proxy::Tensormap;
  event.laneMask = 1u << lane;
  event.bytes = TensorMap::usedBytes;
  event.uniform = true;
  event.addresses = &map.address;
  cx.observer->onMemory(event);
}

/// The tensor map an operand names: a generic address into param, const or global memory.
MapPtr tensorMap(ExecContext &cx, const Insn &insn, const Operand &o, int lane) {
  const auto place = cx.place(Space::Generic, cx.address(o, lane));
  const std::byte *bytes = cx.readable(place.space, place.address, TensorMap::usedBytes, 64, lane);
  if (!bytes)
    return nullptr;
  reportUse(cx, place, lane);
  auto map = TensorMap::decode(
      std::span<const std::byte, TensorMap::usedBytes>(bytes, TensorMap::usedBytes));
  if (!map) {
    failHere(cx, std::move(map.error()), lane);
    return nullptr;
  }
  const auto &how = insn.as<TensorModifiers>();
  const bool ofPixels = how.mode == TensorMode::Im2col;
  if (map->rank != how.dimensions) {
    cx.fail(fmt::format("a .{}d copy expects a tensor map of that rank, but got rank {}",
                        how.dimensions, map->rank),
            "", lane);
    return nullptr;
  }
  if (map->pixels.has_value() != ofPixels) {
    cx.fail(fmt::format("a copy in {} mode expects a tensor map of that mode, but got one for {}",
                        ofPixels ? "im2col" : "tile", ofPixels ? "tiles" : "im2col"),
            "", lane);
    return nullptr;
  }
  return std::make_shared<const TensorMap>(*map);
}

/// The copy that one lane asks for.
struct Request {
  MapPtr map;                     ///< map with the box that `boxes` are copies of
  MapPtr tile;                    ///< map with the box that lies in shared memory
  std::vector<Coordinates> boxes; ///< one, or four rows
  PixelOffsets offsets{};
  uint32_t shared = 0, barrier = 0;
};

constexpr unsigned gatheredRows = 4;

bool copiesRows(const Insn &insn) {
  return insn.as<TensorModifiers>().mode == TensorMode::FourRows;
}

/// Fills `boxes`: {x, y, ...}, or {x, y0, y1, y2, y3} where four rows are copied.
bool coordinates(ExecContext &cx, const Insn &insn, const Operand &o, int lane, Request &request) {
  const Operand *elements = cx.elements(o);
  const unsigned dimensions = insn.as<TensorModifiers>().dimensions;
  const unsigned count = copiesRows(insn) ? 1 + gatheredRows : dimensions;
  if (cx.elementCount(o) != count) {
    cx.fail(fmt::format("a .{}d copy{} expects {} coordinates, but got {}", dimensions,
                        copiesRows(insn) ? " of four rows" : "", count, cx.elementCount(o)));
    return false;
  }
  Coordinates at{};
  for (unsigned d = 0; d < count; ++d)
    at[d] = static_cast<int32_t>(cx.scalar(elements[d], lane));
  request.boxes = {at};
  if (copiesRows(insn)) {
    request.boxes.clear();
    for (unsigned i = 0; i < gatheredRows; ++i)
      request.boxes.push_back({at[0], at[1 + i]});
  }
  return true;
}

/// Reads the map that `o` names and checks the boxes against it.
bool mapAndBoxes(ExecContext &cx, const Insn &insn, const Operand &o, int lane, bool store,
                 Request &request) {
  request.map = request.tile = tensorMap(cx, insn, o, lane);
  if (!request.map)
    return false;
  if (copiesRows(insn) && request.map->box[1] != 1) {
    cx.fail(
        fmt::format("a copy of four rows expects a tensor map with a box of one row, but got {}",
                    request.map->box[1]),
        "", lane);
    return false;
  }
  for (const Coordinates &at : request.boxes)
    if (Status ok = checkBox(*request.map, at, request.shared, store); !ok)
      return failHere(cx, std::move(ok.error()), lane), false;
  if (copiesRows(insn)) {
    TensorMap tile = *request.map;
    tile.box[1] = gatheredRows;
    request.tile = std::make_shared<const TensorMap>(tile);
  }
  return true;
}

GlobalResolver resolver(TicketQueue &queue, bool toWrite) {
  return [&queue, toWrite](uint64_t address, uint64_t bytes) {
    return globalBytes(queue, address, bytes, toWrite);
  };
}

GlobalTouched reader(TicketQueue &queue, const Ticket &self) {
  return [&queue, &self](uint64_t address, uint32_t bytes) {
    queue.emitAccess(self, AccessKind::Read, Space::Global, address, bytes, Proxy::Async);
  };
}

/// Lists the runs that a ticket moves, for a policy that predicts time. Columns of pixels are not
/// listed.
void listRuns(TicketQueue &queue, const Request &request, Ticket &ticket) {
  if (!queue.cluster().policy->cycles() || request.map->pixels)
    return;
  for (const Coordinates &at : request.boxes)
    forEachGlobalRun(*request.map, at, [&](uint64_t address, uint32_t bytes) {
      ticket.work.global.push_back({address, bytes});
    });
  const uint64_t rows =
      request.boxes.size() * request.map->boxSharedBytes() / request.map->boxRowBytes();
  ticket.work.outsideRows = uint32_t(rows - std::min<uint64_t>(rows, ticket.work.global.size()));
}

/// One destination of a load.
Ticket loadTicket(ExecContext &cx, const Insn &insn, int lane, const Request &request) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Tma, lane);
  const uint32_t bytes = sharedExtent(*request.tile);
  ticket.work.bytes = request.tile->transactionBytes();
  ticket.writes.shared.push_back({request.shared, bytes});
  ticket.signals.push_back(request.barrier);
  listRuns(queue, request, ticket);
  ticket.stages.push_back([&queue, request, bytes](const Ticket &self) -> Status {
    FP4_ASSIGN(auto to, queue.sharedDestination(request.shared, bytes));
    std::vector<std::byte> data;
    for (const Coordinates &at : request.boxes) {
      FP4_ASSIGN(auto box, readBox(*request.map, at, resolver(queue, false), reader(queue, self),
                                   request.offsets));
      data.insert(data.end(), box.begin(), box.end());
    }
    swizzleInto(*request.tile, request.shared, to, data);
    queue.emitAccess(self, AccessKind::Write, Space::SharedCluster, request.shared, bytes,
                     Proxy::Async);
    return {};
  });
  ticket.signal = [&queue, request](const Ticket &self) {
    return queue.completeTx(request.barrier, request.tile->transactionBytes(), self);
  };
  return ticket;
}

/// The mbarrier that the copy into CTA `rank` signals: the given one without multicast; with it,
/// the one at the same offset in that CTA, or for cta_group::2 in the CTA of its pair that has the
/// parity of the given one's.
uint32_t signalledBarrier(const Insn &insn, uint32_t barrier, uint32_t rank) {
  const auto &how = insn.as<TensorModifiers>();
  if (!how.multicast)
    return barrier;
  const uint32_t given = barrier >> kSharedRankShift;
  const uint32_t to = how.ctaGroup == 2 ? (rank & ~1u) | (given & 1) : rank;
  return to << kSharedRankShift | (barrier & kSharedOffsetMask);
}

/// `o`, in im2col mode: one offset for each dimension between channels and images.
bool pixelOffsets(ExecContext &cx, const Insn &insn, const Operand &o, int lane, Request &request) {
  const auto &how = insn.as<TensorModifiers>();
  if (how.mode != TensorMode::Im2col)
    return true;
  const unsigned count = how.dimensions - 2u;
  if (cx.elementCount(o) != count) {
    cx.fail(fmt::format("a .{}d copy in im2col mode expects {} offsets, but got {}", how.dimensions,
                        count, cx.elementCount(o)));
    return false;
  }
  constexpr unsigned limits[] = {1 << 16, 1 << 8, 1 << 5};
  for (unsigned d = 0; d < count; ++d) {
    request.offsets[d] = uint16_t(cx.scalar(cx.elements(o)[d], lane));
    if (request.offsets[d] >= limits[count - 1]) {
      cx.fail(fmt::format("an im2col offset of a .{}d copy must be below {}, but got {}",
                          how.dimensions, limits[count - 1], request.offsets[d]),
              "", lane);
      return false;
    }
  }
  return true;
}

bool loadOperands(ExecContext &cx, const Insn &insn, int lane, Request &request) {
  const Space space = insn.as<TensorModifiers>().toOwnCta ? Space::SharedCta : Space::SharedCluster;
  if (!sharedAddress(cx, space, insn.op[0], lane, request.shared) ||
      !coordinates(cx, insn, insn.op[2], lane, request) ||
      !sharedAddress(cx, space, insn.op[3], lane, request.barrier) ||
      !pixelOffsets(cx, insn, insn.op[4], lane, request))
    return false;
  return mapAndBoxes(cx, insn, insn.op[1], lane, false, request);
}

/// PTX ISA, "cp.async.bulk.tensor": global to shared memory of one CTA or, by mask, of several.
Outcome tensorLoad(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<TensorModifiers>();
  const unsigned maskAt = how.mode == TensorMode::Im2col ? 5 : 4;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Request request;
    if (!loadOperands(cx, insn, lane, request))
      return Outcome::Error;
    uint32_t ranks = how.multicast ? uint32_t(cx.scalar(insn.op[maskAt], lane)) & 0xFFFF
                                   : 1u << (request.shared >> kSharedRankShift);
    for (; ranks; ranks &= ranks - 1) {
      const uint32_t rank = uint32_t(std::countr_zero(ranks));
      Request one = request;
      one.shared = rank << kSharedRankShift | (request.shared & kSharedOffsetMask);
      one.barrier = signalledBarrier(insn, request.barrier, rank);
      if (Status ok = checkDestinationBarrier(queue, one.barrier, one.shared, how.ctaGroup == 2);
          !ok)
        return failHere(cx, std::move(ok.error()), lane);
      if (Status ok = queue.issue(loadTicket(cx, insn, lane, one)); !ok)
        return cx.fail(std::move(ok.error()));
    }
  }
  return Outcome::Next;
}

/// The reduction of a tensor map's element type; null without one.
ReduceFn mapReduction(ReductionOp op, hw::TensorMapType type) {
  const bool bitwise = op >= ReductionOp::And;
  switch (type) {
  case hw::TensorMapType::UInt32:
    return reduction(op, bitwise ? Type::B32 : Type::U32);
  case hw::TensorMapType::Int32:
    return reduction(op, bitwise ? Type::B32 : Type::S32);
  case hw::TensorMapType::UInt64:
    return reduction(op, bitwise ? Type::B64 : Type::U64);
  case hw::TensorMapType::Int64:
    return reduction(op, bitwise ? Type::B64 : Type::S64);
  case hw::TensorMapType::Float16:
    return reduction(op, Type::F16);
  case hw::TensorMapType::BFloat16:
    return reduction(op, Type::BF16);
  case hw::TensorMapType::Float32:
  case hw::TensorMapType::Float32Ftz:
    return reduction(op, Type::F32);
  default:
    return nullptr;
  }
}

Ticket storeTicket(ExecContext &cx, const Insn &insn, int lane, const Request &request,
                   ReduceFn reduce) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Tma, lane);
  ticket.engine = Engine::BulkStore;
  ticket.work.bytes = request.tile->transactionBytes();
  ticket.sharedReads = 1u << (request.shared >> kSharedRankShift);
  listRuns(queue, request, ticket);
  auto data = std::make_shared<std::vector<std::byte>>();
  ticket.stages.push_back([&queue, request, data](const Ticket &self) -> Status {
    const uint32_t bytes = sharedExtent(*request.tile);
    queue.emitAccess(self, AccessKind::Read, Space::SharedCluster, request.shared, bytes,
                     Proxy::Async);
    FP4_ASSIGN(auto from, queue.sharedSource(request.shared, bytes, self));
    *data = unswizzle(*request.tile, request.shared, from);
    return {};
  });
  ticket.stages.push_back([&queue, request, data, reduce](const Ticket &self) -> Status {
    const unsigned width = tensorMapTypeBits(request.map->elementType) / 8;
    bool same = false; // the run holds these bytes already
    auto combine = [&](std::byte *to, const std::byte *from, size_t bytes) {
      same = !reduce && std::memcmp(to, from, bytes) == 0;
      if (reduce)
        reduce(to, from, bytes / width);
      else
        std::memcpy(to, from, bytes);
    };
    const AccessKind kind = reduce ? AccessKind::Atomic : AccessKind::Write;
    auto touched = [&](uint64_t address, uint32_t bytes) {
      queue.emitAccess(self, kind, Space::Global, address, bytes, Proxy::Async, same);
    };
    const size_t boxBytes = data->size() / request.boxes.size();
    for (size_t i = 0; i < request.boxes.size(); ++i)
      FP4_TRY(writeBox(*request.map, request.boxes[i],
                       std::span(*data).subspan(i * boxBytes, boxBytes), resolver(queue, true),
                       touched, combine));
    return {};
  });
  return ticket;
}

/// PTX ISA, "cp.async.bulk.tensor" and "cp.reduce.async.bulk.tensor": shared to global memory.
Outcome tensorStore(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const std::optional<ReductionOp> op = insn.as<TensorModifiers>().reduction;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Request request;
    if (!coordinates(cx, insn, insn.op[1], lane, request) ||
        !sharedAddress(cx, Space::SharedCta, insn.op[2], lane, request.shared) ||
        !mapAndBoxes(cx, insn, insn.op[0], lane, true, request))
      return Outcome::Error;
    const ReduceFn reduce = op ? mapReduction(*op, request.map->elementType) : nullptr;
    if (op && !reduce)
      return cx.fail(fmt::format("this reduction does not exist for a tensor map of type {}",
                                 stringify(request.map->elementType)),
                     "", lane);
    Ticket ticket = storeTicket(cx, insn, lane, request, reduce);
    registerInGroup(queue, ticket);
    if (Status ok = queue.issue(std::move(ticket)); !ok)
      return cx.fail(std::move(ok.error()));
  }
  return Outcome::Next;
}

/// PTX ISA, "cp.async.bulk.prefetch.tensor": checks what a load would; there is no cache to fill.
Outcome tensorPrefetch(ExecContext &cx, const Insn &insn) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Request request;
    if (!coordinates(cx, insn, insn.op[1], lane, request) ||
        !pixelOffsets(cx, insn, insn.op[2], lane, request) ||
        !mapAndBoxes(cx, insn, insn.op[0], lane, false, request))
      return Outcome::Error;
  }
  return Outcome::Next;
}

/// PTX ISA, "prefetch": of a tensor map, which must be one.
Outcome prefetchTensormap(ExecContext &cx, const Insn &insn) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto place = cx.place(insn.as<SpaceModifiers>().space, cx.address(insn.op[0], lane));
    if (!cx.readable(place.space, place.address, TensorMap::encodedBytes, 64, lane))
      return Outcome::Error;
  }
  return Outcome::Next;
}

Status decodeTensor(BindContext &bind, std::optional<ReductionOp> reduction = {}) {
  const std::string_view mode = bind.match.text("mode");
  auto &how = bind.insn.make<TensorModifiers>(
      {bind.match.text("dst") == "shared::cta",
       bind.match.has("multicast::cluster") || bind.match.has("multicast::cluster::32b")});
  for (const char *slot : {"group0", "group", "group2"}) // compilers are known to write it there
    if (bind.match.text(slot) == "cta_group::2")
      how.ctaGroup = 2;
  how.reduction = reduction;
  how.dimensions = uint8_t(bind.match.text("dim")[0] - '0');
  how.mode = mode.starts_with("tile::")   ? TensorMode::FourRows
             : mode.starts_with("im2col") ? TensorMode::Im2col
                                          : TensorMode::Tile;
  if (how.mode == TensorMode::Im2col && how.dimensions < 3)
    return bind.fail(
        fmt::format(".{} expects .3d to .5d, but got .{}", mode, bind.match.text("dim")));
  if (how.mode == TensorMode::FourRows && how.dimensions != 2)
    return bind.fail(fmt::format(".{} expects .2d, but got .{}", mode, bind.match.text("dim")));
  return {};
}

} // namespace

Status bindTensorLoad(BindContext &bind) {
  FP4_TRY(decodeTensor(bind));
  return bind.use(tensorLoad);
}
Status bindTensorStore(BindContext &bind) {
  FP4_TRY(decodeTensor(bind));
  return bind.use(tensorStore);
}
Status bindTensorReduce(BindContext &bind) {
  FP4_TRY(decodeTensor(bind, reductionFromText(bind.match.text("op"))));
  return bind.use(tensorStore);
}
Status bindTensorPrefetch(BindContext &bind) {
  FP4_TRY(decodeTensor(bind));
  return bind.use(tensorPrefetch);
}
Status bindPrefetchTensormap(BindContext &bind) {
  const std::string_view space = bind.match.text("space");
  bind.insn.make<SpaceModifiers>({space == "param"   ? Space::Param
                                  : space == "const" ? Space::Const
                                                     : Space::Generic});
  return bind.use(prefetchTensormap);
}

} // namespace fp4::sim
