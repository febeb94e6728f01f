// What a PE has once it has taken a GPU: the device heap with its node's peers, and what kernels are told
// (weft::device::DeviceState). Made by weft_device_init, gone at weft_finalize.
//
// Threads: constructor and destructor as the runtime's; allocate and release by one thread at a time; the
// rest by any.
#pragma once

#include <weft/device/control.hpp>
#include <weft/device/state.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/status.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/collectives/collectives.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/device.hpp"
#include "src/heap/device_heap.hpp"
#include "src/proxy/context.hpp"
#include "src/runtime/device/direct.hpp"
#include "src/runtime/device/proxy.hpp"
#include "src/runtime/device/watch.hpp"
#include "src/runtime/membership.hpp"

namespace weft::runtime {

// What a DeviceJob is built from, and which outlives it.
struct DeviceDependencies {
  const Config& config;
  bootstrap::Bootstrap& bootstrap;
  const Membership& membership;
  collectives::Collectives& collectives;
  transport::Transport* rails;  // to other nodes; null if there are none
  // Pinned memory of so many bytes that peers of other nodes reach; it stays until the rails are gone.
  std::function<proxy::RegionMemory(std::uint64_t bytes)> make_staging;
  // Offers the device heap to the rails; collective, throws the same on all PEs. Its registration ends by
  // drop_heap.
  std::function<DirectHeap(const DirectOffer& offer)> connect_heap;
  std::function<void(std::span<std::byte> heap)> drop_heap;
  // The proxy's thread moves the rails from here on.
  std::function<void()> take_over_progress;
  std::function<std::optional<Pe>()> lost_pe;  // one that is lost, if any
  // Throws the sentence for a status other than Ok, in the call of that name.
  std::function<void(Status, std::string_view)> check;
};

class DeviceJob {
 public:
  // Collective. Throws Error, the same on all PEs.
  explicit DeviceJob(DeviceDependencies surroundings);
  DeviceJob(const DeviceJob&) = delete;
  DeviceJob& operator=(const DeviceJob&) = delete;
  ~DeviceJob();

  [[nodiscard]] const device::DeviceState& state() const { return state_; }

  // The files of device code have been told of `state`: commands may be taken. Collective.
  void start();

  // Waits a while for what kernels have posted. No kernel runs any more.
  void quiet();

  // Nothing moves any more. At the process's end only.
  void stop_proxy();

  [[nodiscard]] heap::DeviceHeap& heap() { return *heap_; }

  // How the rails have taken the device heap, and which peers are reached so. Since start.
  [[nodiscard]] const DirectHeap& direct() const { return direct_; }

  [[nodiscard]] const gpu::Device& device() const { return device_; }

  // Collective, as Runtime::allocate and release.
  [[nodiscard]] void* allocate(std::uint64_t bytes, bool zeroed, std::string_view name);
  void release(void* address);

  // The number by which kernels know the team. Collective over it the first time.
  [[nodiscard]] std::uint32_t enter(collectives::Team& team);
  // The team is going to be destroyed.
  void leave(const collectives::Team& team);

  // Why a kernel of this PE ended; empty if none has failed.
  [[nodiscard]] std::optional<std::string> failure() const { return watch_->failure(); }

  // The same as a status.
  [[nodiscard]] Status failure_status() const { return watch_->failure_status(); }

 private:
  void take_device();
  void make_heap();
  void exchange();
  void fill_state();
  void fill_addresses();
  void connect_heap();
  [[nodiscard]] device::TeamState team_state(const collectives::Team& team);
  void agree(std::string_view name, const collectives::CollectiveRequest& mine);

  const DeviceDependencies with_;
  Pe me_;
  gpu::Device device_;
  std::unique_ptr<heap::DeviceHeap> heap_;
  gpu::PinnedBuffer pinned_;      // AbortWord and FailureRecord
  gpu::DeviceBuffer words_;       // claims and locks
  gpu::DeviceBuffer team_table_;  // TeamState by number
  gpu::DeviceBuffer delta_table_;
  std::vector<gpu::DeviceBuffer> pe_lists_;
  std::vector<const collectives::Team*> teams_;  // that were entered
  device::DeviceState state_;
  std::uint64_t proxy_pass_ns_ = 0;  // written by the proxy's thread, read by the watch
  std::unique_ptr<DeviceWatch> watch_;
  DirectHeap direct_;
  std::unique_ptr<DeviceProxy> proxy_;  // null if there are no rails
};

}  // namespace weft::runtime
