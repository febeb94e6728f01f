#include "tools/sim/faults.hpp"

#include <charconv>
#include <regex>

#include "src/base/error.hpp"

namespace weft::sim {
namespace {

struct Place {
  std::optional<std::uint32_t> pe;
  std::uint32_t nic = 0;
};

constexpr const char* kPlace = R"((?:n(\d{1,6})\.g(\d{1,4})\.nic(\d{1,3})|nic(\d{1,3})@all))";

std::uint32_t number_of(const std::string& digits) {
  return static_cast<std::uint32_t>(std::stoul(digits));
}

Place place_of(const std::smatch& match, std::uint32_t pes_per_node, const std::string& text) {
  if (match[4].matched) {
    return {.pe = std::nullopt, .nic = number_of(match[4])};
  }
  const std::uint32_t gpu = number_of(match[2]);
  if (gpu >= pes_per_node) {
    fail(Status::InvalidArgument, "{}: a node has {} GPUs, and the first is g0", text,
         pes_per_node);
  }
  return {.pe = number_of(match[1]) * pes_per_node + gpu, .nic = number_of(match[3])};
}

}  // namespace

SlowNic parse_slow(const std::string& text, std::uint32_t pes_per_node) {
  static const std::regex kSlow(std::string(kPlace) + R"(:(\d*\.?\d+))");
  std::smatch match;
  if (!std::regex_match(text, match, kSlow)) {
    fail(Status::InvalidArgument,
         "--slow {}: write nic0@all:0.5, or n3.g2.nic1:0.5 for one NIC of node 3's GPU 2", text);
  }
  const Place place = place_of(match, pes_per_node, text);
  return {.pe = place.pe, .nic = place.nic, .factor = std::stod(match[5])};
}

FailedNic parse_failed(const std::string& text, std::uint32_t pes_per_node) {
  static const std::regex kFailed(std::string(kPlace) + R"(@(\d*\.?\d+)(us|ms|s))");
  std::smatch match;
  if (!std::regex_match(text, match, kFailed)) {
    fail(Status::InvalidArgument,
         "--fail {}: write n3.g2.nic1@2ms, or nic0@all@500us; the time is from the first window "
         "that counts on",
         text);
  }
  const Place place = place_of(match, pes_per_node, text);
  const std::string unit = match[6];
  const double scale = unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9;
  return {.pe = place.pe, .nic = place.nic, .at_ns = std::stod(match[5]) * scale};
}

}  // namespace weft::sim
