// weft-perf's checker of --verify must find what is wrong, and must say where it begins.
#include <gtest/gtest.h>

#include <vector>

#include "tools/perf/payload.hpp"

namespace weft::perf {
namespace {

constexpr MessageId kId{.source = 3, .dest = 5, .iteration = 7};

std::vector<std::byte> filled(std::size_t size, const MessageId& id = kId) {
  std::vector<std::byte> bytes(size);
  fill_payload(bytes, id);
  return bytes;
}

TEST(PerfPayload, WhatWasFilledIsRight) {
  for (std::size_t size = 0; size <= 100; ++size) {
    EXPECT_TRUE(check_payload(filled(size), kId).is_right()) << size;
  }
}

TEST(PerfPayload, OneFlippedBitIsFoundAtItsOffset) {
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t offset = 0; offset < size; ++offset) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> bytes = filled(size);
        bytes[offset] ^= std::byte{1} << bit;
        const PayloadCheck check = check_payload(bytes, kId);
        EXPECT_EQ(check.wrong_bytes, 1U);
        EXPECT_EQ(check.first_wrong_offset, offset);
      }
    }
  }
}

TEST(PerfPayload, TheFirstOfSeveralIsNamedAndAllAreCounted) {
  std::vector<std::byte> bytes = filled(1000);
  for (const std::size_t offset : {999U, 123U, 124U, 500U}) {
    bytes[offset] ^= std::byte{0xFF};
  }
  const PayloadCheck check = check_payload(bytes, kId);
  EXPECT_EQ(check.wrong_bytes, 4U);
  EXPECT_EQ(check.first_wrong_offset, 123U);
}

TEST(PerfPayload, DataOfAnotherMessageIsFound) {
  const std::vector<std::byte> bytes = filled(4096);
  for (const MessageId& other :
       {MessageId{4, 5, 7}, MessageId{3, 6, 7}, MessageId{3, 5, 8}, MessageId{5, 3, 7}}) {
    // Random bytes agree by chance in one of 256.
    EXPECT_GT(check_payload(bytes, other).wrong_bytes, 3900U);
  }
}

TEST(PerfPayload, DataAtAnotherPlaceIsFound) {
  const std::vector<std::byte> bytes = filled(4096);
  for (std::size_t shift = 1; shift < 64; ++shift) {
    EXPECT_GT(check_payload(std::span(bytes).subspan(shift), kId).wrong_bytes, 3700U) << shift;
  }
}

TEST(PerfPayload, PoisonIsFound) {
  std::vector<std::byte> bytes(4096);
  fill_poison(bytes);
  EXPECT_GT(check_payload(bytes, kId).wrong_bytes, 3900U);
}

}  // namespace
}  // namespace weft::perf
