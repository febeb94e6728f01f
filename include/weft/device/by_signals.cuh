// Collectives on teams with members that are not mapped: put with signal, then a wait for as many
// signals as there are senders. For scopes other than a grid; a grid delegates the call to its
// first block.
//
// Every call, or round of a call, starts with a sync: no member writes to a dest or scratch memory
// before its PE has entered, so one count never mixes signals of two rounds. Ends with quiet: the
// source may be changed.
#ifndef WEFT_DEVICE_BY_SIGNALS_CUH
#define WEFT_DEVICE_BY_SIGNALS_CUH

#include <weft/device/low_latency.cuh>
#include <weft/device/order.cuh>
#include <weft/device/signal.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/sync.cuh>

namespace weft::device::detail {

// Waits until `count` more signals have arrived.
template <typename Scope>
__device__ void await_arrivals(Arrivals& arrivals, std::uint64_t count, OperationName operation) {
  if (is_leader<Scope>()) {
    quiet();
    const std::uint64_t expected = load_relaxed(&arrivals.expected) + count;
    store_relaxed(&arrivals.expected, expected);
    await_at_least(&arrivals.signals.value, expected, operation, -1);
    // SYNC device-signal (pairs with include/weft/device/signal.cuh): the senders' data
    fence_acquire();
  }
  Scope::sync();
}

template <typename Scope>
__device__ void send_with_signal(
    Arrivals& arrivals, std::byte* dest, const std::byte* source, std::size_t bytes, int pe) {
  put_signal_nbi<Scope>(dest, source, bytes, {&arrivals.signals.value, 1, SignalOp::Add}, pe);
}

// Block k of the source is copied to block `me` of dest on member k.
template <typename Scope>
__device__ void exchange_by_signals(Team team,
                                    TeamControl* control,
                                    const Blocks& blocks,
                                    OperationName operation) {
  const TeamState& members = members_of(team);
  sync<Scope>(team);
  for (std::uint32_t k = 1; k < members.size; ++k) {
    const std::uint32_t i = member_after(members, k);
    send_with_signal<Scope>(control->arrivals, blocks.dest + members.me * blocks.bytes,
                            blocks.source + i * blocks.source_stride, blocks.bytes,
                            pe_of(members, i));
  }
  copy<Scope>(blocks.dest + members.me * blocks.bytes,
              blocks.source + members.me * blocks.source_stride, blocks.bytes);
  Scope::sync();
  await_arrivals<Scope>(control->arrivals, members.size - 1, operation);
}

template <typename Scope>
__device__ void broadcast_by_signals(Team team,
                                     TeamControl* control,
                                     const Blocks& blocks,
                                     std::uint32_t root) {
  const TeamState& members = members_of(team);
  sync<Scope>(team);
  if (members.me == root) {
    for (std::uint32_t k = 1; k < members.size; ++k) {
      send_with_signal<Scope>(control->arrivals, blocks.dest, blocks.source, blocks.bytes,
                              pe_of(members, member_after(members, k)));
    }
    if (blocks.dest != blocks.source) {
      copy<Scope>(blocks.dest, blocks.source, blocks.bytes);
    }
  }
  Scope::sync();
  await_arrivals<Scope>(control->arrivals, members.me == root ? 0 : 1, OperationName::Broadcast);
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_BY_SIGNALS_CUH
