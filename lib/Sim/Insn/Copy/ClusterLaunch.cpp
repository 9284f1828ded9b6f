//===- ClusterLaunch.cpp - clusterlaunchcontrol ---------------------------===//
//
// PTX ISA, "clusterlaunchcontrol.try_cancel" and "clusterlaunchcontrol.query_cancel": a running
// cluster takes over the work of one that has not started. The request is a ticket; the response of
// 16 bytes (ours: the three words of a CTA index, then 1 for success) lands in shared memory like a
// copy. The random policy also refuses requests while clusters are left, which the device may do.
// If a launch has clusters of two sizes, a cluster takes over clusters of its own size only,
// because programs go on as if all clusters had this size.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Copy/AsyncOperands.h"

#include <cstring>

namespace fp4::sim {
namespace {

struct Response {
  uint32_t cta[3] = {0, 0, 0};
  uint32_t canceled = 0;
};
static_assert(sizeof(Response) == 16);

Response request(Cluster &cluster) {
  Response response;
  std::array<uint32_t, 3> first{};
  cluster.policy->touches(Policy::Shared::WorkQueue, Policy::Touch::Write, 0, 0);
  if (cluster.policy->spurious(4) || !cluster.launch->cancelNextCluster(cluster.shape, first))
    return response;
  std::copy(first.begin(), first.end(), response.cta);
  response.canceled = 1;
  return response;
}

/// One lane's request: response and mbarrier in the own CTA, or at their offsets in every CTA.
Outcome tryCancelLane(ExecContext &cx, const Insn &insn, int lane) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<CancelModifiers>();
  uint32_t response, barrier;
  if (!sharedAddress(cx, how.space, insn.op[0], lane, response) ||
      !sharedAddress(cx, how.space, insn.op[1], lane, barrier))
    return Outcome::Error;
  if (response % sizeof(Response))
    return cx.fail("expects a response address that is a multiple of 16", "", lane);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::ClusterLaunch, lane);
  const uint32_t ctas = uint32_t(cx.cluster().ctas.size()), own = cx.cta().rank;
  for (uint32_t rank = how.multicast ? 0 : own; rank < (how.multicast ? ctas : own + 1); ++rank) {
    const uint32_t base = rank << kSharedRankShift;
    ticket.writes.shared.push_back({base | (response & kSharedOffsetMask), sizeof(Response)});
    ticket.signals.push_back(base | (barrier & kSharedOffsetMask));
    if (auto object = queue.mbarrier(ticket.signals.back()); !object)
      return failHere(cx, std::move(object.error()), lane);
  }
  ticket.stages.push_back([&queue](const Ticket &self) -> Status {
    const Response answer = request(queue.cluster());
    for (const SharedRange &range : self.writes.shared) {
      FP4_ASSIGN(auto to, queue.sharedDestination(range.address, range.bytes));
      std::memcpy(to, &answer, sizeof answer);
      queue.emitAccess(self, AccessKind::Write, Space::SharedCluster, range.address, range.bytes,
                       Proxy::Async);
    }
    return {};
  });
  ticket.signal = [&queue](const Ticket &self) -> Status {
    for (uint32_t target : self.signals)
      FP4_TRY(queue.completeTx(target, sizeof(Response), self));
    return {};
  };
  return finish(cx, queue.issue(std::move(ticket)));
}

Outcome tryCancel(ExecContext &cx, const Insn &insn) {
  if (cx.cta().sawRequestFail)
    return cx.fail("try_cancel must not be a request after one that failed",
                   "a query of this CTA said that nothing was left; PTX leaves undefined what follows",
                   std::countr_zero(cx.mask));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (tryCancelLane(cx, insn, std::countr_zero(rest)) == Outcome::Error)
      return Outcome::Error;
  return Outcome::Next;
}

Outcome isCanceled(ExecContext &cx, const Insn &insn) {
  const Response *responses = cx.src<Response>(insn.op[1]);
  uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane)
    lanes |= uint32_t(responses[lane].canceled & 1) << lane;
  cx.cta().sawRequestFail |= (cx.mask & ~lanes) != 0;
  cx.setPredicate(insn.op[0], lanes);
  return Outcome::Next;
}

/// The index of a request that failed is undefined: an error in strict mode. Programs in practice
/// read the index before they test for success; default mode gives them an index of no CTA.
bool isDefined(ExecContext &cx, const Response *responses) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (!responses[std::countr_zero(rest)].canceled &&
        cx.launch().options->judgement == Judgement::Letter) {
      cx.fail("get_first_ctaid expects the response of a request that succeeded",
              "test is_canceled first", std::countr_zero(rest));
      return false;
    }
  return true;
}

uint32_t indexOf(const Response &response, unsigned axis) {
  constexpr uint32_t none = ~0u;
  return response.canceled ? response.cta[axis] : none;
}

Outcome firstCta(ExecContext &cx, const Insn &insn) {
  const Response *responses = cx.src<Response>(insn.op[1]);
  if (!isDefined(cx, responses))
    return Outcome::Error;
  const Operand *elements = cx.elements(insn.op[0]);
  for (unsigned axis = 0; axis < 3; ++axis)
    if (elements[axis])
      cx.store<uint32_t>(elements[axis], [&](int lane) { return indexOf(responses[lane], axis); });
  return Outcome::Next;
}

Outcome firstCtaAxis(ExecContext &cx, const Insn &insn) {
  const Response *responses = cx.src<Response>(insn.op[1]);
  if (!isDefined(cx, responses))
    return Outcome::Error;
  const unsigned axis = insn.as<FirstCtaModifiers>().axis;
  cx.store<uint32_t>(insn.op[0], [&](int lane) { return indexOf(responses[lane], axis); });
  return Outcome::Next;
}

} // namespace

Status bindTryCancel(BindContext &bind) {
  bind.insn.make<CancelModifiers>(
      {spaceFromText(bind.match.text("space")), bind.match.has("multicast::cluster::all")});
  return bind.use(tryCancel);
}
Status bindIsCanceled(BindContext &bind) { return bind.use(isCanceled); }
Status bindFirstCta(BindContext &bind) {
  if (bind.insn.op[0].imm != 4)
    return bind.fail("get_first_ctaid.v4 expects four destinations");
  return bind.use(firstCta);
}
Status bindFirstCtaAxis(BindContext &bind) {
  bind.insn.make<FirstCtaModifiers>({uint8_t(bind.match.text("axis").back() - 'x')});
  return bind.use(firstCtaAxis);
}

} // namespace fp4::sim
