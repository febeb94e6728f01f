#include "tools/run/placement.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/error.hpp"

namespace weft::run {
namespace {

std::uint32_t parse_slots(std::string_view text, std::string_view host) {
  std::uint32_t slots = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (code != std::errc{} || end != text.data() + text.size() || slots == 0) {
    fail(Status::InvalidArgument, "'{}' is not a host; write name or name:count", host);
  }
  return slots;
}

// "name:4"; an IPv6 address stands in brackets.
Host parse_host(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.rfind(']');
  const bool has_count =
      colon != std::string_view::npos && (bracket == std::string_view::npos || bracket < colon);
  Host host{.name = std::string(has_count ? text.substr(0, colon) : text)};
  if (has_count) {
    host.slot_count = parse_slots(text.substr(colon + 1), text);
  }
  // A leading dash would be an option of ssh.
  if (host.name.empty() || host.name.front() == '-') {
    fail(Status::InvalidArgument, "'{}' is not a host; write name or name:count", text);
  }
  return host;
}

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

Host parse_line(std::string_view line) {
  const std::size_t blank = line.find_first_of(" \t");
  if (blank == std::string_view::npos) {
    return parse_host(line);
  }
  Host host = parse_host(line.substr(0, blank));
  const std::string_view rest = trim(line.substr(blank));
  if (!rest.starts_with("slots=")) {
    fail(Status::InvalidArgument, "'{}' in the hostfile: write name, name:4 or name slots=4", line);
  }
  host.slot_count = parse_slots(rest.substr(6), line);
  return host;
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  while (true) {
    const std::size_t comma = text.find(',');
    hosts.push_back(parse_host(trim(text.substr(0, comma))));
    if (comma == std::string_view::npos) {
      return hosts;
    }
    text.remove_prefix(comma + 1);
  }
}

std::vector<Host> parse_hostfile(std::string_view text) {
  std::vector<Host> hosts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view content = trim(line.substr(0, line.find('#')));
    if (!content.empty()) {
      hosts.push_back(parse_line(content));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (hosts.empty()) {
    fail(Status::InvalidArgument, "the hostfile names no host");
  }
  return hosts;
}

std::vector<std::uint32_t> place(const std::vector<Host>& hosts,
                                 std::uint32_t pe_count,
                                 std::uint32_t pes_per_host) {
  std::uint32_t limited = 0;  // PEs that hosts with a count of their own take
  std::uint32_t open = 0;     // hosts without
  for (const Host& host : hosts) {
    limited += host.slot_count;
    open += host.slot_count == 0 ? 1 : 0;
  }
  const std::uint32_t shared = pe_count > limited ? pe_count - limited : 0;
  const std::uint32_t share =
      pes_per_host != 0 ? pes_per_host : (open == 0 ? 0 : (shared + open - 1) / open);
  std::vector<std::uint32_t> counts;
  std::uint32_t left = pe_count;
  for (const Host& host : hosts) {
    const std::uint32_t room = host.slot_count != 0 ? host.slot_count : share;
    counts.push_back(std::min(room, left));
    left -= counts.back();
  }
  if (left > 0) {
    fail(Status::InvalidArgument,
         "-n {}: the {} host(s) take only {} PEs; raise their counts or --ppn, or add hosts",
         pe_count, hosts.size(), pe_count - left);
  }
  return counts;
}

}  // namespace weft::run
