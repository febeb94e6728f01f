#include "src/plugins/nvshmem/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/ids.hpp"
#include "src/base/log.hpp"

namespace weft::plugins::nvshmem {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::int64_t rail_count_of(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) {
    fail(Status::InvalidArgument,
         "NVSHMEM_LIBFABRIC_MAX_NIC_PER_PE={} is not a number of NICs; give 1 or more", text);
  }
  return std::min<std::int64_t>(count, kRailCountMax);
}

std::optional<std::string> environment(std::string_view name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the host connects its endpoints from one thread.
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

void take_host_settings(Config& config, const Lookup& lookup) {
  if (const auto provider = lookup("NVSHMEM_LIBFABRIC_PROVIDER");
      provider && !provider->empty() && !lookup("WEFT_PROVIDER")) {
    config.provider = lower(*provider);
  }
  if (const auto count = lookup("NVSHMEM_LIBFABRIC_MAX_NIC_PER_PE");
      count && !lookup("WEFT_RAIL_COUNT_MAX")) {
    config.rail_count_max = rail_count_of(*count);
  }
  if (const auto debug = lookup("NVSHMEM_DEBUG"); debug && !lookup("WEFT_LOG")) {
    const std::string level = lower(*debug);
    config.log = level == "info" || level == "trace" ? "info" : config.log;
  }
}

bool may_use_gdrcopy() {
  const std::string text = environment("NVSHMEM_DISABLE_GDRCOPY").value_or("");
  return text.empty() || std::string_view("0nNfF").find(text.front()) != std::string_view::npos;
}

Config load_settings() {
  Config config = load_config_from_environment();
  take_host_settings(config, environment);
  log::set_level(log::parse_level(config.log));
  log::set_file(config.log_file);
  return config;
}

}  // namespace weft::plugins::nvshmem
