// The ordered stream of parcels to one peer: accepts commands and answers into bounded queues, packs them into free
// slots, and posts a slot when the bulk data that the GPU copies into it is complete.
//
// A parcel stays open while its copies are in progress, so that a burst of small commands shares a parcel. A slot is
// free again when the target has applied it (credit) and the transport no longer needs it. Fences cost nothing here:
// the stream is already ordered, and a flag tells the target where the order matters.
//
// Threads: only the proxy's. Numbers of parcels: freed_ <= finished_ <= posted_ <= opened_, and
// opened_ - freed_ <= slots. Nothing allocates after the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/proxy/bounded_queue.hpp"
#include "src/proxy/context.hpp"
#include "src/proxy/gpu_direct_transfers.hpp"
#include "src/proxy/parcel.hpp"

namespace weft::proxy {

class Outgoing {
 public:
  Outgoing(Context& context, Pe peer);
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;
  // Operations that the transport still holds keep their memory; see is_quiet.
  ~Outgoing();

  [[nodiscard]] bool has_room() const { return !queue_.full(); }

  // Copies `payload` if the command has its payload in the slot. Requires has_room.
  void enqueue(const device::Command& command,
               const std::byte* payload,
               const CommandOrigin& origin);

  // Commands enqueued from now on are ordered after those enqueued before.
  void fence() { fence_next_ = true; }

  // The peer requests one more answer. False if it exceeds the outstanding requests allowed per PE: a protocol error.
  [[nodiscard]] bool expect_answer();
  // Answers to the peer; each must have been expected.
  void answer_get(const Record& get);
  void answer_fetch(std::uint32_t request, std::uint64_t value);

  // Handles an answer: `bytes` of a get (now in the GPU's memory), or an old value. False: the waiting thread's slot is
  // not free yet; call again.
  [[nodiscard]] bool on_answer(const Record& reply);

  // Whether the answer belongs to an open request of ours, and fits into it.
  [[nodiscard]] bool is_awaited(const Record& reply);

  // Makes progress. True if anything progressed.
  bool pump();

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
  [[nodiscard]] transport::OperationCounter* loose_counter() { return &counters_[0]; }

 private:
  struct Queued {
    device::Command command;
    CommandOrigin origin;
    std::uint64_t packed_bytes = 0;  // of a bulk put
    bool begun = false;              // its fence has been handled
    std::array<std::byte, device::kPayloadBytes> payload;
  };

  struct Answer {
    Record asked;                    // by the peer: a Get or, with `operand` the value, a fetch
    std::uint64_t packed_bytes = 0;  // of a get
  };

  struct Request {
    CommandOrigin origin;
    std::uint64_t dest = 0;  // Get: our own address, followed by the size
    std::uint64_t bytes = 0;
    std::uint64_t bytes_left = 0;
    std::uint32_t use = 0;  // how often the entry has been used: part of the token
    device::CommandKind kind = device::CommandKind::Nop;  // Nop: free
    bool answers = false;
  };

  struct Slot {
    Copier::Ticket ticket = 0;  // of the last copy into it
    bool copied = false;        // by the transport, at post
  };

  // A request's token: its index, and above that the number of uses of the entry.
  static constexpr std::uint32_t kRequestsMax = 1U << 12U;

  [[nodiscard]] std::uint32_t slot_of(std::uint64_t parcel) const;
  [[nodiscard]] std::byte* memory_of(std::uint64_t parcel) const;
  [[nodiscard]] transport::OperationCounter& counter_of(std::uint64_t parcel) const;

  bool reap();
  bool reap_direct_gets();
  bool finish_parcel(std::uint64_t parcel);
  [[nodiscard]] bool finish(const CommandOrigin& origin, device::CommandKind kind, bool answers);
  bool fail_queued();

  bool pack();
  [[nodiscard]] bool pack_command(Queued& queued);
  [[nodiscard]] bool pack_put(Queued& queued);
  [[nodiscard]] bool pack_direct_put(Queued& queued);
  [[nodiscard]] bool start_direct_get(const Queued& queued);
  [[nodiscard]] bool pack_small_put(const Queued& queued);
  [[nodiscard]] bool pack_atomic(const Queued& queued);
  [[nodiscard]] bool pack_get(const Queued& queued);
  [[nodiscard]] bool pack_answer(Answer& answer);
  bool open();
  [[nodiscard]] Record* append(RecordKind kind, std::size_t payload_bytes);
  [[nodiscard]] Record* append_for(const Queued& queued, RecordKind kind, std::size_t bytes);
  [[nodiscard]] std::size_t chunk_bytes(std::uint64_t bytes_left) const;
  void copy_in(std::uint64_t source, std::size_t bytes);
  // Creates a request and returns its token; finds the open request with the token that the peer sent, null if none.
  [[nodiscard]] std::uint32_t take_request(const Queued& queued);
  [[nodiscard]] Request* find_request(std::uint32_t token);
  void end_request(Request& request);

  bool post();
  [[nodiscard]] Status post_parcel(std::uint64_t parcel);

  Context& context_;
  Pe peer_;
  BoundedQueue<Queued> queue_;
  BoundedQueue<Answer> answers_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_requests_;
  std::size_t expected_answers_ = 0;  // that the peer waits for, and that are not in a parcel yet
  std::vector<Slot> slots_;
  // Counters of loose operations, then by slot. The transport writes them, so they may have to outlive this.
  std::unique_ptr<std::vector<transport::OperationCounter>> counter_memory_;
  std::vector<transport::OperationCounter>& counters_;
  GpuDirectTransfers gpu_direct_;

  std::uint64_t freed_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t opened_ = 0;
  std::size_t finish_offset_ = 0;  // in parcel finished_
  std::size_t open_bytes_ = 0;     // of parcel opened_ - 1
  std::uint64_t fence_ = 0;        // direct puts and gets wait until finished_ has reached this
  std::byte* payload_ = nullptr;   // of the record appended last
  std::uint64_t packed_records_ = 0;
  bool is_open_ = false;
  bool fence_next_ = false;
  bool lost_ = false;
};

}  // namespace weft::proxy
