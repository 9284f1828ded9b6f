//===- Calendar.h - The events of one slot, in the order of their times ---===//
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fp4::sim {

/// Numbers of events that belong to no warp: the turn of a scheduler, the end of a stage of an
/// asynchronous operation.
inline constexpr uint32_t kTurn = ~1u, kTicket = ~0u;

/// The next instruction of a warp, or one of these.
struct TimedEvent {
  double when;
  uint64_t order;   ///< order of events at one time
  uint32_t running; ///< index in Slot::running; of a turn, the scheduler of the slot
  uint32_t warp;
  uint64_t ticket;
  bool before(const TimedEvent &o) const {
    return when != o.when ? when < o.when : order < o.order;
  }
};

/// A heap. The place of an event that take() returned stays open for the next push, because an
/// event mostly has one that follows it, soon: a warp's next instruction.
class Calendar {
public:
  bool empty() const { return heap.size() == (open ? 1 : 0); }
  const TimedEvent &top() {
    close();
    return heap.front();
  }
  /// Calls `f` for about the first `count` events, in no order.
  template <typename F> void forFirst(size_t count, F &&f) const {
    for (size_t at = open ? 1 : 0; at < count && at < heap.size(); ++at)
      f(heap[at]);
  }
  TimedEvent take() {
    close();
    open = true;
    return heap.front();
  }
  void push(const TimedEvent &event) {
    if (std::exchange(open, false)) {
      down(event);
      return;
    }
    heap.push_back(event);
    size_t at = heap.size() - 1;
    for (; at > 0 && event.before(heap[(at - 1) / 2]); at = (at - 1) / 2)
      heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
  }

private:
  /// Fills the open place with the last event.
  void close() {
    if (!std::exchange(open, false))
      return;
    const TimedEvent last = heap.back();
    heap.pop_back();
    if (!heap.empty())
      down(last);
  }
  /// Puts `event` where it belongs below the first place.
  void down(const TimedEvent &event) {
    const size_t size = heap.size();
    size_t at = 0;
    for (size_t child = 1; child < size; child = 2 * at + 1) {
      child += child + 1 < size && heap[child + 1].before(heap[child]);
      if (!heap[child].before(event))
        break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = event;
  }

  std::vector<TimedEvent> heap;
  bool open = false;
};

} // namespace fp4::sim
