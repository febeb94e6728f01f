// How the shredded mode cuts an operation's bytes: into at most kShredsMax parts of whole cache
// lines of the target. A NIC writes a line of a packet together, and clients rely on it: the
// sequence number at the end of a record of 64 bytes tells them that the record is there
// (aws-ofi-nccl). Between lines nothing is promised. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace loom {

inline constexpr std::uint64_t kShredsMax = 16;
inline constexpr std::uint64_t kLineBytes = 64;

class Shreds {
 public:
  struct Part {
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  // Of `bytes` (at least 1) at `address` of the target; `turn` says with which part it begins.
  Shreds(std::uint64_t address, std::uint64_t bytes, std::uint64_t turn)
      : before_(address % kLineBytes), bytes_(bytes), turn_(turn) {
    const std::uint64_t lines = (before_ + bytes + kLineBytes - 1) / kLineBytes;
    part_bytes_ = (lines + kShredsMax - 1) / kShredsMax * kLineBytes;
    count_ = (before_ + bytes + part_bytes_ - 1) / part_bytes_;
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }

  // The part that is copied as number `index`, below count().
  [[nodiscard]] Part part(std::uint64_t index) const {
    const std::uint64_t begin = (index + turn_) % count_ * part_bytes_;
    const std::uint64_t offset = begin > before_ ? begin - before_ : 0;
    return {offset, std::min(begin + part_bytes_ - before_, bytes_) - offset};
  }

 private:
  std::uint64_t before_;  // bytes of the first line that are not the operation's
  std::uint64_t bytes_;
  std::uint64_t turn_;
  std::uint64_t part_bytes_;
  std::uint64_t count_;
};

}  // namespace loom
