// The payload of a PutList: what has room, and that reading it stays in its bounds.
#include <weft/device/list.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "src/proxy/list_reader.hpp"

namespace weft::test {
namespace {

using device::ListEntry;
using device::ListWalk;
using proxy::ListReader;

using Payload = std::array<std::byte, device::kPayloadBytes>;

void write(Payload& payload, std::size_t number, const ListEntry& entry) {
  std::memcpy(payload.data() + number * sizeof(entry), &entry, sizeof(entry));
}

TEST(List, EntriesAndDataNeverMeetWhateverTheSizes) {
  for (std::uint64_t first = 0; first <= 600; ++first) {
    for (std::uint64_t other = 0; other <= 600; other += 7) {
      ListWalk walk;
      std::uint32_t end = device::kPayloadBytes;
      for (std::uint64_t bytes = first; walk.add(bytes); bytes = other) {
        ASSERT_LE(walk.count * sizeof(ListEntry), walk.data);
        ASSERT_EQ(walk.data % device::kCarriedAlignment, 0U);
        ASSERT_GE(end - walk.data, ListWalk::is_carried(bytes) ? bytes : 0);
        end = walk.data;
      }
      ASSERT_GE(walk.count, 1U) << first;  // one always has room
      ASSERT_LE(walk.count, device::kListEntriesMax);
    }
  }
}

TEST(List, IsReadAsItWasWritten) {
  Payload payload{};
  write(payload, 0, {.dest = 64, .source = 4096, .bytes = 10'000});
  write(payload, 1, {.dest = 128, .source = 0, .bytes = 3});
  std::memcpy(payload.data() + device::kPayloadBytes - 16, "abc", 3);
  device::Command command;
  device::PutListCommand{.entry_count = 2}.write_to(command);
  ListReader list(command, payload.data());
  ASSERT_TRUE(list.next());
  EXPECT_EQ(list.number(), 0U);
  EXPECT_FALSE(list.is_carried());
  EXPECT_EQ(list.entry().source, 4096U);
  ASSERT_TRUE(list.next());
  EXPECT_EQ(list.number(), 1U);
  ASSERT_TRUE(list.is_carried());
  EXPECT_EQ(std::memcmp(list.data(), "abc", 3), 0);
  EXPECT_FALSE(list.next());
}

TEST(List, ThatClaimsMoreThanItHoldsEndsEarly) {
  Payload payload{};
  for (std::size_t i = 0; i < device::kListEntriesMax; ++i) {
    write(payload, i, {.dest = 0, .source = 0, .bytes = 400});
  }
  device::Command command;
  device::PutListCommand{.entry_count = ~std::uint64_t{0}}.write_to(command);
  ListReader list(command, payload.data());
  ASSERT_TRUE(list.next());
  EXPECT_FALSE(list.next());
  for (std::size_t i = 0; i < device::kListEntriesMax; ++i) {
    write(payload, i, {.dest = 0, .source = 0, .bytes = ~std::uint64_t{0}});
  }
  ListReader most(command, payload.data());
  for (std::size_t i = 0; i < device::kListEntriesMax; ++i) {
    ASSERT_TRUE(most.next());
  }
  EXPECT_FALSE(most.next());
}

}  // namespace
}  // namespace weft::test
