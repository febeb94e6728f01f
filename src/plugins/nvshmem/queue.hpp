// The operations of one of the host's queues: those of its host functions, or of its proxy. Each
// peer has a counter; quiet waits for it.
//
// Threads: one at a time. The two queues know nothing of each other.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "src/plugins/nvshmem/own_memory.hpp"
#include "src/transport/operation.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::plugins::nvshmem {

// How a thread waits for operations.
struct WaitRule {
  bool may_spin = true;         // not where PEs outnumber the cores
  std::uint32_t report_s = 10;  // after how long it says for whom it waits, and how often
};

class Queue {
 public:
  Queue(transport::rails::RailsTransport& rails, Pe me, std::uint32_t pe_count, WaitRule rule);

  // Posts it, counted for its peer. Throws Error (PeerLost) if the peer is lost.
  void post(transport::Operation operation);
  // An atomic; quiet writes the old value to `result`, which may be memory of a GPU.
  void fetch(transport::Operation operation, const OwnMemory& result);
  // As post, and waits until it is complete.
  void post_and_wait(transport::Operation operation);
  // Waits until all operations to `peer` are complete and visible there, and what they fetched is
  // here. Throws Error if one failed.
  void quiet(Pe peer);
  // The same for all peers, for at most that long. False: some are not complete, or failed.
  [[nodiscard]] bool drain(std::uint32_t patience_ms) noexcept;

 private:
  // What an atomic fetches for memory of a GPU: the transport writes it here.
  struct Fetched {
    std::uint64_t value = 0;
    OwnMemory result;
  };

  void deliver(Pe peer);
  void send(const transport::Operation& operation);
  void flush();
  void wait_for(transport::OperationCounter& counter, Pe peer);

  transport::rails::RailsTransport& rails_;
  Pe me_;
  WaitRule rule_;
  std::vector<transport::OperationCounter> counters_;  // by PE
  std::vector<std::uint8_t> is_unflushed_;             // by PE
  std::vector<Pe> unflushed_;
  // By PE, those that it has not answered or quiet has not delivered; each keeps its address.
  std::unordered_map<std::uint32_t, std::deque<Fetched>> fetched_;
};

}  // namespace weft::plugins::nvshmem
