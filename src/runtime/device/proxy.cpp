#include "src/runtime/device/proxy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/proxy/posted.hpp"

namespace weft::runtime {
namespace {

using device::RingView;

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
  parts.thread.on_start = &gpu::ignore_captures;
  thread_ = std::make_unique<proxy::ProxyThread>(*engine_, parts.transport, parts.thread);
}

void DeviceProxy::quiet(std::string_view name, FunctionRef<bool()> is_hopeless) {
  constexpr std::uint64_t kReportNs = 5'000'000'000;
  std::vector<std::uint64_t> posted;
  for (const RingView& ring : rings_) {
    posted.push_back(proxy::posted_below(ring));
  }
  const std::uint64_t start_ns = now_ns();
  std::uint64_t report_ns = start_ns + kReportNs;
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    while (!proxy::is_complete_below(rings_[i], posted[i])) {
      if (is_hopeless()) {
        log::warn(
            "{}: operations that kernels posted for other nodes are not complete; they are "
            "abandoned",
            name);
        return;
      }
      if (now_ns() > report_ns) {
        report_ns += kReportNs;
        log::warn(
            "{} has been waiting for {} s for operations that kernels posted for other nodes "
            "before "
            "it; the memory stays until they are complete",
            name, (now_ns() - start_ns) / 1'000'000'000);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace weft::runtime
