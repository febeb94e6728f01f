// The operations of an endpoint on their way: cells depart as both NICs' clocks allow, the data is
// copied when the last cell is due, the target is told, and after the acknowledgement's way back
// the client.
//
// Threads: under its endpoint's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "loom/src/completion_queue.hpp"
#include "loom/src/copying.hpp"
#include "loom/src/domain.hpp"
#include "loom/src/operation.hpp"
#include "loom/src/route.hpp"
#include "loom/src/targets.hpp"

namespace loom {

class Transmitter {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  explicit Transmitter(const Domain& domain);

  // Where completions go and who speaks; before the first post.
  void start(EndpointName name, CompletionQueue& queue, std::vector<Counter*> counters);

  void set_receiver_retries(std::uint64_t retries) { receiver_retries_ = retries; }

  [[nodiscard]] std::uint64_t receiver_retries() const { return receiver_retries_; }

  // False: as many are in flight as may be. The request has been checked.
  [[nodiscard]] bool post(const Request& request, EndpointName target, std::uint64_t bytes);

  // Moves on what is due. Returns when something is due next, or kNever.
  std::uint64_t progress(std::uint64_t now);

  // The handshake: that peer's client makes progress.
  void note_answer(std::uint32_t slot) { peers_[slot].has_answered = true; }

 private:
  // What is known of a peer.
  struct Peer {
    bool is_touched = false;  // something has been sent to it
    bool is_greeted = false;
    bool has_answered = false;
    bool is_proven = false;  // an operation has succeeded
  };

  [[nodiscard]] Route route_of(const Operation& operation) const;
  void depart_all(std::uint64_t now);
  [[nodiscard]] bool depart(Operation& operation, std::uint64_t now);
  [[nodiscard]] std::uint64_t first_delay(const Operation& operation);
  [[nodiscard]] std::uint64_t jitter();
  [[nodiscard]] bool is_answered(const Operation& operation);
  [[nodiscard]] bool is_lost(const Operation& operation, std::uint64_t now) const;
  void move_on(std::uint32_t index, std::uint64_t now);
  void deliver(std::uint32_t index, std::uint64_t now);
  void wait_for_receive(std::uint32_t index, std::uint64_t now);
  [[nodiscard]] bool tell_target(std::uint32_t index, std::uint64_t now);
  [[nodiscard]] bool copy_part(std::uint32_t index,
                               std::uint64_t offset,
                               std::uint64_t bytes,
                               std::uint64_t now);
  void land_part(std::uint32_t index, std::uint64_t now);
  void again(std::uint32_t index, std::uint64_t due_ns);
  void fail(std::uint32_t index, Cause cause, std::uint64_t when);
  void fail(std::uint32_t index, Failure failure, std::uint64_t when);
  [[nodiscard]] Cause silence_of(const Operation& operation);
  void finish(std::uint32_t index);

  const Domain& domain_;
  Segment& segment_;
  const Settings& settings_;
  Targets targets_;
  EndpointName name_;
  CompletionQueue* queue_ = nullptr;
  std::vector<Counter*> counters_;
  std::uint64_t receiver_retries_;
  Chance chance_;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> unused_;
  std::deque<std::uint32_t> departing_;
  Agenda agenda_;
  std::map<std::uint32_t, Peer> peers_;  // by slot
};

}  // namespace loom
