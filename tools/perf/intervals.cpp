#include "tools/perf/intervals.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tools/balance/max_over_mean.hpp"

namespace weft::perf {
namespace {

struct Interval {
  double seconds = 0;
  std::vector<double> bytes;  // of the group's NICs
  std::vector<double> rates;  // all 1 unless all are known
  bool knows_rates = false;
};

NicChange change_between(const CounterSample& from, const CounterSample& to) {
  return {.seconds = static_cast<double>(to.time_ns - from.time_ns) * 1e-9,
          .nics = moved(from.nics, to.nics)};
}

Interval interval_of(const NicChange& change,
                     const std::vector<std::size_t>& group,
                     Direction direction,
                     const IntervalRule& rule) {
  Interval interval{.seconds = change.seconds};
  interval.knows_rates = std::ranges::all_of(group, [&](std::size_t nic) {
    return nic < rule.bytes_per_s.size() && rule.bytes_per_s[nic] > 0;
  });
  for (const std::size_t nic : group) {
    interval.bytes.push_back(static_cast<double>(change.nics[nic].*direction));
    interval.rates.push_back(interval.knows_rates ? rule.bytes_per_s[nic] : 1);
  }
  return interval;
}

// The busiest NIC's bytes as a part of its rate, or bare where rates are not known.
double busiest(const Interval& interval) {
  double most = 0;
  for (std::size_t i = 0; i < interval.bytes.size(); ++i) {
    most = std::max(most, interval.bytes[i] / interval.rates[i]);
  }
  return most;
}

bool counts(const Interval& interval, const IntervalRule& rule) {
  const auto piece = static_cast<double>(rule.piece_bytes);
  if (rule.by_step) {
    const double bytes = std::accumulate(interval.bytes.begin(), interval.bytes.end(), 0.0);
    return bytes >= piece * static_cast<double>(interval.bytes.size());
  }
  if (interval.seconds * 1e9 > static_cast<double>(rule.longest_ns)) {
    return false;
  }
  return busiest(interval) >= (interval.knows_rates ? interval.seconds / 2 : piece);
}

}  // namespace

void Evenness::add(double max_over_mean) {
  sum += max_over_mean;
  worst = std::max(worst, max_over_mean);
  ++count;
}

void Evenness::add(const Evenness& other) {
  sum += other.sum;
  worst = std::max(worst, other.worst);
  count += other.count;
}

void add_interval(const NicChange& change,
                  const std::vector<std::size_t>& group,
                  Direction direction,
                  const IntervalRule& rule,
                  Evenness& evenness) {
  if (group.size() < 2) {
    return;
  }
  const Interval interval = interval_of(change, group, direction, rule);
  const std::optional<double> ratio = max_over_mean(interval.bytes, interval.rates);
  if (ratio && counts(interval, rule)) {
    evenness.add(*ratio);
  }
}

Evenness evenness_of(const std::vector<CounterSample>& samples,
                     const std::vector<std::size_t>& group,
                     Direction direction,
                     const IntervalRule& rule) {
  Evenness evenness;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (!samples[i].begins) {
      add_interval(change_between(samples[i - 1], samples[i]), group, direction, rule, evenness);
    }
  }
  return evenness;
}

}  // namespace weft::perf
