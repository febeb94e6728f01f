// Numbers of teams: the set of them, and where each team's control bytes are in a device heap.
#include "src/collectives/team_numbers.hpp"

#include <weft/device/control.hpp>

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace weft::test {
namespace {

using collectives::kTeamCountMax;
using collectives::TeamNumbers;

TEST(TeamNumbers, EachNumberIsFirstOnceThoseBeforeItAreTaken) {
  TeamNumbers numbers = TeamNumbers::all_from(0);
  for (std::uint32_t number = 0; number < kTeamCountMax; ++number) {
    ASSERT_FALSE(numbers.is_empty());
    EXPECT_EQ(numbers.first(), number);
    EXPECT_TRUE(numbers.has(number));
    numbers.remove(number);
    EXPECT_FALSE(numbers.has(number));
  }
  EXPECT_TRUE(numbers.is_empty());
}

TEST(TeamNumbers, AnAddedNumberIsTheOnlyOneAndSurvivesItsWords) {
  for (std::uint32_t number = 0; number < kTeamCountMax; ++number) {
    TeamNumbers one;
    one.add(number);
    EXPECT_EQ(TeamNumbers(one.words()).first(), number);
    one.keep_those_of(TeamNumbers::all_from(number));
    EXPECT_FALSE(one.is_empty());
    one.keep_those_of(TeamNumbers::all_from(number + 1));
    EXPECT_TRUE(one.is_empty());
  }
}

TEST(TeamNumbers, ASplitCanSendThemAll) {
  const TeamNumbers::Words words = TeamNumbers::all_from(0).words();
  EXPECT_EQ(words[2] >> 32U, 0U);
}

TEST(DeviceControl, TheBytesOfAllTeamsAreApartAndInsideTheControlBytes) {
  using namespace device;
  std::set<std::pair<std::size_t, std::size_t>> places{
      {kWideOffset, kWideOffset + kWideTeams * sizeof(WideBuffers)}};
  for (std::uint32_t team = 0; team < device::kTeamCountMax; ++team) {
    const ControlPlace place = control_place_of(team);
    EXPECT_EQ(place.offset % alignof(TeamControl), 0U);
    EXPECT_LE(sizeof(TeamControl) + TeamBuffers::bytes_of(place.parcels), place.bytes);
    places.emplace(place.offset, place.offset + place.bytes);
  }
  ASSERT_EQ(places.size(), device::kTeamCountMax + 1U);
  std::size_t end = 0;
  for (const auto& [first, last] : places) {
    EXPECT_GE(first, end);
    end = last;
  }
  EXPECT_LE(end, kControlBytes);
  EXPECT_EQ(kControlBytes % kControlPage, 0U);
}

TEST(DeviceControl, BuffersOfATeamAreOneAfterTheOther) {
  for (const std::uint32_t parcels : {device::kExchangeParcels, device::kNarrowParcels}) {
    std::vector<std::byte> memory(device::TeamBuffers::bytes_of(parcels));
    const device::TeamBuffers buffers{memory.data(), parcels};
    EXPECT_EQ(buffers.exchange(3) - buffers.exchange(2), parcels);
    EXPECT_EQ(buffers.broadcast(0) - buffers.exchange(1), parcels);
    EXPECT_EQ(buffers.broadcast(1) - buffers.broadcast(0), parcels / 4);
    EXPECT_EQ(buffers.scratch() + buffers.scratch_bytes(), memory.data() + memory.size());
  }
}

// The GPU's table has a place for each number of the host's.
TEST(DeviceControl, TheHostHasAsManyTeams) {
  EXPECT_EQ(device::kTeamCountMax, kTeamCountMax);
}

}  // namespace
}  // namespace weft::test
