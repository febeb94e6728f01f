#include "src/plugins/nvshmem/farewell.hpp"

#include <cstddef>
#include <exception>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"

namespace weft::plugins::nvshmem {
namespace {

// How long a PE waits for the acknowledgements of its last messages: all PEs are done, and those
// that have left already send none.
constexpr std::uint32_t kLingerMs = 200;
constexpr std::uint32_t kSleepUs = 1000;

transport::Operation greeting(Pe to, std::size_t round) {
  return {.kind = transport::OperationKind::Atomic,
          .peer = to,
          .update = {.code = transport::AtomicCode::Add,
                     .word = {.region = RegionIndex(0),
                              .offset = HeapOffset(offsetof(ControlWords, farewells) + round * 8)},
                     .operand = 1}};
}

}  // namespace

bool bid_farewell(transport::rails::RailsTransport& rails,
                  Queue& queue,
                  ControlWords& words,
                  Pe me,
                  std::uint32_t pe_count,
                  std::uint32_t patience_ms) noexcept {
  const std::uint64_t deadline_ns = now_ns() + std::uint64_t{patience_ms} * 1'000'000;
  std::uint64_t distance = 1;
  for (std::size_t round = 0; distance < pe_count; ++round, distance *= 2) {
    const Pe next(static_cast<std::uint32_t>((me.value + distance) % pe_count));
    const Pe before(static_cast<std::uint32_t>((me.value + pe_count - distance) % pe_count));
    try {
      queue.post(greeting(next, round));
    } catch (const std::exception&) {
      return false;  // it is lost, as the log says
    }
    rails.flush(next);
    // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): what the peer did before is
    // done.
    while (AtomicRef(words.farewells[round]).load(std::memory_order_acquire) == 0) {
      if (now_ns() > deadline_ns || rails.peer_status(before) != Status::Ok) {
        return false;
      }
      if (!rails.progress()) {
        rails.wait_for_event(kSleepUs);
      }
    }
  }
  static_cast<void>(queue.drain(kLingerMs));
  return true;
}

}  // namespace weft::plugins::nvshmem
