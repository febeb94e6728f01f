// Executes the operations of a PE's GPU on PEs whose GPU memory is not mapped here, and their
// operations on this PE: through pinned host memory (staging), the rails between the hosts, and
// copies at both ends.
//
//   command rings -> Outgoing (one per peer) -> rails -> staging slots -> Incoming (one per peer)
//     -> copier (bulk data) or inbox (small puts, signals, atomics), back: credit -> `completed`
//
// A full peer, rail or inbox blocks only its own streams. A ring stops while the command at its
// head is for a peer whose queue is full; other rings continue. Rings take turns at such a queue,
// and senders at a full inbox, so each has its share, counted in commands. All memory is bounded
// and allocated in the constructor. A pass costs as much as the peers with something to do, and a
// look at one word of each of the others.
//
// Threads: poll by one thread at a time (ProxyThread). The GPU and the transport's threads access
// only rings, staging words and counters, all of them atomically.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/proxy/context.hpp"
#include "src/proxy/incoming.hpp"
#include "src/proxy/outgoing.hpp"

namespace weft::proxy {

struct EngineOptions {
  StagingOptions staging;
  std::uint64_t window = 4096;  // commands of one ring that may be taken and incomplete
  std::uint32_t wake_us = 20;   // how long records wait in the inbox before the applier is woken
  std::uint32_t peer_check_us = 500;  // the interval between queries of one peer's status
  // From this size on the NICs transfer data from GPU to GPU, if they can. Larger than the payload
  // that a command carries inline.
  std::uint64_t direct_bytes_min = device::kPayloadBytes + 1;
};

struct EngineSeams {
  transport::Transport& transport;
  Copier& copier;
  Applier& applier;
  FailureHook on_failed;
  CopyFailureHook on_copy_failed;
};

struct EngineMemory {
  RegionMemory staging;  // StagingLayout(pe_count, options.staging).region_bytes(), zeroed, pinned,
                         // reachable by all peers under one region number, page-aligned
  RegionMemory heap;     // the symmetric device heap as it starts; `region` is its number on the
                         // rails, for peers that are direct
  device::RingView inbox;
  std::vector<device::RingView> rings;
  std::vector<bool>
      is_direct;  // by PE: the rails transfer data from heap to heap; empty: none does
  // All chunks of the heap, the first one included. Null: it does not grow.
  const heap::ChunkMap* chunks = nullptr;
  // GPU memory of this PE outside the heap that its rails have registered, by address: the local
  // side of direct transfers. Null: there is none.
  const heap::ChunkMap* windows = nullptr;
};

class Engine {
 public:
  // `is_remote`, by PE: the PEs that commands may name. All rings and the staging are zeroed, and
  // no peer has sent anything yet: a barrier separates the constructors from the first poll of all
  // PEs. All references outlive this; the staging must outlive the transport.
  Engine(Pe me,
         const std::vector<bool>& is_remote,
         const EngineOptions& options,
         const EngineSeams& seams,
         const EngineMemory& memory);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Gives the transport one second to finish outstanding operations. Not while poll runs.
  ~Engine();

  // Makes progress on all streams and rings. True if anything progressed.
  bool poll() noexcept;

  // All commands that were taken are complete, and everything that arrived is applied.
  [[nodiscard]] bool is_idle() const;

  // The peers that the next pass visits if nothing more arrives.
  [[nodiscard]] std::size_t active_peer_count() const {
    return with_incoming_.size() + with_work_.size();
  }

 private:
  bool receive();
  void notice_arrivals();
  bool drain_all();
  bool drain(std::uint32_t ring);
  [[nodiscard]] bool take(std::uint32_t ring, const device::Command& command);
  [[nodiscard]] bool is_valid(const device::Command& command, const std::byte* payload) const;
  [[nodiscard]] std::optional<std::uint32_t> first_bad_entry(const device::Command& command,
                                                             const std::byte* payload) const;
  [[nodiscard]] bool has_taken_awaited(const device::Command& command) const;
  void refuse(const device::Command& command, const std::byte* payload);
  void fence();
  void check_a_peer(std::uint64_t now_ns);
  void check_copies();

  FailureHook on_failed_;
  CopyFailureHook on_copy_failed_;  // empty once called
  InboxWriter inbox_;
  Turns inbox_turns_;  // of senders
  std::vector<CommandConsumer> rings_;
  std::vector<Turns> queue_turns_;        // of rings, by the PE whose queue it is
  std::vector<std::uint8_t> ring_waits_;  // by ring: it is in line for such a queue
  ActivePeers with_incoming_;             // from which something has arrived that is not applied
  ActivePeers with_lines_;                // whose queue rings wait for
  ActivePeers with_work_;                 // see EngineContext, as the next
  ActivePeers with_unfenced_;
  heap::ChunkReader chunks_;
  heap::ChunkReader windows_;
  EngineContext context_;
  std::uint64_t peer_check_ns_;
  std::vector<Pe> peers_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  // by PE; null if not remote
  std::vector<std::unique_ptr<Incoming>> incoming_;  // by PE; null if not remote
  std::vector<Incoming::Arrival> arrivals_;          // as peers_; stale for those of with_incoming_
  std::vector<std::uint32_t> peer_index_;            // into peers_, by PE
  std::uint64_t next_check_ns_ = 0;
  std::size_t next_checked_ = 0;
  bool has_refused_ = false;
};

}  // namespace weft::proxy
