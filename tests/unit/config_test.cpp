// The configuration table: defaults, parsing, and messages that say what to do.
#include "src/base/config.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <gmock/gmock.h>

#include "src/base/error.hpp"

namespace weft {
namespace {

Lookup from(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string message_of(const Lookup& lookup) {
  try {
    static_cast<void>(load_config(lookup));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, HasADefaultForEverySetting) {
  const Config config = load_config(from({}));
  EXPECT_EQ(config.rail_policy, "balanced");
  EXPECT_EQ(config.heap_size, 256U << 20U);
  EXPECT_TRUE(config.warmup);
}

TEST(Config, ReadsSizesSwitchesAndNumbers) {
  const Config config = load_config(
      from({{"WEFT_HEAP_SIZE", "2G"}, {"WEFT_WARMUP", "no"}, {"WEFT_RAIL_STALL_MS", "250"}}));
  EXPECT_EQ(config.heap_size, std::uint64_t{2} << 30U);
  EXPECT_FALSE(config.warmup);
  EXPECT_EQ(config.rail_stall_ms, 250);
}

TEST(Config, RefusesAPolicyThatDoesNotExistAndListsThoseThatDo) {
  EXPECT_THAT(message_of(from({{"WEFT_RAIL_POLICY", "balance"}})),
              testing::AllOf(testing::HasSubstr("WEFT_RAIL_POLICY=balance"),
                             testing::HasSubstr("balanced")));
}

TEST(Config, RefusesASizeThatIsNotOne) {
  EXPECT_THAT(message_of(from({{"WEFT_HEAP_SIZE", "lots"}})), testing::HasSubstr("not a size"));
}

TEST(Config, TakesFractionsOfSizes) {
  EXPECT_EQ(load_config(from({{"WEFT_HEAP_SIZE", "1.5G"}})).heap_size, std::uint64_t{1536} << 20U);
}

TEST(Config, NamesACarriageReturnAndItsCause) {
  for (const char* name : {"WEFT_HEAP_SIZE", "WEFT_PROVIDER", "WEFT_WARMUP", "WEFT_NODE_SIZE"}) {
    EXPECT_THAT(
        message_of(from({{name, "1\r"}})),
        testing::AllOf(testing::StartsWith(std::string(name) + "=1\\r: "),
                       testing::HasSubstr("carriage return"), testing::HasSubstr("Windows")));
  }
  EXPECT_THAT(message_of(from({{"WEFT_NICS", "eth0\tib0"}})),
              testing::HasSubstr("WEFT_NICS=eth0\\x09ib0: it has a control character"));
}

TEST(Config, RefusesNumbersThatMeanNothing) {
  const std::map<std::string, std::string> too_small{
      {"WEFT_NODE_SIZE", "-1"},        {"WEFT_STRIPE_BYTES_MIN", "0"}, {"WEFT_RAIL_STALL_MS", "0"},
      {"WEFT_PEER_LOST_MS", "-5"},     {"WEFT_SPIN_US", "-1"},         {"WEFT_TIMEOUT_S", "-1"},
      {"WEFT_WAIT_REPORT", "-1"},      {"WEFT_RAIL_COUNT_MAX", "0"},   {"WEFT_PROXY_NAP_US", "-1"},
      {"WEFT_PUBLISH_BYTES_MAX", "-2"}};
  for (const auto& [name, value] : too_small) {
    EXPECT_THAT(message_of(from({{name, value}})), testing::StartsWith(name + "=" + value + ": "));
  }
  EXPECT_THAT(message_of(from({{"WEFT_PEER_LOST_MS", "5000000000"}})),
              testing::HasSubstr("use 1 to 2147483647"));
}

// What stands in the table must be what it accepts.
TEST(Config, AcceptsEveryDefault) {
  for (const Setting& setting : settings()) {
    const std::string value(setting.default_value);
    EXPECT_EQ(message_of(from({{std::string(setting.name), value}})), "no error") << setting.name;
  }
}

TEST(Config, NamesTheNearestSetting) {
  EXPECT_EQ(nearest_setting("WEFT_RAIL_POLICE"), "WEFT_RAIL_POLICY");
  EXPECT_EQ(nearest_setting("WEFT_HEEP_SIZE"), "WEFT_HEAP_SIZE");
}

TEST(Config, TableIsSortedAndEveryRowHasItsText) {
  std::string_view previous;
  for (const Setting& setting : settings()) {
    EXPECT_LT(previous, setting.name);
    EXPECT_FALSE(setting.text.empty()) << setting.name;
    previous = setting.name;
  }
}

}  // namespace
}  // namespace weft
