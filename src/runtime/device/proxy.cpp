#include "src/runtime/device/proxy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/proxy/ring_memory.hpp"

namespace weft::runtime {
namespace {

using device::CommandSlot;
using device::kPayloadBytes;
using device::Reply;
using device::RingView;

// Words that different sides write are in separate cache lines.
constexpr std::size_t kLine = 128;
constexpr std::size_t kWordsOfRing = 2;

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// True if the engine has taken all commands and completed them. Makes no CUDA call: a synchronous copy would wait for
// kernels of the program.
bool is_quiet(const RingView& ring) {
  using proxy::HostMemory;
  const std::uint64_t consumed = HostMemory::load_far(ring.consumed);
  device::Command next;
  return HostMemory::load_far(ring.completed) == consumed &&
         !device::RingConsumer<HostMemory>(ring).peek(consumed, next);
}

constexpr std::size_t pinned_bytes(std::uint64_t capacity) {
  return capacity * (sizeof(CommandSlot) + kPayloadBytes + sizeof(Reply)) + 4 * kLine;
}

}  // namespace

DeviceProxy::DeviceProxy(const RingPlan& plan, device::DeviceState& state)
    : pinned_((plan.rings + 1) * pinned_bytes(plan.capacity)),
      words_((plan.rings + 1) * kWordsOfRing * kLine) {
  WEFT_CHECK(std::has_single_bit(plan.rings) && plan.rings <= device::kRingCountMax, "{} rings",
             plan.rings);
  for (std::uint32_t i = 0; i < plan.rings; ++i) {
    rings_.push_back(take_ring(plan.capacity, false));
  }
  inbox_ = take_ring(plan.capacity, true);
  state.ring_count = plan.rings;
  std::ranges::copy(rings_, state.rings);
  state.inbox = inbox_;
}

std::byte* DeviceProxy::take_pinned(std::size_t bytes) {
  return pinned_.data() + std::exchange(pinned_used_, pinned_used_ + rounded(bytes));
}

std::byte* DeviceProxy::take_device(std::size_t bytes) {
  return words_.data() + std::exchange(words_used_, words_used_ + rounded(bytes));
}

RingView DeviceProxy::take_ring(std::uint64_t capacity, bool is_inbox) {
  const auto pinned_word = [this] { return reinterpret_cast<std::uint64_t*>(take_pinned(8)); };
  const auto device_word = [this] { return reinterpret_cast<std::uint64_t*>(take_device(8)); };
  RingView ring;
  ring.slots = reinterpret_cast<CommandSlot*>(take_pinned(capacity * sizeof(CommandSlot)));
  ring.payload = take_pinned(capacity * kPayloadBytes);
  ring.replies = reinterpret_cast<Reply*>(take_pinned(capacity * sizeof(Reply)));
  ring.consumed = pinned_word();
  ring.capacity = capacity;
  if (is_inbox) {
    ring.lock = device_word();
    ring.next = device_word();
  } else {
    ring.completed = pinned_word();
    // One line, so that quiet reads head and completed_seen with one load. The words that many threads poll are in
    // another.
    ring.head = reinterpret_cast<std::uint64_t*>(take_device(2 * sizeof(std::uint64_t)));
    ring.completed_seen = ring.head + 1;
    ring.consumed_seen = reinterpret_cast<std::uint64_t*>(take_device(2 * sizeof(std::uint64_t)));
    ring.looking = ring.consumed_seen + 1;
  }
  return ring;
}

void DeviceProxy::start(Parts parts) {
  copier_ = std::make_unique<proxy::GpuCopier>(parts.device);
  applier_ = std::make_unique<proxy::GpuApplier>(parts.device);
  engine_ = std::make_unique<proxy::Engine>(
      parts.me, parts.is_remote, proxy::EngineOptions{},
      proxy::EngineSeams{parts.transport, *copier_, *applier_, std::move(parts.on_failed),
                         std::move(parts.on_copy_failed)},
      proxy::EngineMemory{parts.staging, parts.heap, inbox_, rings_, parts.is_direct,
                          parts.chunks});
  thread_ = std::make_unique<proxy::ProxyThread>(
      *engine_, parts.transport, proxy::ProxyThreadOptions{.pass_begin_ns = parts.pass_begin_ns});
}

void DeviceProxy::quiet(std::uint32_t timeout_ms) {
  const std::uint64_t end_ns = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  for (const RingView& ring : rings_) {
    while (!is_quiet(ring)) {
      if (now_ns() > end_ns) {
        log::warn("commands posted by kernels were not complete after {} ms; they are abandoned",
                  timeout_ms);
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace weft::runtime
