// A job of NVSHMEM over Weft's rails, as one of its PEs sees it: from the host's call to connect
// endpoints until it finalizes the transport.
//
// Threads: the host calls from two, its proxy and the program's, at the same time; each has its
// queue. Connecting and leaving happen when only one of them runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/plugins/nvshmem/abi.hpp"
#include "src/plugins/nvshmem/chunks.hpp"
#include "src/plugins/nvshmem/control_memory.hpp"
#include "src/plugins/nvshmem/gpu_memory.hpp"
#include "src/plugins/nvshmem/host_job.hpp"
#include "src/plugins/nvshmem/queue.hpp"
#include "src/plugins/nvshmem/settings.hpp"
#include "src/proxy/progress_thread.hpp"
#include "src/transport/counters_page.hpp"
#include "src/transport/opening/opening.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::plugins::nvshmem {

// Data in several ranges, and the signal behind it.
struct SignalledPut {
  std::span<const MemoryDescription> remote;  // as many of each
  std::span<const MemoryDescription> local;
  std::span<const BytesDescription> bytes;
  AmoVerbNew signal_verb;
  const AmoDescription* signal = nullptr;
};

class Session {
 public:
  // What it takes from its surroundings; tests give other ones.
  struct Seams {
    std::unique_ptr<GpuMemories> gpus;
    std::function<Config()> load_settings = nvshmem::load_settings;
    std::function<std::unique_ptr<transport::rails::RailsTransport>(
        const transport::opening::JobSite&)>
        open_rails = transport::opening::open_rails_transport;
  };

  // Collective over all PEs of the job: opens the rails and connects them. Throws Error on all PEs
  // if it fails on one.
  Session(HostBootstrap& host, Seams seams);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Serves the peers until all are done, for a few seconds at most.
  ~Session();

  // Memory of this PE, which the host names by addresses from `base` on.
  void add_chunk(MemoryHandle& handle, std::span<std::byte> memory, std::byte* base);
  // A buffer that only this PE names, as the local side of operations.
  void add_local_buffer(MemoryHandle& handle, std::span<std::byte> memory);

  void release(const MemoryHandle& handle) { chunks_->release(handle); }

  // ---- Operations. Each throws Error if it is invalid or its peer is lost.

  void put(Pe pe,
           const RmaVerb& verb,
           const MemoryDescription& remote,
           void* local,
           std::size_t bytes,
           int queue);
  void get(Pe pe,
           const RmaVerb& verb,
           const MemoryDescription& remote,
           void* local,
           std::size_t bytes,
           int queue);
  void amo(
      Pe pe, const AmoVerbNew& verb, const AmoDescription& target, int element_bytes, int queue);
  // The signal's word changes when the data of all ranges is visible.
  void put_signal(Pe pe, const SignalledPut& put, int queue);
  void quiet(Pe pe, int queue);
  // By the proxy, whenever it has nothing else to do.
  void progress() noexcept;

  // For the user: the rails, one on each line.
  [[nodiscard]] std::string description() const;

  // The process ends without finalizing: the thread must not outlive the libraries that it uses.
  void stop_thread() noexcept { thread_.reset(); }

 private:
  void open(HostJob& job);
  [[nodiscard]] std::unique_ptr<transport::rails::RailsTransport> make_no_rails();

  [[nodiscard]] Queue& queue_of(int queue) {
    return queue == kHostQueue ? *host_ops_ : *proxy_ops_;
  }

  // Of each queue its own, because both may be in use.
  [[nodiscard]] std::vector<transport::GatherSegment>& segments_of(int queue) {
    return segments_[queue == kHostQueue ? 0 : 1];
  }

  void post(const transport::Operation& operation, bool may_last, int queue);
  void apply_to_self(const AmoVerbNew& verb, const AmoDescription& target, int element_bytes) const;

  Seams seams_;
  Config config_;
  Pe me_;
  std::uint32_t pe_count_;
  ControlMemory control_;
  std::optional<transport::CountersPage> counters_;  // outlives the rails, which count in it
  std::unique_ptr<transport::rails::RailsTransport> rails_;
  std::optional<Chunks> chunks_;
  std::optional<Queue> host_ops_;
  std::optional<Queue> proxy_ops_;
  std::array<std::vector<transport::GatherSegment>, 2> segments_;
  bool proxy_makes_progress_ = false;  // proxy thread; read when it has ended
  std::unique_ptr<proxy::ProgressThread> thread_;
};

}  // namespace weft::plugins::nvshmem
