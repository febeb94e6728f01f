// The traffic of a run: in each step every PE puts to, or gets from, the PEs that a pattern names.
// Used by the main thread of each PE; making and destroying one is collective.
//
// Under --verify each message of a window has a place of its own at both ends, so that every byte
// of every message can be looked at before the next window begins.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/perf/job.hpp"
#include "tools/perf/options.hpp"
#include "tools/perf/patterns.hpp"

namespace weft::perf {

struct ExchangePlan {
  Pattern pattern = Pattern::OneWay;
  World world;
  std::size_t message_bytes = 0;  // of the largest
  std::uint64_t window = 1;
  std::uint64_t count_per_step = 1;
  double start_apart_us = 0;  // the most that a PE waits before a window
  SizeRule size_rule;
  bool reads = false;
  bool alternates_signal = false;
  bool collective = false;
  bool waits_for_each = false;  // each message is complete before the next one
  bool runs_free = false;       // PEs do not meet between windows
  bool verifies = false;
};

// A run of steps, at most a window.
struct Steps {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

[[nodiscard]] ExchangePlan plan_exchange(const Job& job,
                                         const Options& options,
                                         Pattern pattern,
                                         std::size_t message_bytes);

class Exchange {
 public:
  Exchange(const Job& job, const ExchangePlan& plan);

  // Under --verify: fills what others will get from here, poisons what they will write. Needs a
  // barrier after it.
  void prepare(Steps steps);

  // Begins this PE's part of the steps; complete after quiet.
  void post(Steps steps);

  // Under --verify, between the barrier that ends the steps and the next prepare: looks at every
  // byte that came here and reports what is wrong on stderr.
  void check(Steps steps);

  // Payload that this PE has posted, and the part of it that went to other nodes.
  [[nodiscard]] std::uint64_t posted_bytes() const { return posted_bytes_; }

  [[nodiscard]] std::uint64_t remote_bytes() const { return remote_bytes_; }

  void reset_bytes() { posted_bytes_ = remote_bytes_ = 0; }

  [[nodiscard]] std::uint64_t wrong_bytes() const { return wrong_bytes_; }

  [[nodiscard]] const ExchangePlan& plan() const { return plan_; }

 private:
  // The operation number `index` of a step between two PEs. Source and destination are those of the
  // data: in a get the data comes from the PE that is asked.
  struct Message {
    std::uint32_t initiator = 0;
    std::uint32_t target = 0;
    std::uint64_t step = 0;
    std::uint64_t index = 0;
  };

  [[nodiscard]] MessageId id_of(const Message& message) const;
  [[nodiscard]] std::size_t size_of(const Message& message) const;
  [[nodiscard]] std::size_t slot_of(const Message& message) const;
  [[nodiscard]] std::byte* place(std::byte* area, std::uint32_t peer, const Message& message) const;
  [[nodiscard]] std::byte* source_place(const Message& message, std::uint32_t peer) const;
  [[nodiscard]] std::uint64_t* signal_place(std::uint32_t peer, const Message& message) const;
  void post_message(const Message& message);
  void post_signal(const Message& message);
  void check_message(const Message& message);
  [[nodiscard]] std::vector<std::uint32_t> others_in(std::uint64_t step, bool begun_here) const;
  // Calls `visit` for each message of the steps that this PE begins, or that others begin with it.
  template <typename Visit>
  void for_each(Steps steps, bool begun_here, const Visit& visit) const;

  const Job& job_;
  ExchangePlan plan_;
  std::vector<std::uint32_t> targets_;  // of every step, unless the pattern draws them anew
  std::size_t stride_;                  // bytes from slot to slot
  std::size_t slot_count_;
  std::size_t peer_count_;         // 1 where there is only one partner
  std::size_t source_peer_count_;  // 1 where all peers get the same data
  SymmetricBuffer source_;
  SymmetricBuffer dest_;
  SymmetricBuffer signals_;        // written by peers
  SymmetricBuffer signal_values_;  // sent to peers
  std::uint64_t posted_bytes_ = 0;
  std::uint64_t remote_bytes_ = 0;
  std::uint64_t wrong_bytes_ = 0;
  std::uint64_t reported_ = 0;
};

}  // namespace weft::perf
