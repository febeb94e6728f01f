// Sizes as SHMEM_SYMMETRIC_SIZE has them.
#include <gtest/gtest.h>

#include "src/shmem/setup.hpp"

namespace weft::api::shmem {
namespace {

TEST(SymmetricSize, TakesNumbersFractionsAndSuffixesOfEitherCase) {
  EXPECT_EQ(parse_symmetric_size("4096"), 4096U);
  EXPECT_EQ(parse_symmetric_size("64k"), std::uint64_t{64} << 10U);
  EXPECT_EQ(parse_symmetric_size("512M"), std::uint64_t{512} << 20U);
  EXPECT_EQ(parse_symmetric_size("1.5G"), std::uint64_t{1536} << 20U);
  EXPECT_EQ(parse_symmetric_size("2g"), std::uint64_t{2} << 30U);
  EXPECT_EQ(parse_symmetric_size("1T"), std::uint64_t{1} << 40U);
}

TEST(SymmetricSize, RefusesEverythingElse) {
  for (const char* text :
       {"", "M", "garbage", "-1M", "0", "12X", "1MB", "1 M", "nan", "inf", "9e30"}) {
    EXPECT_EQ(parse_symmetric_size(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weft::api::shmem
