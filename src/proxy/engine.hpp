// Carries out what a PE's GPU asks of PEs whose GPU memory is not mapped here, and what they ask of
// it: through pinned host memory (staging), the rails between the hosts, and copies at both ends.
//
//   command rings -> Outgoing (one per peer) -> rails -> staging slots -> Incoming (one per peer)
//     -> copier (bulk data) or inbox (small puts, signals, atomics), and back: credit -> `completed`
//
// A peer, a rail or an inbox that is full holds up its own streams only. A ring stops while the command at
// its front has a peer whose queue is full; other rings go on. All memory is bounded and allocated in
// the constructor.
//
// Threads: poll by one thread at a time (ProxyThread). The GPU and the transport's threads touch only rings,
// staging words and counters, all of them atomically.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/proxy/context.hpp"
#include "src/proxy/incoming.hpp"
#include "src/proxy/outgoing.hpp"

namespace weft::proxy {

struct EngineOptions {
  StagingOptions staging;
  std::uint64_t window = 4096;        // commands of one ring that may be taken and not complete
  std::uint32_t wake_us = 20;         // how long the inbox may lie before the applier is woken
  std::uint32_t peer_check_us = 500;  // how often one of the peers is asked about
  // From this size on data goes from GPU to GPU by the NICs alone, where they can. More than a command
  // carries itself.
  std::uint64_t direct_bytes_min = device::kPayloadBytes + 1;
};

struct EngineSeams {
  transport::Transport& transport;
  Copier& copier;
  Applier& applier;
  FailureHook on_failed;
};

struct EngineMemory {
  RegionMemory staging;  // StagingLayout(pe_count, options.staging).region_bytes(), zeroed, pinned,
                         // reachable by all peers under one region number, page-aligned
  RegionMemory heap;     // the symmetric device heap; `region` is its number with the rails, where
                         // a peer is direct
  device::RingView inbox;
  std::vector<device::RingView> rings;
  std::vector<bool> is_direct;  // by PE: the rails take data from heap to heap; empty: none does
};

class Engine {
 public:
  // `is_remote` by PE: whom commands may name. All rings and the staging are zeroed, and no peer has
  // sent anything yet: a barrier lies between the constructors and the first poll of all PEs.
  // What is referred to outlives this; the staging must stay until the transport is gone.
  Engine(Pe me,
         const std::vector<bool>& is_remote,
         const EngineOptions& options,
         const EngineSeams& seams,
         const EngineMemory& memory);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Gives the transport a second to finish what it still has. Not while poll runs.
  ~Engine();

  // Moves whatever can be moved. True if something did.
  bool poll() noexcept;

  // All commands that were taken are complete, and all that arrived is applied.
  [[nodiscard]] bool is_idle() const;

 private:
  bool drain(std::uint32_t ring);
  [[nodiscard]] bool take(std::uint32_t ring, const device::Command& command);
  [[nodiscard]] bool is_valid(const device::Command& command) const;
  void refuse(const device::Command& command);
  void fence();
  void check_a_peer(std::uint64_t now_ns);

  FailureHook on_failed_;
  InboxWriter inbox_;
  std::vector<CommandRing> rings_;
  Context context_;
  std::uint64_t peer_check_ns_;
  std::vector<Pe> peers_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  // by PE; null if not remote
  std::vector<std::unique_ptr<Incoming>> incoming_;  // by PE; null if not remote
  std::uint64_t next_check_ns_ = 0;
  std::size_t next_checked_ = 0;
  bool has_refused_ = false;
};

}  // namespace weft::proxy
