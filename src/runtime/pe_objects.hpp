// The objects of one PE, in construction order: from the bottom layer to the top. They are
// destroyed in reverse order.
//
// Threads: as in runtime.hpp; only the runtime's own files include this one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/process.hpp"
#include "src/heap/globals.hpp"
#include "src/proxy/progress_thread.hpp"
#include "src/runtime/agreement.hpp"
#include "src/runtime/collective_calls.hpp"
#include "src/runtime/device/job.hpp"
#include "src/runtime/membership.hpp"
#include "src/runtime/runtime.hpp"
#include "src/runtime/symmetric_heap.hpp"
#include "src/runtime/transport_kinds.hpp"
#include "src/transport/counters_page.hpp"
#include "src/transport/rails/rails_transport.hpp"
#include "src/transport/routes.hpp"

namespace weft::runtime {

// A transport of this PE, and the thread that serves peers through it while this PE computes.
struct OpenTransport {
  const TransportKind* kind = nullptr;
  std::unique_ptr<transport::Transport> transport;
  // Null if WEFT_PROGRESS_THREAD=no, or if a GPU's proxy has taken over; destroyed first.
  std::unique_ptr<proxy::ProgressThread> thread{};
  bool is_started = false;
};

struct Runtime::Objects {
  Objects(const Config& user_config,
          std::unique_ptr<bootstrap::Bootstrap> user_bootstrap,
          std::span<const TransportKind> transport_kinds);

  // By PE: whether its memory is to be mapped here.
  [[nodiscard]] std::vector<bool> mapped_pes() const {
    std::vector<bool> mapped = membership.locals();
    if (config.node_local == "cma") {
      mapped.assign(mapped.size(), false);
    }
    mapped[me.value] = true;
    return mapped;
  }

  // By PE: a group number, shared by PEs that map each other's memory.
  [[nodiscard]] std::vector<std::uint32_t> shared_memory_of() const {
    std::vector<std::uint32_t> groups = membership.nodes();
    if (config.node_local == "cma") {
      std::iota(groups.begin(), groups.end(), 0U);
    }
    return groups;
  }

  [[nodiscard]] bool is_on_my_node(Pe pe) const {
    return membership.place(pe).node_index == membership.place(me).node_index;
  }

  [[nodiscard]] bool is_dead(Pe pe) const {
    if (is_on_my_node(pe)) {
      return !is_process_alive(membership.member(pe).heap.pid);
    }
    return config.on_peer_lost == "report" && bootstrap->has_lost(pe);
  }

  [[nodiscard]] TransportSite site(bool has_windows) {
    return {config, *bootstrap, heap, membership, has_windows};
  }

  // Opens the transports that the job needs and that are not open yet. They are not used before
  // start_transports.
  void open_transports(bool has_windows);
  // Starts progress threads and, at init, connections of transports that are not started yet.
  // Collective.
  void start_transports(bool warms_up);

  // For operations that only rails support; null if there are none.
  [[nodiscard]] OpenTransport* rails() {
    const auto found = std::ranges::find(transports, kRailsKind.name,
                                         [](const OpenTransport& open) { return open.kind->name; });
    return found == transports.end() ? nullptr : &*found;
  }

  [[nodiscard]] transport::rails::RailsTransport* rails_transport() {
    OpenTransport* open = rails();
    return open == nullptr ? nullptr
                           : dynamic_cast<transport::rails::RailsTransport*>(open->transport.get());
  }

  // A PE may close its transports when none of its operations is in flight and no peer waits for
  // its acknowledgements. Only the peers know the latter: they confirm it by the bootstrap barrier,
  // and until then progress threads answer them.
  void await_farewells() {
    for (OpenTransport& open : transports) {
      if (open.thread == nullptr) {
        open.thread = std::make_unique<proxy::ProgressThread>(*open.transport, 0);
      }
    }
    try {
      bootstrap->barrier();
    } catch (const Error& error) {
      log::warn("finalize: {}", error.what());
    }
  }

  // The message that names the lost PE.
  [[nodiscard]] std::string lost_peers() const;
  // Tells the transports which PEs of other nodes have died, as far as the bootstrap has heard.
  void hear_losses();
  // Empty if no PE is lost.
  [[nodiscard]] std::optional<Pe> lost_pe() const;
  // After a timeout: other threads still use the objects, so nothing is destroyed.
  [[noreturn]] void end_job_and_exit() const;
  void add_data_regions();
  // Opens the page in which transports count; in a job of one node it has no rails.
  void open_page();
  void register_window(std::span<std::byte> memory);
  void register_device_window(std::span<std::byte> memory, const char* name);
  [[nodiscard]] bool is_gpu_memory(std::span<const std::byte> memory) const;
  void unregister_window(void* address);
  // Makes `memory` a region that all PEs reach through the open transports. Returns its number.
  RegionIndex connect_region(std::span<std::byte> memory);
  [[nodiscard]] proxy::RegionMemory make_staging(std::uint64_t bytes);
  [[nodiscard]] GpuDirectHeap connect_heap(const GpuDirectOffer& offer, std::uint32_t chunk_count);
  // A number that no region has. Throws OutOfMemory, on all PEs, if there is none.
  [[nodiscard]] RegionIndex next_region(std::span<const std::byte> memory) const;

  Config config;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  Pe me;
  heap::Heap heap;
  std::vector<heap::SharedData> data;
  Membership membership;
  std::optional<transport::CountersPage> counters;
  gpu::PinnedBuffer staging;  // registered with the rails, so destroyed after them
  std::span<const TransportKind> kinds;
  std::vector<OpenTransport> transports;  // in the order of the kinds
  transport::Routes routes;
  std::optional<rma::Waiter> waiter;
  std::optional<rma::Rma> rma;
  std::optional<rma::Context> default_context;
  std::optional<collectives::Collectives> collectives;
  std::optional<CollectiveCalls> calls;
  std::optional<SymmetricHeap> symmetric_heap;
  std::unique_ptr<DeviceJob> device;
};

}  // namespace weft::runtime
