// The objects of one PE, in the order in which they are built: from the bottom of the layers to the top. They
// are taken down in reverse.
//
// Threads: as runtime.hpp says; only its own files include this one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
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
#include "src/runtime/agreement.hpp"
#include "src/runtime/cma_builder.hpp"
#include "src/runtime/counters_page.hpp"
#include "src/runtime/device/job.hpp"
#include "src/runtime/membership.hpp"
#include "src/runtime/rails_builder.hpp"
#include "src/runtime/runtime.hpp"
#include "src/transport/by_peer.hpp"

namespace weft::runtime {

struct Runtime::Objects {
  Objects(const Config& user_config, std::unique_ptr<bootstrap::Bootstrap> user_bootstrap);

  // The way to PEs whose memory is not mapped here; null if all of it is.
  [[nodiscard]] transport::Transport* transport() const {
    if (by_peer) {
      return &*by_peer;
    }
    return cma != nullptr ? static_cast<transport::Transport*>(cma->transport.get()) : far();
  }

  // The way to other nodes; null if there are none.
  [[nodiscard]] transport::rails::RailsTransport* far() const {
    return rails == nullptr ? nullptr : rails->transport.get();
  }

  void join_transports() {
    if (rails != nullptr && cma != nullptr) {
      by_peer.emplace(*cma->transport, *rails->transport, membership.locals());
    }
  }

  // By PE: whether its memory is to be mapped here.
  [[nodiscard]] std::vector<bool> mapped_pes() const {
    std::vector<bool> mapped = membership.locals();
    if (config.node_local == "cma") {
      mapped.assign(mapped.size(), false);
    }
    mapped[me.value] = true;
    return mapped;
  }

  // By PE: a number that those share who map each other's memory.
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
    return is_on_my_node(pe) && !is_process_alive(membership.member(pe).heap.pid);
  }

  // A PE may close its transports when nothing of its own is on the way any more, and nobody waits for its
  // acknowledgements either. The second only the others know: they say so by the bootstrap, and until
  // then the progress thread answers them.
  void await_farewells() {
    if (rails != nullptr && rails->thread == nullptr) {
      rails->thread = std::make_unique<proxy::ProgressThread>(*rails->transport, 0);
    }
    if (cma != nullptr && cma->thread == nullptr) {
      cma->thread = std::make_unique<proxy::ProgressThread>(*cma->transport, 0);
    }
    try {
      bootstrap->barrier();
    } catch (const Error& error) {
      log::warn("finalize: {}", error.what());
    }
  }

  void check_collective(Status status, std::string_view name) const {
    if (status != Status::Ok) {
      fail(status, "{}: {}", name,
           status == Status::PeerLost ? lost_peers() : std::string(to_string(status)));
    }
  }

  [[nodiscard]] void* take_block(std::string_view name,
                                 std::uint64_t bytes,
                                 std::uint64_t alignment);
  // Says which PE is lost.
  [[nodiscard]] std::string lost_peers() const;
  // Empty if none is.
  [[nodiscard]] std::optional<Pe> lost_pe() const;
  void add_data_regions();
  // The way to other nodes, and the page in which it counts; a job of one node has only the page.
  void open_rails(std::uint32_t spin_us);
  [[nodiscard]] PageDescription describe_page() const;
  void register_window(std::span<std::byte> memory);
  void unregister_window(void* address);
  // Shows `mine` to all PEs and throws Mismatch if they differ.
  void agree(std::string_view name, const collectives::CollectiveRequest& mine);
  // Where `base` of each PE's own memory lies.
  [[nodiscard]] std::vector<std::uint64_t> bases_of(const void* base);
  void connect_window(std::span<std::byte> memory);
  // Makes `memory` a region that other nodes reach, and those of this node if `cma` is there. Its number.
  RegionIndex connect_region(std::span<std::byte> memory);
  [[nodiscard]] proxy::RegionMemory make_staging(std::uint64_t bytes);
  [[nodiscard]] DirectHeap connect_heap(const DirectOffer& offer);

  Config config;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  Pe me;
  heap::Heap heap;
  std::vector<heap::SharedData> data;
  Membership membership;
  std::optional<CountersPage> counters;
  gpu::PinnedBuffer staging;  // registered with the rails, so gone after them
  std::unique_ptr<RailsParts> rails;
  std::unique_ptr<CmaParts> cma;
  mutable std::optional<transport::ByPeer> by_peer;
  std::optional<rma::Waiter> waiter;
  std::optional<rma::Rma> rma;
  std::optional<rma::Context> default_context;
  std::optional<collectives::Collectives> collectives;
  mutable std::mutex allocator_mutex;  // block_of may be asked while another thread allocates
  std::unique_ptr<DeviceJob> device;
};

}  // namespace weft::runtime
