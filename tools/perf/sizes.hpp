// Sizes of messages: the sweep of -b, -e and -f, and the rule by which single messages differ from
// their row's size (--sizes). Pure: both ends of a transfer compute the same size from the same
// numbers, so that the receiver can check what it got without being told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::perf {

// Throws std::invalid_argument with a sentence. "64K" is 65536; suffixes K, M, G.
[[nodiscard]] std::size_t parse_size(std::string_view text);

struct SizeRange {
  std::size_t begin = 8;
  std::size_t end = 8;
  std::size_t factor = 2;
};

// begin, begin * factor, ... up to end.
[[nodiscard]] std::vector<std::size_t> size_sequence(const SizeRange& range);

// What distinguishes one message of a run from all others.
struct MessageId {
  std::uint32_t source = 0;
  std::uint32_t dest = 0;
  std::uint64_t iteration = 0;
};

// A well-mixed 64-bit number for the message; equal on every PE.
[[nodiscard]] std::uint64_t mix(std::uint64_t value);
[[nodiscard]] std::uint64_t key_of(const MessageId& id, std::uint64_t seed);

// fixed: every message has the row's size. pareto: sizes follow a Pareto distribution that begins
// at 1/64 of the row's size and is cut off at the row's size, so that the buffers have a known
// size.
struct SizeRule {
  static constexpr std::size_t kParetoSpan = 64;

  bool pareto = false;
  double alpha = 1.2;
  std::uint64_t seed = 1;

  [[nodiscard]] std::size_t size_of(const MessageId& id, std::size_t row_size) const;
};

// "fixed" or "pareto:ALPHA:SEED"; throws std::invalid_argument with a sentence.
[[nodiscard]] SizeRule parse_size_rule(std::string_view text);

}  // namespace weft::perf
