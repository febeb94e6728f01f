// The state of a PE that has opened a GPU: the device heap with those of its node's peers, and the
// state that kernels get (weft::device::DeviceState). Created by weft_device_init, destroyed by
// weft_finalize.
//
// Threads: constructor and destructor as the runtime's; allocate and release by one thread at a
// time; the rest by any thread.
#pragma once

#include <weft/device/control.hpp>
#include <weft/device/state.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
#include "src/runtime/collective_calls.hpp"
#include "src/runtime/device/gpu_direct.hpp"
#include "src/runtime/device/heap_growth.hpp"
#include "src/runtime/device/proxy.hpp"
#include "src/runtime/device/user_memory.hpp"
#include "src/runtime/device/watch.hpp"
#include "src/runtime/membership.hpp"

namespace weft::runtime {

// The objects that a DeviceJob depends on; they outlive it.
struct DeviceDependencies {
  const Config& config;
  bootstrap::Bootstrap& bootstrap;
  const Membership& membership;
  collectives::Collectives& collectives;
  transport::Transport* rails;  // to other nodes; null if there are none
  // Pinned memory of the given size that peers of other nodes can reach. It lives until the rails
  // are destroyed.
  std::function<proxy::RegionMemory(std::uint64_t bytes)> make_staging;
  // Offers the device heap to the rails. Collective; throws the same Error on all PEs. drop_memory
  // ends the registration.
  // Keeps `chunk_count` region numbers for chunks that the heap grows by, if the rails are used for
  // it.
  std::function<GpuDirectHeap(const GpuDirectOffer& offer, std::uint32_t chunk_count)> connect_heap;
  std::function<void(std::span<std::byte> memory)> drop_memory;
  // Registers other memory of this PE's GPU. Not collective. Returns why not; empty if all rails
  // have. drop_memory ends it.
  std::function<std::string(const fabric::DeviceMemory& memory)> connect_window;
  // The same for such a chunk. All PEs succeed, or all throw the same Error.
  std::function<void(const GpuDirectChunk& chunk)> connect_chunk;
  std::function<void(RegionIndex region, std::span<std::byte> chunk)> drop_chunk;
  // The proxy's thread makes progress on the rails from here on.
  std::function<void()> take_over_progress;
  std::function<std::optional<Pe>()> lost_pe;  // a lost PE, if there is one
  std::function<void()> end_job;               // with status 1; any thread
  const CollectiveCalls& calls;
};

class DeviceJob {
 public:
  // Collective. Throws Error, the same on all PEs.
  explicit DeviceJob(DeviceDependencies dependencies);
  DeviceJob(const DeviceJob&) = delete;
  DeviceJob& operator=(const DeviceJob&) = delete;
  ~DeviceJob();

  [[nodiscard]] const device::DeviceState& state() const { return state_; }

  // The device modules have received `state`: commands may be accepted. Collective.
  void start();

  // For the function `name`: waits for what kernels have posted before. Kernels may go on. Ends
  // early if a kernel has failed, or after `patience_ms`, if that is not 0.
  void quiet(std::string_view name, std::uint32_t patience_ms = 0);

  // Stops all progress. Only at process exit.
  void stop_proxy();

  [[nodiscard]] heap::DeviceHeap& heap() { return *heap_; }

  // How the rails have registered the device heap, and which peers are reached directly. Valid
  // after start.
  [[nodiscard]] const GpuDirectHeap& gpu_direct() const { return gpu_direct_; }

  [[nodiscard]] const gpu::Device& device() const { return device_; }

  // GPU memory of the program. Valid after start.
  [[nodiscard]] UserMemory& user_memory() { return *user_memory_; }

  struct Request {
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 256;
    bool zeroed = false;
  };

  // Collective, as Runtime::allocate and release. The heap grows if it must, and gives back the
  // chunks that are empty.
  [[nodiscard]] void* allocate(const Request& request, std::string_view name);
  void release(void* address);

  // The team's number in kernels. Collective over the team the first time. Any thread; different
  // teams at once.
  [[nodiscard]] std::uint32_t enter(collectives::Team& team);
  // Call before the team is destroyed.
  void leave(const collectives::Team& team);

  // Why a kernel of this PE aborted; empty if none has failed.
  [[nodiscard]] std::optional<std::string> failure() const { return watch_->failure(); }

  // The same as a status.
  [[nodiscard]] Status failure_status() const { return watch_->failure_status(); }

 private:
  void take_device();
  void make_heap();
  void fill_state();
  void fill_addresses();
  void connect_heap();
  void connect_chunk(const heap::Chunk& chunk);
  // What grows the heap, and what takes the program's own memory.
  void prepare_memory();
  [[nodiscard]] std::byte* take_block(const Request& request, std::string_view name);
  [[nodiscard]] device::TeamState team_state(const collectives::Team& team);

  const DeviceDependencies with_;
  Pe me_;
  gpu::Device device_;
  std::unique_ptr<heap::DeviceHeap> heap_;
  std::uint64_t alignment_max_ = 0;  // of a block: what the heaps of all PEs have
  gpu::PinnedBuffer pinned_;         // KernelPage
  gpu::DeviceBuffer words_;          // claims and locks
  gpu::DeviceBuffer team_table_;     // TeamState, by team number
  gpu::DeviceBuffer delta_table_;
  gpu::DeviceBuffer state_copy_;  // of state_
  std::mutex teams_mutex_;        // guards the two below; streams are used from any thread
  std::vector<gpu::DeviceBuffer> pe_lists_;
  std::vector<const collectives::Team*> teams_;  // that have been entered
  device::DeviceState state_;
  proxy::ProxyThreadOptions proxy_thread_;
  std::uint64_t proxy_pass_ns_ = 0;  // written by the proxy's thread, read by the watch
  std::unique_ptr<DeviceWatch> watch_;
  GpuDirectHeap gpu_direct_;
  std::optional<HeapGrowth> growth_;       // empty before start
  std::optional<UserMemory> user_memory_;  // empty before start
  std::unique_ptr<DeviceProxy> proxy_;     // null if there are no rails
};

// Whether loads and stores reach the memory of all members.
[[nodiscard]] bool is_mapped(const heap::DeviceHeap& heap, const collectives::Team& team);

}  // namespace weft::runtime
