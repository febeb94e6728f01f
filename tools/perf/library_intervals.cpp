#include "tools/perf/library_intervals.hpp"

#include <algorithm>

namespace weft::perf {
namespace {

// Steps of each measured part are numbered from 0.
constexpr unsigned kPartShift = 32;

void leave_out_messages(std::vector<RailChange>& rails, std::uint32_t me) {
  std::uint64_t got = 0;
  std::uint64_t received = 0;
  for (const RailChange& change : rails) {
    (change.rail.pe == me ? received : got) += change.bytes.rx_bytes;
  }
  for (RailChange& change : rails) {
    if (change.rail.pe == me && received > 0) {
      const double share =
          static_cast<double>(change.bytes.rx_bytes) / static_cast<double>(received);
      change.bytes.rx_bytes = static_cast<std::uint64_t>(share * static_cast<double>(got));
    }
  }
}

LibraryInterval interval_between(const CounterSample& from,
                                 const CounterSample& to,
                                 const LibraryColumns& columns) {
  return {.rails = rail_changes(columns, moved(from.nics, to.nics))};
}

// Seven bits a byte, the low ones first; the last byte is below 128.
void append_number(std::string& text, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) {
    text += static_cast<char>(number | 0x80U);
  }
  text += static_cast<char>(number);
}

std::uint64_t take_number(const std::string& text, std::size_t& at) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; at < text.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      break;
    }
  }
  return number;
}

}  // namespace

std::vector<RailChange> rail_changes(const LibraryColumns& columns,
                                     const std::vector<NicBytes>& bytes) {
  std::vector<RailChange> rails;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].tx_bytes > 0 || bytes[i].rx_bytes > 0) {
      rails.push_back({.rail = columns.rails[i], .bytes = bytes[i]});
    }
  }
  leave_out_messages(rails, columns.me);
  return rails;
}

NicBytes bytes_of_rail(const RailChange& change, std::uint32_t pe) {
  return change.rail.pe == pe ? change.bytes : change.bytes.at_other_end();
}

std::vector<LibraryInterval> intervals_by_time(const std::vector<CounterSample>& samples,
                                               const LibraryColumns& columns,
                                               std::chrono::nanoseconds interval) {
  const std::int64_t length = interval.count();
  const auto number_of = [&](const CounterSample& sample) {
    return (sample.time_ns + length / 2) / length;
  };
  const auto is_on_time = [&](const CounterSample& sample) {
    const std::int64_t late = sample.time_ns - number_of(sample) * length;
    return -length / 4 <= late && late <= length / 4;
  };
  std::vector<LibraryInterval> intervals;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const CounterSample& from = samples[i - 1];
    const CounterSample& to = samples[i];
    if (!to.begins && number_of(to) == number_of(from) + 1 && is_on_time(from) && is_on_time(to)) {
      intervals.push_back(interval_between(from, to, columns));
      intervals.back().number = static_cast<std::uint64_t>(number_of(to));
    }
  }
  return intervals;
}

std::vector<LibraryInterval> intervals_by_step(const std::vector<CounterSample>& samples,
                                               const LibraryColumns& columns) {
  std::vector<LibraryInterval> intervals;
  std::uint64_t number = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].begins) {
      number = ((number >> kPartShift) + 1) << kPartShift;
      continue;
    }
    intervals.push_back(interval_between(samples[i - 1], samples[i], columns));
    intervals.back().number = number++;
  }
  return intervals;
}

std::string format_intervals(const std::vector<LibraryInterval>& intervals,
                             std::size_t bytes,
                             std::size_t& next) {
  std::string text;
  while (next < intervals.size()) {
    std::string one;
    append_number(one, intervals[next].number);
    append_number(one, intervals[next].rails.size());
    for (const RailChange& change : intervals[next].rails) {
      for (const std::uint64_t number :
           {std::uint64_t{change.rail.pe}, std::uint64_t{change.rail.rail}, change.bytes.tx_bytes,
            change.bytes.rx_bytes}) {
        append_number(one, number);
      }
    }
    if (!text.empty() && text.size() + one.size() > bytes) {
      break;
    }
    text += one;
    ++next;
  }
  return text;
}

std::vector<LibraryInterval> parse_intervals(const std::string& text) {
  std::vector<LibraryInterval> intervals;
  for (std::size_t at = 0; at < text.size();) {
    LibraryInterval& interval = intervals.emplace_back();
    interval.number = take_number(text, at);
    for (std::uint64_t left = take_number(text, at); left > 0 && at < text.size(); --left) {
      RailChange& change = interval.rails.emplace_back();
      change.rail.pe = static_cast<std::uint32_t>(take_number(text, at));
      change.rail.rail = static_cast<std::uint32_t>(take_number(text, at));
      change.bytes.tx_bytes = take_number(text, at);
      change.bytes.rx_bytes = take_number(text, at);
    }
  }
  return intervals;
}

LibraryTotals::LibraryTotals(Rows rows, std::size_t row_count, StepEnd step_end)
    : rows_(std::move(rows)), row_count_(row_count), step_end_(step_end) {}

void LibraryTotals::add(std::uint32_t pe, const LibraryInterval& interval) {
  const bool is_alone = step_end_ != StepEnd::Barrier;
  Total& total = totals_[{interval.number, is_alone ? pe : 0}];
  total.nics.resize(row_count_);
  ++total.pes;
  for (const RailChange& change : interval.rails) {
    const auto [owner, rail] = change.rail;
    if (owner >= rows_.size() || rail >= rows_[owner].size() || (is_alone && owner != pe)) {
      continue;
    }
    total.nics[rows_[owner][rail]].add(bytes_of_rail(change, pe));
  }
}

void LibraryTotals::judge(const std::vector<NicGroup>& groups,
                          IntervalRule rule,
                          double seconds,
                          MomentReport::Groups& evenness) const {
  rule.bytes_per_s.assign(row_count_, 0);
  for (const NicGroup& group : groups) {
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      rule.bytes_per_s[group.rows[i]] = group.bytes_per_s[i];
    }
  }
  for (const auto& [key, total] : totals_) {
    if (step_end_ == StepEnd::Barrier && total.pes < rows_.size()) {
      continue;
    }
    const NicChange change{.seconds = seconds, .nics = total.nics};
    for (const NicGroup& group : groups) {
      for (const auto direction : kBothDirections) {
        if (is_judged(group, direction, step_end_, key.second)) {
          add_interval(change, group.rows, direction, rule,
                       evenness_of_group(evenness, group, direction));
        }
      }
    }
  }
}

}  // namespace weft::perf
