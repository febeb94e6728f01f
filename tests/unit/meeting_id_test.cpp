// The ids by which PEs meet that share no team: an old one must not be taken for a new one.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "src/collectives/meeting.hpp"

namespace weft::test {
namespace {

using collectives::MeetingId;

TEST(MeetingId, NamesItsHost) {
  for (const std::uint32_t host : {0U, 1U, collectives::kMeetingPeCountMax - 1}) {
    for (const std::uint32_t number : {1U, 1U << 24U, UINT32_MAX}) {
      const MeetingId id(Pe(host), number);
      EXPECT_EQ(MeetingId(id.value()).host(), Pe(host)) << number;
      EXPECT_EQ(MeetingId(id.round(0xFFFF)).host(), Pe(host)) << number;
    }
  }
  EXPECT_GE(MeetingId(0).host().value, collectives::kMeetingPeCountMax);
}

TEST(MeetingId, IsAnotherOneForEachNumberOf32Bits) {
  std::set<std::uint64_t> values;
  std::size_t count = 0;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    for (const std::uint32_t number : {1U << bit, (1U << bit) - 1}) {
      for (const std::uint32_t round : {1U, 0xFFFFU}) {
        values.insert(MeetingId(Pe(7), number).round(round));
        ++count;
      }
    }
  }
  EXPECT_EQ(values.size(), count - 2) << "2^1 - 1 and 2^0 are the same number";
}

}  // namespace
}  // namespace weft::test
