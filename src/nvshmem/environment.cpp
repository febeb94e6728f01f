// Reads NVSHMEM's environment variables and translates them to Weft's settings. See
// environment.hpp.
#include "src/nvshmem/environment.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace weft::nvshmem {
namespace {

constexpr std::string_view kPrefix = "NVSHMEM_";

bool is_true(std::string_view text) {
  return !text.empty() && text != "0" && text != "false" && text != "no" && text != "off" &&
         text != "n" && text != "f";
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& variables) : variables_(variables) {}

  // The value of NVSHMEM_`name`, which then does not appear in the list of ignored variables.
  std::optional<std::string> take(std::string_view name) {
    used_.emplace_back(name);
    for (const std::string& variable : variables_) {
      const std::size_t end = variable.find('=');
      if (end != std::string::npos && variable.starts_with(kPrefix) &&
          std::string_view(variable).substr(kPrefix.size(), end - kPrefix.size()) == name) {
        return variable.substr(end + 1);
      }
    }
    return std::nullopt;
  }

  bool flag(std::string_view name) {
    const auto text = take(name);
    return text && is_true(lower(*text));
  }

  [[nodiscard]] std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const std::string& variable : variables_) {
      const std::string name = variable.substr(0, variable.find('='));
      if (!name.starts_with(kPrefix)) {
        continue;
      }
      bool is_used = false;
      for (const std::string& used : used_) {
        is_used = is_used || name.substr(kPrefix.size()) == used;
      }
      if (!is_used) {
        names.push_back(name);
      }
    }
    return names;
  }

 private:
  const std::vector<std::string>& variables_;
  std::vector<std::string> used_;
};

// If NVSHMEM_`name` is set, adds Weft's setting `setting` with that size in bytes.
void add_size(Environment& made, Reader& reader, std::string_view name, std::string_view setting) {
  const auto text = reader.take(name);
  if (!text || text->empty()) {
    return;
  }
  const auto bytes = parse_size(*text);
  if (!bytes) {
    made.error = "NVSHMEM_" + std::string(name) + "=" + *text +
                 " is not a size; give a number of bytes, with K, M, G or T";
    return;
  }
  made.settings.emplace_back(setting, std::to_string(*bytes));
}

std::optional<std::string> log_level(const std::string& debug) {
  const std::string level = lower(debug);
  if (level == "warn") {
    return "warn";
  }
  if (level == "info" || level == "version") {
    return "info";
  }
  if (level == "trace" || level == "abort") {
    return "debug";
  }
  return std::nullopt;
}

void read_heap(Environment& made, Reader& reader) {
  const auto kind = reader.take("HEAP_KIND");
  made.is_on_host = kind && lower(*kind) == "sysmem";
  add_size(made, reader, "SYMMETRIC_SIZE",
           made.is_on_host ? "WEFT_HEAP_SIZE" : "WEFT_DEVICE_HEAP_SIZE");
  if (made.is_on_host && made.settings.empty()) {
    made.settings.emplace_back("WEFT_HEAP_SIZE", "1G");
  }
  if (reader.flag("DISABLE_CUDA_VMM")) {
    made.settings.emplace_back("WEFT_DEVICE_HEAP_MAX", "0");
    static_cast<void>(reader.take("MAX_MEMORY_PER_GPU"));
  } else {
    add_size(made, reader, "MAX_MEMORY_PER_GPU", "WEFT_DEVICE_HEAP_MAX");
  }
}

void read_network(Environment& made, Reader& reader) {
  if (reader.flag("DISABLE_P2P")) {
    made.settings.emplace_back("WEFT_NODE_SIZE", "1");
  }
  if (const auto provider = reader.take("LIBFABRIC_PROVIDER"); provider && !provider->empty()) {
    made.settings.emplace_back("WEFT_PROVIDER", *provider);
  }
  if (const auto count = reader.take("LIBFABRIC_MAX_NIC_PER_PE"); count && !count->empty()) {
    made.settings.emplace_back("WEFT_RAIL_COUNT_MAX", *count);
  }
}

void read_bootstrap(Environment& made, Reader& reader) {
  const auto bootstrap = reader.take("BOOTSTRAP");
  made.by_mpi = bootstrap && lower(*bootstrap) == "mpi";
  const auto pmi = reader.take("BOOTSTRAP_PMI");
  if (pmi && lower(*pmi) == "pmix") {
    made.settings.emplace_back("WEFT_BOOTSTRAP", "pmix");
  }
  if (const auto names = reader.take("BOOTSTRAP_UID_SOCK_IFNAME"); names && !names->empty()) {
    made.settings.emplace_back("WEFT_BOOTSTRAP_INTERFACES", *names);
  }
  if (const auto family = reader.take("BOOTSTRAP_UID_SOCK_FAMILY"); family && !family->empty()) {
    if (*family != "AF_INET" && *family != "AF_INET6") {
      made.error = "NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=" + *family +
                   " is not an address family; use AF_INET or AF_INET6";
      return;
    }
    made.settings.emplace_back("WEFT_BOOTSTRAP_FAMILY", *family == "AF_INET" ? "ipv4" : "ipv6");
  }
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !(number >= 0)) {
    return std::nullopt;
  }
  if (rest != text.data() + text.size()) {
    constexpr std::string_view kMultipliers = "kmgt";
    const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(*rest)));
    const std::size_t power = kMultipliers.find(letter);
    if (power == std::string_view::npos) {
      return std::nullopt;
    }
    number = std::ldexp(number, static_cast<int>(10 * (power + 1)));
  }
  number = std::ceil(number);
  return number >= 0x1p63 ? std::nullopt : std::optional(static_cast<std::uint64_t>(number));
}

Environment read_environment(const std::vector<std::string>& variables) {
  Environment made;
  Reader reader(variables);
  read_heap(made, reader);
  read_network(made, reader);
  read_bootstrap(made, reader);
  made.says_version = reader.flag("VERSION");
  made.says_settings = reader.flag("INFO");
  if (const auto debug = reader.take("DEBUG"); debug) {
    if (const auto level = log_level(*debug); level) {
      made.settings.emplace_back("WEFT_LOG", *level);
    }
  }
  if (const auto file = reader.take("DEBUG_FILE"); file && !file->empty()) {
    made.settings.emplace_back("WEFT_LOG_FILE", *file);
  }
  made.ignored = reader.unused();
  return made;
}

}  // namespace weft::nvshmem
