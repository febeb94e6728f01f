#include "src/bootstrap/slurm_lists.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kHostsMax = 65'536;

constexpr std::uint32_t kTasksMax = 1U << 20U;

[[noreturn]] void fail_list(std::string_view text) {
  fail(Status::InvalidArgument, "'{}' is not a list of hosts such as h[0-2,7]", text);
}

[[noreturn]] void fail_tasks(std::string_view text) {
  fail(Status::InvalidArgument,
       "SLURM_TASKS_PER_NODE={}: numbers like 2(x3),1 are wanted; say how many PEs with -n", text);
}

std::optional<std::uint32_t> whole_number(std::string_view digits) {
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (code != std::errc{} || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return number;
}

std::uint32_t parse_number(std::string_view digits) {
  const std::optional<std::uint32_t> number = whole_number(digits);
  if (!number) {
    fail_list(digits);
  }
  return *number;
}

// Everything up to the next comma outside of brackets; removes it from `rest`.
std::string_view take_item(std::string_view& rest) {
  bool is_inside = false;
  std::size_t end = 0;
  while (end < rest.size() && (is_inside || rest[end] != ',')) {
    is_inside = rest[end] == '[' || (is_inside && rest[end] != ']');
    ++end;
  }
  const std::string_view item = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return item;
}

// "0-2,07" -> 0, 1, 2, 07.
std::vector<std::string> expand_numbers(std::string_view text) {
  std::vector<std::string> numbers;
  while (!text.empty()) {
    const std::string_view range = take_item(text);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    const std::uint32_t end = parse_number(last);
    const std::uint32_t begin = parse_number(first);
    if (begin > end || end - begin >= kHostsMax) {
      fail_list(range);
    }
    for (std::uint32_t number = begin; number <= end; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
  }
  return numbers;
}

// One item, "r[1-2]n[01-02]": the names that it stands for.
std::vector<std::string> expand_item(std::string_view item) {
  std::vector<std::string> names{""};
  std::string_view rest = item;
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    const std::size_t close = open == rest.size() ? open : rest.find(']', open);
    if (close == std::string_view::npos) {
      fail_list(item);
    }
    std::vector<std::string> endings{""};
    if (open != rest.size()) {
      endings = expand_numbers(rest.substr(open + 1, close - open - 1));
    }
    if (endings.empty() || names.size() * endings.size() > kHostsMax) {
      fail_list(item);
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& ending : endings) {
        longer.push_back(fmt::format("{}{}{}", name, rest.substr(0, open), ending));
      }
    }
    names = std::move(longer);
    rest.remove_prefix(std::min(close + 1, rest.size()));
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::vector<std::string> names = expand_item(take_item(rest));
    // A leading dash would be an option of the command that is given the name.
    if (names.front().empty() || names.front().front() == '-' ||
        hosts.size() + names.size() > kHostsMax) {
      fail_list(text);
    }
    hosts.insert(hosts.end(), names.begin(), names.end());
  }
  if (hosts.empty()) {
    fail_list(text);
  }
  return hosts;
}

std::vector<std::uint32_t> expand_tasks_per_node(std::string_view text) {
  if (text.empty() || text.back() == ',') {
    fail_tasks(text);
  }
  std::vector<std::uint32_t> counts;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view item = take_item(rest);
    std::uint32_t hosts = 1;
    if (const std::size_t open = item.find("(x"); open != std::string_view::npos) {
      const std::string_view repeat = item.substr(open + 2);
      hosts =
          repeat.ends_with(')') ? whole_number(repeat.substr(0, repeat.size() - 1)).value_or(0) : 0;
      item = item.substr(0, open);
    }
    const std::uint32_t tasks = whole_number(item).value_or(0);
    if (tasks == 0 || tasks > kTasksMax || hosts == 0 || counts.size() + hosts > kHostsMax) {
      fail_tasks(text);
    }
    counts.insert(counts.end(), hosts, tasks);
  }
  return counts;
}

}  // namespace weft::bootstrap
