// Tokens of outstanding requests: only the answer to an open request, which fits into it, finds
// one.
#include <gtest/gtest.h>

#include <vector>

#include "src/proxy/request_table.hpp"

namespace weft::proxy {
namespace {

using device::CommandKind;

device::Command get(std::uint64_t dest_address, std::uint64_t bytes) {
  device::Command command{.kind = CommandKind::Get};
  device::GetCommand{.dest_address = dest_address, .bytes = bytes}.write_to(command);
  return command;
}

TEST(RequestTable, GivesEachEntryOnceUntilItEnds) {
  RequestTable table(3);
  EXPECT_TRUE(table.empty());
  std::vector<std::uint32_t> tokens;
  while (!table.is_full()) {
    tokens.push_back(table.take(get(0, 8), {}));
  }
  EXPECT_EQ(tokens.size(), 3U);
  for (const std::uint32_t token : tokens) {
    ASSERT_NE(table.find(token), nullptr);
    table.end(*table.find(token));
    EXPECT_EQ(table.find(token), nullptr) << "its token is not valid any more";
  }
  EXPECT_TRUE(table.empty());
}

TEST(RequestTable, ATokenOfAnEarlierUseFindsNothing) {
  RequestTable table(1);
  const std::uint32_t first = table.take(get(0, 8), {});
  table.end(*table.find(first));
  const std::uint32_t second = table.take(get(0, 8), {});
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_NE(table.find(second), nullptr);
}

TEST(RequestTable, AwaitsOnlyAnswersThatFit) {
  RequestTable table(2);
  const std::uint32_t token = table.take(get(1000, 64), {});
  const auto reply = [&](std::uint64_t requester_address, std::uint32_t bytes) {
    Record record{.kind = RecordKind::GetReply, .payload_bytes = bytes, .request = token};
    GetReplyRecord{.requester_address = requester_address}.write_to(record);
    return record;
  };
  EXPECT_TRUE(table.is_awaited(reply(1000, 64)));
  EXPECT_TRUE(table.is_awaited(reply(1032, 32)));
  EXPECT_FALSE(table.is_awaited(reply(1032, 33)));
  EXPECT_FALSE(table.is_awaited(reply(999, 1)));
  EXPECT_FALSE(table.is_awaited({.kind = RecordKind::FetchReply, .request = token}));
  EXPECT_FALSE(table.is_awaited({.kind = RecordKind::GetReply, .request = token + 1}));
}

}  // namespace
}  // namespace weft::proxy
