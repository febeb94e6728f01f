// Several PEs in one process, each with a fake GPU, a proxy engine and a rails transport of its
// own, all on other "nodes".
//
// With `threads` each PE has a proxy thread, a copier and an applier of its own; otherwise the test
// calls poll_all and brings seams of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/proxy/engine.hpp"
#include "src/proxy/proxy_thread.hpp"
#include "src/transport/rails/rails_transport.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/rails_pes.hpp"

namespace weft::test {

struct ProxyOptions {
  std::uint32_t pe_count = 2;
  std::uint32_t ring_count = 2;
  std::uint64_t ring_capacity = 64;
  std::uint64_t inbox_capacity = 64;
  std::size_t heap_bytes = std::size_t{4} << 20U;
  proxy::EngineOptions engine;
  transport::rails::RailsOptions rails;
  std::uint64_t seed = 1;
  std::uint32_t delay_us_max = 60;
  bool threads = true;
  bool direct = false;  // the "GPU's" heap is registered with the rails, where these take it
  std::size_t first_chunk_bytes = 0;  // with which the heap starts; 0: all of it
};

// What a PE was told about commands that could not be done.
struct Failures {
  void add(Pe pe, device::CommandKind kind, Status status) {
    const std::lock_guard lock(mutex_);
    all_.push_back({pe, kind, status});
  }

  void add(const std::string& copy) {
    const std::lock_guard lock(mutex_);
    copies_.push_back(copy);
  }

  [[nodiscard]] std::vector<std::string> copies() const {
    const std::lock_guard lock(mutex_);
    return copies_;
  }

  [[nodiscard]] std::size_t count(Pe pe, Status status) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        all_, [&](const Failure& one) { return one.pe == pe && one.status == status; }));
  }

 private:
  struct Failure {
    Pe pe;
    device::CommandKind kind;
    Status status;
  };

  mutable std::mutex mutex_;
  std::vector<Failure> all_;
  std::vector<std::string> copies_;
};

struct ProxyPe {
  ProxyPe(Pe pe, const ProxyOptions& options)
      : me(pe),
        probe(64),
        layout(options.pe_count, options.engine.staging),
        staging(layout.region_bytes()),
        heap(options.heap_bytes),
        first_bytes(options.first_chunk_bytes != 0 ? options.first_chunk_bytes : heap.size()),
        inbox(options.inbox_capacity) {
    chunks.add({.offset = 0, .bytes = first_bytes, .region = RegionIndex(2)});
    for (std::uint32_t i = 0; i < options.ring_count; ++i) {
      rings.push_back(std::make_unique<HostRing>(options.ring_capacity));
    }
  }

  void make_transport(const ProxyOptions& options, const MakeRails& make_rails) {
    auto opened = make_rails(me.value);
    counters.resize(opened.size());
    transport = std::make_unique<transport::rails::RailsTransport>(
        options.rails, me, std::move(opened),
        std::vector<std::span<std::byte>>{{probe.data(), probe.size()},
                                          {staging.data(), staging.size()}},
        0);
  }

  void make_engine(const ProxyOptions& options, proxy::Copier& copies, proxy::Applier& applies) {
    std::vector<bool> is_remote(options.pe_count, true);
    is_remote[me.value] = false;
    proxy::EngineMemory memory{.staging = {RegionIndex(1), staging.data(), staging.size()},
                               .heap = {RegionIndex(2), heap.data(), first_bytes},
                               .inbox = inbox.view(),
                               .rings = {},
                               .is_direct = is_direct,
                               .chunks = &chunks,
                               .windows = &windows};
    for (const auto& ring : rings) {
      memory.rings.push_back(ring->view());
    }
    engine = std::make_unique<proxy::Engine>(
        me, is_remote, options.engine,
        proxy::EngineSeams{.transport = *transport,
                           .copier = copies,
                           .applier = applies,
                           .on_failed = [this](Pe pe, device::CommandKind kind,
                                               Status status) { failures.add(pe, kind, status); },
                           .on_copy_failed = [this](const std::string& why) { failures.add(why); }},
        memory);
  }

  [[nodiscard]] std::vector<device::RingView> views() const {
    std::vector<device::RingView> all;
    for (const auto& ring : rings) {
      all.push_back(ring->view());
    }
    return all;
  }

  [[nodiscard]] GpuThread thread(std::uint32_t ring = 0) {
    return {rings[ring]->view(), inbox.view(), heap.data()};
  }

  // What this PE's rails have read of its heap for a peer's get comes before what follows. A NIC
  // needs no such thing, but ThreadSanitizer notes the reads of sendmsg after its release.
  void meet_rails() const { static_cast<void>(transport->peer_counters(me)); }

