#include "tools/info/doctor/unreached.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::info {
namespace {

unsigned int number(const std::ssub_match& digits) {
  return static_cast<unsigned int>(std::stoul(digits.str()));
}

// As src/transport/rails/links.cpp writes it.
std::optional<Unreached> parse_loss(const std::string& line) {
  static const std::regex kLoss(
      R"(rail (\d+) \(([^,]*), [^)]*\) does not reach rail (\d+) of PE (\d+) \(([^)]*)\): (.*); .*)");
  std::smatch found;
  if (!std::regex_search(line, found, kLoss)) {
    return std::nullopt;
  }
  return Unreached{.rail = number(found[1]),
                   .nic = found[2],
                   .peer_rail = number(found[3]),
                   .pe = static_cast<int>(number(found[4])),
                   .where = found[5],
                   .reason = found[6]};
}

void drop_reached(const std::string& line, std::vector<Unreached>& unreached) {
  static const std::regex kAgain(R"(rail (\d+) \(.*\) reaches rail (\d+) of PE (\d+) again)");
  std::smatch found;
  if (std::regex_search(line, found, kAgain)) {
    std::erase_if(unreached, [&found](const Unreached& one) {
      return one.rail == number(found[1]) && one.peer_rail == number(found[2]) &&
             one.pe == static_cast<int>(number(found[3]));
    });
  }
}

// An IP address, not that of a PCI device, which has both signs.
bool is_pingable(const std::string& where) {
  const bool has_dot = where.find('.') != std::string::npos;
  const bool has_colon = where.find(':') != std::string::npos;
  return has_dot != has_colon;
}

void report(const std::string& text, const Unreached& one, const Reporter& reporter) {
  reporter.problem(
      text, !is_pingable(one.where)
                ? "look at the fabric's own tools, or leave the NIC out with WEFT_NICS"
                : fmt::format("ping -I {} {}: if that fails, the address needs a route by this NIC "
                              "(ip route, ip rule) and back; if it works, a firewall drops TCP; or "
                              "leave the NIC out with WEFT_NICS",
                              one.nic, one.where));
}

}  // namespace

std::vector<Unreached> find_unreached(std::string_view log, int pe) {
  std::vector<Unreached> unreached;
  const std::string prefix = fmt::format("weft: PE {}: ", pe);
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix)) {
      continue;
    }
    drop_reached(line, unreached);
    if (auto loss = parse_loss(line)) {
      unreached.push_back(std::move(*loss));
    }
  }
  return unreached;
}

std::string read_own_log() {
  struct stat status{};
  if (::fstat(STDERR_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) {
    return "";
  }
  std::ifstream log("/proc/self/fd/2");
  return {std::istreambuf_iterator<char>(log), {}};
}

void report_unreached(std::vector<Unreached> unreached,
                      std::size_t rail_count,
                      const Reporter& reporter) {
  std::ranges::sort(unreached, {}, [](const Unreached& one) {
    return std::tuple(one.pe, one.rail, one.peer_rail);
  });
  for (const Unreached& first : std::vector(unreached)) {
    const auto is_same_target = [&first](const Unreached& one) {
      return one.pe == first.pe && one.peer_rail == first.peer_rail;
    };
    if (rail_count > 1 && std::ranges::count_if(unreached, is_same_target) ==
                              static_cast<std::ptrdiff_t>(rail_count)) {
      report(fmt::format("no rail of this PE reaches rail {} of PE {} ({}): {}", first.peer_rail,
                         first.pe, first.where, first.reason),
             first, reporter);
      std::erase_if(unreached, is_same_target);
    }
  }
  while (!unreached.empty()) {
    const Unreached first = unreached.front();
    std::vector<std::string> names;
    std::erase_if(unreached, [&](const Unreached& one) {
      const bool is_alike =
          one.rail == first.rail && one.pe == first.pe && one.reason == first.reason;
      if (is_alike) {
        names.push_back(fmt::format("{} ({})", one.peer_rail, one.where));
      }
      return is_alike;
    });
    report(fmt::format("rail {} {} does not reach rail {} of PE {}: {}", first.rail, first.nic,
                       fmt::join(names, ", "), first.pe, first.reason),
           first, reporter);
  }
}

}  // namespace weft::info
