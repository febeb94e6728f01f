// One weft-perf process as a PE: joins the job, knows who plays which part, and carries small
// values between PEs through symmetric memory. Used by the main thread only. Everything here throws
// JobError when the library says no; the message is the library's sentence.
#pragma once

#include <weft/weft.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/perf/options.hpp"

namespace weft::perf {

struct JobError : std::runtime_error {
  JobError(const std::string& sentence, int exit_status)
      : std::runtime_error(sentence), status(exit_status) {}

  int status;
};

// Throws JobError with weft_last_error() unless `result` is WEFT_OK.
void require(int result);

using Clock = std::chrono::steady_clock;

[[nodiscard]] double seconds_since(Clock::time_point start);

// A block of symmetric memory. Made and freed by all PEs in the same order.
class SymmetricBuffer {
 public:
  explicit SymmetricBuffer(std::size_t bytes);
  ~SymmetricBuffer();
  SymmetricBuffer(const SymmetricBuffer&) = delete;
  SymmetricBuffer& operator=(const SymmetricBuffer&) = delete;
  SymmetricBuffer(SymmetricBuffer&&) = delete;
  SymmetricBuffer& operator=(SymmetricBuffer&&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

  [[nodiscard]] std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(data_); }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class Job {
 public:
  // Sets the variables that `options` ask for, then joins.
  explicit Job(const Options& options);
  // The same with the variables themselves.
  explicit Job(const std::vector<std::pair<std::string, std::string>>& variables);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  Job(Job&&) = delete;
  Job& operator=(Job&&) = delete;

  [[nodiscard]] std::uint32_t me() const { return me_; }

  [[nodiscard]] std::uint32_t pe_count() const { return pe_count_; }

  [[nodiscard]] std::uint32_t node_of(std::uint32_t pe) const { return nodes_[pe]; }

  [[nodiscard]] std::uint32_t node_count() const { return node_count_; }

  // The partner of PE 0 in tests for two: the first PE of another node, else PE 1.
  [[nodiscard]] std::uint32_t partner() const { return partner_; }

  // How long the first collective allocation took: the first communication after init, which opens
  // connections if the warm-up did not.
  [[nodiscard]] double first_allocation_s() const { return first_allocation_s_; }

  // Completes what this PE has begun, and waits for all.
  static void barrier();

  // Each PE's `mine` on PE 0, in order; empty on the others. Collective. Numbers travel as signals,
  // because puts and gets advance the counters by which some policies choose rails: a gather
  // between two rows would change what is measured.
  [[nodiscard]] std::vector<double> gather(double mine) const;
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine);

  // PE 0's text on every PE. Collective. By gets, so only where no more is measured.
  [[nodiscard]] std::string spread(const std::string& text);

  // The sum over all PEs, on every PE. Collective.
  [[nodiscard]] std::uint64_t sum(std::uint64_t mine);

  // How PE 0 ends a loop of all PEs, whose rounds each have a barrier: all call begin_loop; PE 0
  // may call stop_loop before a round's barrier; after that barrier is_stopped says the same on
  // every PE. The round is part of it because the word may arrive while others still look at the
  // round before.
  void begin_loop() { ++loop_; }

  void stop_loop(std::uint64_t round) const;
  [[nodiscard]] bool is_stopped(std::uint64_t round) const;

 private:
  std::uint32_t me_ = 0;
  std::uint32_t pe_count_ = 1;
  std::uint32_t node_count_ = 1;
  std::uint32_t partner_ = 0;
  std::vector<std::uint32_t> nodes_;

  [[nodiscard]] std::uint64_t stop_value(std::uint64_t round) const {
    return (loop_ << 32U) | (round + 1);
  }

  void post(std::size_t word,
            weft_signal_operation operation,
            std::uint64_t value,
            std::uint32_t pe) const;

  double first_allocation_s_ = 0;
  std::uint64_t loop_ = 0;
  std::uint64_t sums_so_far_ = 0;
  std::unique_ptr<SymmetricBuffer> words_;  // see kStopWord and its neighbours
};

// Throws JobError on every PE if the job has fewer than `benchmark` needs.
void require_pes(const Job& job, std::string_view benchmark, std::uint32_t least);

}  // namespace weft::perf
