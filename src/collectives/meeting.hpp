// How PEs that share no team tell each other what they propose: by an id that one of them, the
// host, has made. Each leaves a record in the host's control bytes, in the place of its PE; when
// all are there, the host sends them on.
//
// Threads: one meeting of a PE at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

// The host, and the number of the meeting among those of the host; the lower bits are left to the
// rounds. Numbers have 32 bits: a record of an old meeting could be taken for one of this only
// after 2^32 others, which take days of nothing else.
class MeetingId {
 public:
  explicit MeetingId(std::uint64_t value) : value_(value) {}

  MeetingId(Pe host, std::uint32_t number)
      : value_(std::uint64_t{host.value + 1} << kHostShift | std::uint64_t{number} << kRoundBits) {}

  // pe_count or more if the value is no id.
  [[nodiscard]] Pe host() const { return Pe(static_cast<std::uint32_t>(value_ >> kHostShift) - 1); }

  [[nodiscard]] std::uint64_t value() const { return value_; }

  // The word that shows that a record of this round, 1 and up, is there.
  [[nodiscard]] std::uint64_t round(std::uint32_t number) const { return value_ + number; }

 private:
  static constexpr std::uint32_t kRoundBits = 16;
  static constexpr std::uint32_t kHostShift = 48;
  static_assert(kMeetingPeCountMax < 1U << (64 - kHostShift), "a host and the value of no id");

  std::uint64_t value_;
};

class Meeting {
 public:
  struct Place {
    std::uint32_t index = 0;
    std::uint32_t count = 0;  // at most kMeetingPeCountMax
  };

  Meeting(rma::Rma& rma, Pe me, MeetingId id, Place place);

  // `all` receives the requests of all, by index. Mismatch, on those who are there: two have the
  // same index.
  Status exchange(const CollectiveRequest& mine, std::span<CollectiveRequest> all);

  // By index; after an exchange.
  [[nodiscard]] const std::vector<Pe>& pes() const { return pes_; }

 private:
  [[nodiscard]] RemoteControl& control() const;
  Status arrive(const CollectiveRequest& mine);
  Status host_round();
  Status await_all();
  // The host's PEs by index. Empty if an index is there twice.
  [[nodiscard]] std::vector<Pe> take_arrivals();
  Status answer(std::span<const Pe> pes, std::uint64_t word);

  rma::Rma& rma_;
  rma::Context context_;
  Pe me_;
  MeetingId id_;
  Place place_;
  std::uint32_t round_ = 0;
  std::vector<Pe> pes_;
};

}  // namespace weft::collectives
