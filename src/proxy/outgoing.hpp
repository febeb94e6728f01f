// The ordered stream of parcels to one peer: accepts commands and answers into bounded queues, has
// them packed (command_packer.hpp) into parcels that are posted (parcel_window.hpp), and completes
// commands when the target has applied them.
//
// Fences cost nothing here: the stream is already ordered, and a flag tells the target where the
// order matters.
//
// Threads: only the proxy's. Nothing allocates after the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/proxy/bounded_queue.hpp"
#include "src/proxy/command_packer.hpp"
#include "src/proxy/context.hpp"
#include "src/proxy/gpu_direct_transfers.hpp"
#include "src/proxy/parcel.hpp"
#include "src/proxy/parcel_window.hpp"
#include "src/proxy/request_table.hpp"

namespace weft::proxy {

class Outgoing {
 public:
  Outgoing(EngineContext& context, Pe peer);
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;
  // Operations that the transport still holds keep their counters; see is_quiet.
  ~Outgoing() = default;

  [[nodiscard]] bool has_room() const { return !queue_.full(); }

  // Copies `payload` if the command has its payload in the slot. Requires has_room.
  void enqueue(const device::Command& command,
               const std::byte* payload,
               const CommandOrigin& origin);

  // Commands enqueued from now on are ordered after those enqueued before. Without any since the
  // last fence, there is nothing to order.
  void fence() {
    fence_next_ = fence_next_ || is_unfenced_;
    is_unfenced_ = false;
  }

  // The peer requests one more answer. False if it exceeds the outstanding requests allowed per PE:
  // a protocol error.
  [[nodiscard]] bool expect_answer();
  // Answers to the peer; each must have been expected.
  void answer_get(const Record& get);
  void answer_fetch(std::uint32_t request, std::uint64_t value);

  // Handles an answer: `bytes` of a get (now in the GPU's memory), or an old value. False: the
  // waiting thread's slot is not free yet; call again.
  [[nodiscard]] bool on_answer(const Record& reply);

  // Whether the answer belongs to an open request of ours, and fits into it.
  [[nodiscard]] bool is_awaited(const Record& reply) { return requests_.is_awaited(reply); }

  // Makes progress. True if anything progressed.
  bool pump();

  // False: pump does nothing until something else is enqueued, answered or lost, which adds the
  // peer to EngineContext::with_work.
  [[nodiscard]] bool has_work() const {
    return !queue_.empty() || !answers_.empty() || !parcels_.empty() || gpu_direct_.has_gets() ||
           (lost_ && !requests_.empty());
  }

  // The peer has violated the protocol: it is lost for the whole PE.
  void blame(std::string_view fault);
  // The peer will never answer: completes everything as failed.
  void lose();

  [[nodiscard]] bool is_lost() const { return lost_; }

  // Nothing is queued or in flight.
  [[nodiscard]] bool is_idle() const;
  // The transport holds no operation of this object any more.
  [[nodiscard]] bool is_quiet() const;

  // Counts operations that nobody waits for, such as the credits that Incoming posts.
  [[nodiscard]] transport::OperationCounter* loose_counter() { return parcels_.loose_counter(); }

 private:
  bool reap();
  bool reap_direct_gets();
  // Completes the commands of parcel finished(). False: retry later from where it stopped.
  bool finish_parcel();
  [[nodiscard]] bool finish(const CommandOrigin& origin, device::CommandKind kind, bool answers);
  bool fail_queued();
  bool pack();
  bool post();

  EngineContext& context_;
  Pe peer_;
  BoundedQueue<QueuedCommand> queue_;
  BoundedQueue<QueuedAnswer> answers_;
  std::size_t expected_answers_ = 0;  // that the peer waits for, and that are not in a parcel yet
  RequestTable requests_;
  ParcelWindow parcels_;
  GpuDirectTransfers gpu_direct_;
  CommandPacker packer_;
  std::size_t finish_offset_ = 0;  // in parcel finished()
  bool fence_next_ = false;
  bool is_unfenced_ = false;  // something was enqueued since the last fence
  bool lost_ = false;
};

}  // namespace weft::proxy
