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

using device::RingView;

// True if the engine has taken all commands and completed them. Makes no CUDA call: a synchronous copy would wait for
// kernels of the program.
bool is_quiet(const RingView& ring) {
  using proxy::HostMemory;
  const std::uint64_t consumed = HostMemory::load_far(ring.consumed());
  device::Command next;
  return HostMemory::load_far(ring.completed()) == consumed &&
         !device::RingConsumer<HostMemory>(ring).peek(consumed, next);
}

// Of the proxy's thread. True for mapped memory of the heap.
struct HeapAddresses {
  proxy::RegionMemory heap;
  heap::ChunkReader chunks;

  bool operator()(const void* address) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - heap.base);
    return offset < heap.bytes || heap::covers(chunks.now(), offset, 1);
  }
};

}  // namespace

DeviceProxy::DeviceProxy(const RingPlan& plan, device::DeviceState& state)
    : far_((plan.rings + 1) * RingView::far_bytes(plan.capacity)),
      near_((plan.rings + 1) * RingView::kNearBytes) {
  WEFT_CHECK(std::has_single_bit(plan.rings) && plan.rings <= device::kRingCountMax, "{} rings",
             plan.rings);
  WEFT_CHECK(std::has_single_bit(plan.capacity), "rings of {} commands", plan.capacity);
  state.rings_far = far_.data();
  state.rings_near = near_.data();
  state.ring_capacity = static_cast<std::uint32_t>(plan.capacity);
  state.ring_count = plan.rings;
  for (std::uint32_t i = 0; i < plan.rings; ++i) {
    rings_.push_back(state.ring(i));
  }
  inbox_ = state.ring(plan.rings);
}

void DeviceProxy::start(Parts parts) {
  copier_ = std::make_unique<proxy::GpuCopier>(
      parts.device, HeapAddresses{parts.heap, heap::ChunkReader(parts.chunks)});
  applier_ = std::make_unique<proxy::GpuApplier>(parts.device);
  engine_ = std::make_unique<proxy::Engine>(
      parts.me, parts.is_remote, proxy::EngineOptions{.wake_us = parts.wake_us},
      proxy::EngineSeams{parts.transport, *copier_, *applier_, std::move(parts.on_failed),
                         std::move(parts.on_copy_failed)},
      proxy::EngineMemory{parts.staging, parts.heap, inbox_, rings_, parts.is_direct, parts.chunks,
                          parts.windows});
  thread_ = std::make_unique<proxy::ProxyThread>(*engine_, parts.transport, parts.thread);
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
