// The division by which threads of a GPU share parcels is exact for all that it is used for.
#include <weft/device/divisor.hpp>

#include <gtest/gtest.h>

namespace weft::device {
namespace {

TEST(DeviceDivisor, IsExactAtBothSidesOfEveryMultiple) {
  for (std::uint32_t divisor = 1; divisor <= 16'384; divisor += divisor < 600 ? 1 : 97) {
    const Divisor by(divisor);
    for (std::uint32_t dividend = 0; dividend < Divisor::kDividendEnd; dividend += divisor) {
      ASSERT_EQ(by.quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
      const std::uint32_t last = dividend + divisor - 1;
      if (last < Divisor::kDividendEnd) {
        ASSERT_EQ(by.quotient(last), dividend / divisor) << last << " / " << divisor;
      }
    }
  }
}

}  // namespace
}  // namespace weft::device
