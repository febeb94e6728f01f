// Sizes as settings, options and SHMEM_SYMMETRIC_SIZE have them.
#include "src/base/units.hpp"

#include <gtest/gtest.h>

#include "src/base/error.hpp"

namespace weft {
namespace {

TEST(Sizes, AreNumbersFractionsAndSuffixesOfEitherCase) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("64k"), std::uint64_t{64} << 10U);
  EXPECT_EQ(parse_bytes("64 KiB"), std::uint64_t{64} << 10U);
  EXPECT_EQ(parse_bytes("512MB"), std::uint64_t{512} << 20U);
  EXPECT_EQ(parse_bytes("1.5G"), std::uint64_t{1536} << 20U);
  EXPECT_EQ(parse_bytes("0.25MiB"), std::uint64_t{256} << 10U);
  EXPECT_EQ(parse_bytes("2.0"), 2U);
  EXPECT_EQ(parse_bytes("1T"), std::uint64_t{1} << 40U);
  EXPECT_EQ(parse_bytes("18446744073709551615"), ~std::uint64_t{0});
}

TEST(Sizes, AreNothingElse) {
  for (const char* text : {"", "M", ".5G", "garbage", "-1M", "12X", "1.5", "1.5.5G", "nan", "inf",
                           "1e3", "1M\r", "18446744073709551616", "16777216T"}) {
    EXPECT_THROW(static_cast<void>(parse_bytes(text)), Error) << text;
  }
}

TEST(Shown, MakesControlCharactersVisible) {
  EXPECT_EQ(shown("tcp"), "tcp");
  EXPECT_EQ(shown("tcp\r"), "tcp\\r");
  EXPECT_EQ(shown("a\nb\x1b"), "a\\nb\\x1b");
}

}  // namespace
}  // namespace weft
