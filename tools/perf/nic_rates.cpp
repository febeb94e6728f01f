#include "tools/perf/nic_rates.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <net/if.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::perf {
namespace {

using namespace std::string_view_literals;

constexpr double kTcpIpHeaderBytes = 20 + 20 + 12;
constexpr double kEthernetHeaderBytes = 14;

constexpr std::array kUnits{std::pair{"gbit"sv, 1e9}, std::pair{"mbit"sv, 1e6},
                            std::pair{"kbit"sv, 1e3}, std::pair{"bit"sv, 1.0}};

// Empty where it cannot be read: a device without a rate answers EINVAL, which a stream's own
// buffer throws and getline does not.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

// The lab whose hosts this job runs in; set by weft-lab run.
std::string lab_text() {
  const char* name = std::getenv("WEFT_LAB");           // NOLINT(concurrency-mt-unsafe)
  const char* directory = std::getenv("WEFT_LAB_DIR");  // NOLINT(concurrency-mt-unsafe)
  return name == nullptr || directory == nullptr
             ? std::string()
             : read_text(fmt::format("{}/{}.json", directory, name));
}

std::optional<std::uint64_t> mtu_of(const std::string& nic) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return std::nullopt;
  }
  ifreq request{};
  std::strncpy(request.ifr_name, nic.c_str(), IFNAMSIZ - 1);
  const bool is_known = ::ioctl(socket, SIOCGIFMTU, &request) == 0;
  ::close(socket);
  return is_known ? std::optional<std::uint64_t>(request.ifr_mtu) : std::nullopt;
}

// libfabric calls the domain of an EFA device NAME-rdm.
std::string rdma_name(const std::string& nic) {
  return nic.ends_with("-rdm") ? nic.substr(0, nic.size() - 4) : nic;
}

// Port 1's "100 Gb/sec (4X EDR)"; 0 if there is no such device.
std::uint64_t rdma_rate(const std::string& nic) {
  const std::string text =
      read_text(fmt::format("/sys/class/infiniband/{}/ports/1/rate", rdma_name(nic)));
  return static_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr) * 1e9);
}

// Mbit/s; -1, or no answer, where the driver does not know.
std::uint64_t interface_rate(const std::string& nic) {
  const std::string text = read_text(fmt::format("/sys/class/net/{}/speed", nic));
  const long long megabits = std::strtoll(text.c_str(), nullptr, 10);
  return megabits > 0 ? static_cast<std::uint64_t>(megabits) * 1'000'000 : 0;
}

}  // namespace

std::uint64_t parse_rate(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, bits] : kUnits) {
    if (error == std::errc() && (unit == name || (unit.empty() && name == "bit")) && number > 0) {
      return static_cast<std::uint64_t>(std::llround(number * bits));
    }
  }
  throw std::invalid_argument(
      fmt::format("'{}' is no rate; write for example 800kbit, 40mbit or 2.5gbit", text));
}

double tcp_payload_share(std::uint64_t mtu_bytes) {
  const auto mtu = static_cast<double>(mtu_bytes);
  return mtu > kTcpIpHeaderBytes ? (mtu - kTcpIpHeaderBytes) / (mtu + kEthernetHeaderBytes) : 1;
}

std::map<std::string, std::uint64_t> parse_lab_rates(const std::string& text) {
  std::map<std::string, std::uint64_t> rates;
  try {
    const auto state = nlohmann::json::parse(text);
    for (const auto& host : state.at("hosts")) {
      for (const auto& nic : host.at("nics")) {
        const auto& rate = nic.at("rate_bits_per_s");
        rates[nic.at("address")] = rate.is_null() ? 0 : rate.get<std::uint64_t>();
      }
    }
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return rates;
}

NicRates::NicRates(std::uint64_t given_bits_per_s)
    : given_(given_bits_per_s), lab_(parse_lab_rates(lab_text())) {}

NicRate NicRates::of(const std::string& nic, const std::string& address) const {
  NicRate rate;
  const std::uint64_t rdma = rdma_rate(nic);
  const auto mtu = rdma == 0 ? mtu_of(nic) : std::nullopt;
  rate.payload_share = mtu ? tcp_payload_share(*mtu) : 1;
  const auto in_lab = lab_.find(address);
  if (given_ != 0) {
    rate.bits_per_s = given_;
  } else if (in_lab != lab_.end()) {
    rate.bits_per_s = in_lab->second;
    rate.unknown_because = fmt::format("the lab sets no limit to {} ({})", nic, address);
  } else {
    rate.bits_per_s = rdma != 0 ? rdma : interface_rate(nic);
    rate.unknown_because = fmt::format("the kernel knows no rate of {}", nic);
  }
  return rate;
}

}  // namespace weft::perf