  [[nodiscard]] std::uint64_t* word(std::size_t offset) {
    return reinterpret_cast<std::uint64_t*>(heap.data() + offset);
  }

  Pe me;
  std::vector<std::byte> probe;
  proxy::StagingLayout layout;
  std::vector<std::byte> staging;
  std::vector<std::byte> heap;
  std::size_t first_bytes;
  heap::ChunkMap chunks;
  heap::ChunkMap windows;
  HostRing inbox;
  std::vector<std::unique_ptr<HostRing>> rings;
  std::vector<RailCounters> counters;
  std::vector<PeerRailCounters> peer_counters;
  std::vector<bool> is_direct;  // by PE
  Failures failures;
  std::unique_ptr<transport::rails::RailsTransport> transport;
  std::unique_ptr<FakeCopier> copier;
  std::unique_ptr<FakeApplier> applier;
  std::unique_ptr<proxy::Engine> engine;
  std::unique_ptr<proxy::ProxyThread> proxy;
};

class ProxyPes {
 public:
  ProxyPes(const ProxyOptions& options, const MakeRails& make_rails) : options_(options) {
    std::vector<bootstrap::Blob> blobs;
    for (std::uint32_t pe = 0; pe < options.pe_count; ++pe) {
      pes_.push_back(std::make_unique<ProxyPe>(Pe(pe), options));
      pes_[pe]->make_transport(options, make_rails);
      blobs.push_back(pes_[pe]->transport->describe());
    }
    for (std::uint32_t pe = 0; pe < options.pe_count; ++pe) {
      std::vector<bool> reached(options.pe_count, true);
      reached[pe] = false;
      pes_[pe]->transport->connect(blobs, reached);
      count_in(*pes_[pe]->transport, options.pe_count, pes_[pe]->counters, pes_[pe]->peer_counters);
    }
    if (options.direct) {
      register_heaps(RegionIndex(2), 0, pes_.front()->first_bytes);
    }
    if (options.threads) {
      start_threads();
    }
  }

  [[nodiscard]] ProxyPe& operator[](std::uint32_t pe) { return *pes_[pe]; }

  [[nodiscard]] std::uint32_t count() const { return options_.pe_count; }

  // Without threads: one pass of all PEs.
  void poll_all() {
    for (const auto& pe : pes_) {
      pe->engine->poll();
      pe->transport->progress();
    }
  }

  // Nothing of one PE goes while another still writes there.
  ~ProxyPes() {
    for (const auto& pe : pes_) {
      pe->proxy.reset();
    }
    drive();
    for (const auto& pe : pes_) {
      pe->engine.reset();
    }
    for (const auto& pe : pes_) {
      pe->transport.reset();
    }
  }

  ProxyPes(const ProxyPes&) = delete;
  ProxyPes& operator=(const ProxyPes&) = delete;

  // The heap grows by a chunk, as region `region`.
  void grow(const heap::Chunk& chunk) {
    register_heaps(chunk.region, chunk.offset, chunk.bytes);
    for (const auto& pe : pes_) {
      pe->chunks.add(chunk);
    }
  }

 private:
  // In the tests' networks an operation completes only while both sides are driven.
  void drive() {
    for (int pass = 0; pass < 2000; ++pass) {
      for (const auto& pe : pes_) {
        for (std::uint32_t peer = 0; pass % 100 == 0 && peer < count(); ++peer) {
          pe->transport->flush(Pe(peer));
        }
        pe->transport->progress();
      }
    }
  }

  void register_heaps(RegionIndex region, std::size_t offset, std::size_t bytes) {
    std::vector<bootstrap::Blob> blobs;
    for (const auto& pe : pes_) {
      const fabric::DeviceMemory heap{.memory = std::span(pe->heap).subspan(offset, bytes)};
      blobs.push_back(pe->transport->add_device_region(region, &heap));
    }
    for (const auto& pe : pes_) {
      pe->is_direct = pe->transport->connect_device_region(region, blobs);
    }
  }

  void start_threads() {
    for (const auto& pe : pes_) {
      const std::uint64_t seed = options_.seed * 1000 + pe->me.value * 10;
      pe->copier = std::make_unique<FakeCopier>(seed, options_.delay_us_max);
      pe->applier =
          std::make_unique<FakeApplier>(pe->inbox.view(), seed + 5, options_.delay_us_max);
      pe->make_engine(options_, *pe->copier, *pe->applier);
    }
    for (const auto& pe : pes_) {
      pe->proxy = std::make_unique<proxy::ProxyThread>(*pe->engine, *pe->transport,
                                                       proxy::ProxyThreadOptions{});
    }
  }

  ProxyOptions options_;
  std::vector<std::unique_ptr<ProxyPe>> pes_;
};

}  // namespace weft::test
