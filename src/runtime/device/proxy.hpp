// The path from this PE's kernels to the GPUs of other nodes: the command rings and the inbox in
// pinned memory, the engine that drains them, and its thread.
//
// Threads: constructor and destructor as the runtime's; quiet by any thread.
#pragma once

#include <weft/device/ring.hpp>
#include <weft/device/state.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/gpu/buffer.hpp"
#include "src/proxy/engine.hpp"
#include "src/proxy/gpu_seams.hpp"
#include "src/proxy/proxy_thread.hpp"

namespace weft::runtime {

// The number and size of the rings.
struct RingPlan {
  std::uint32_t rings = 8;
  std::uint64_t capacity = 1024;
};

class DeviceProxy {
 public:
  struct Parts {
    Pe me;
    std::vector<bool> is_remote;  // by PE
    transport::Transport& transport;
    proxy::RegionMemory staging;
    proxy::RegionMemory heap;
    const heap::ChunkMap* chunks;
    const heap::ChunkMap* windows;
    std::vector<bool> is_direct;  // by PE
    const gpu::Device& device;
    proxy::ProxyThreadOptions thread;
    std::uint32_t wake_us;  // see proxy::EngineOptions
    proxy::FailureHook on_failed;
    proxy::CopyFailureHook on_copy_failed;
  };

  // Creates the rings, and stores their addresses in `state`.
  DeviceProxy(const RingPlan& plan, device::DeviceState& state);
  DeviceProxy(const DeviceProxy&) = delete;
  DeviceProxy& operator=(const DeviceProxy&) = delete;
  ~DeviceProxy() = default;

  // Call when the device modules have the state, and all PEs have created their rings and staging.
  void start(Parts parts);

  // Waits until everything that kernels posted before the call is visible, whatever they post
  // meanwhile, or until `is_hopeless` says so. Long waits are reported, as those of the function
  // `name`.
  void quiet(std::string_view name, FunctionRef<bool()> is_hopeless);

  void stop() { thread_.reset(); }

 private:
  gpu::PinnedBuffer far_;
  gpu::DeviceBuffer near_;
  std::vector<device::RingView> rings_;
  device::RingView inbox_;
  std::unique_ptr<proxy::GpuCopier> copier_;
  std::unique_ptr<proxy::GpuApplier> applier_;
  std::unique_ptr<proxy::Engine> engine_;
  std::unique_ptr<proxy::ProxyThread> thread_;  // last: stops before the rest is destroyed
};

}  // namespace weft::runtime
