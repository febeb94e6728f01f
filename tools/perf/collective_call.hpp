// One collective over WEFT_TEAM_WORLD with its buffers: what collectives.cpp times. Used by the
// main thread of each PE; making and destroying one is collective.
#pragma once

#include <cstdint>

#include "tools/perf/collective_shape.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/payload.hpp"

namespace weft::perf {

class CollectiveCall {
 public:
  // Between prepare and call: others write to dest as soon as they call.
  static constexpr bool kNeedsBarrier = true;

  // The reduction is that of reductions alone.
  CollectiveCall(const Job& job,
                 const CollectiveShape& shape,
                 weft_type type,
                 weft_reduction reduction);

  void call();

  // A round of --verify: fills the source with data of the round, and poisons dest.
  void prepare(std::uint64_t round);

  // After one or more calls: looks at every byte of dest, and reports what is wrong on stderr.
  void check(std::uint64_t round);

  [[nodiscard]] std::uint64_t wrong_bytes() const { return wrong_bytes_; }

 private:
  [[nodiscard]] std::span<std::byte> source() const;
  void check_block(const Block& block, const MessageId& id);
  void count_wrong(const PayloadCheck& result, const MessageId& id);

  const Job& job_;
  CollectiveShape shape_;
  weft_type type_;
  weft_reduction reduction_;
  SymmetricBuffer source_;
  SymmetricBuffer dest_;
  std::uint64_t wrong_bytes_ = 0;
  std::uint64_t reported_ = 0;
};

// A barrier or sync of all PEs. A round of --verify: each PE writes a word to every other before
// it, and finds those of all after it.
class BarrierCall {
 public:
  static constexpr bool kNeedsBarrier =
      false;  // it would hide that the one under test does nothing

  BarrierCall(const Job& job, Synchronization which);

  void call();
  void prepare(std::uint64_t round);
  void check(std::uint64_t round);

  [[nodiscard]] std::uint64_t wrong_bytes() const { return wrong_bytes_; }

 private:
  const Job& job_;
  Synchronization which_;
  SymmetricBuffer words_;  // one from each PE
  SymmetricBuffer value_;
  std::uint64_t wrong_bytes_ = 0;
};

}  // namespace weft::perf
