// This process's connection to a fabric: the shared memory, its own slot there, who it is, and
// chance. It keeps the slot until it ends.
//
// Threads: made once, by the first fi_getinfo; read by all afterwards.
#pragma once

#include <cstdint>
#include <mutex>

#include "loom/src/persona.hpp"
#include "loom/src/segment.hpp"

namespace loom {

[[nodiscard]] std::uint64_t now_ns();

// Uniform numbers from a seed; xorshift, so a run's distribution repeats.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U | 1U) {}

  // From 0 to `below` - 1; 0 for 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t below) { return below == 0 ? 0 : next() % below; }

  // In [0, 1).
  [[nodiscard]] double part() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_;
  }

  std::uint64_t state_;
};

class FabricLink {
 public:
  // Opens the fabric that the environment names (LOOM_DIR, LOOM_JOB, LOOM_NODE, LOOM_PERSONA), or
  // makes one. Throws Error.
  FabricLink();

  [[nodiscard]] Segment& segment() const { return segment_; }

  [[nodiscard]] const Settings& settings() const { return segment_.settings; }

  [[nodiscard]] const Persona& persona() const { return persona_; }

  // NICs of this node: their index in the segment.
  [[nodiscard]] std::uint32_t first_nic() const { return first_nic_; }

  [[nodiscard]] std::size_t nic_count() const { return settings().nics_per_node; }

  [[nodiscard]] std::uint32_t process() const { return process_; }

  [[nodiscard]] ProcessSlot& process_slot() const { return segment_.processes[process_]; }

  // True if the job has more processes than this machine has cores: then whatever wakes a thread
  // takes the core from another process's work, and no NIC would.
  [[nodiscard]] bool is_crowded() const { return is_crowded_; }

  // Wakes a process's engine if it sleeps, unless it naps because its client polls.
  void ring(std::uint32_t process) const;
  // From now on whoever rings wakes this process's engine, although it naps.
  void end_nap() const;
  // Wakes this process's engine, also from a nap.
  void wake_engine() const;

 private:
  std::uint32_t take_process_slot() const;

  Segment& segment_;
  const Persona& persona_;
  std::uint32_t first_nic_ = 0;
  std::uint32_t process_ = 0;
  bool is_crowded_ = false;
};

// The one of this process; made at the first call. Null if that failed: it has said why, once. A
// child after fork() gets one of its own.
[[nodiscard]] FabricLink* fabric_link();

// Which persona this process shall see; throws Error for an unknown one, or where a real device has
// that name.
[[nodiscard]] const Persona& chosen_persona();

// Sleeps until the word differs from `seen` or the time is over. Any process may wake it.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t ns);
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace loom
