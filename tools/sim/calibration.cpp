#include "tools/sim/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/sim/refuse.hpp"

namespace weft::sim {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = 1024 * kKib;

struct Fit {
  Machine& machine;
  const Question& question;
  const Reference& reference;

  [[nodiscard]] std::string key(const char* what) const {
    return fmt::format("{}.{}.{}", name_of(question.setup.library), what, question.setup.policy);
  }

  [[nodiscard]] std::string source(const ReferenceRow& row) const {
    return fmt::format("fitted to {}, {} bytes", reference.file, row.bytes);
  }

  // Of the NICs alone.
  [[nodiscard]] double net_us(const ReferenceRow& row) const {
    return predict(machine, question_of(question, row)).outcome.window_ns / 1e3;
  }

  [[nodiscard]] double us(const ReferenceRow& row) const {
    return predict(machine, question_of(question, row)).us;
  }
};

const ReferenceRow& row_with(const Reference& reference, std::uint64_t bytes) {
  const auto row = std::ranges::find(reference.rows, bytes, &ReferenceRow::bytes);
  if (row == reference.rows.end()) {
    refuse("{} does not fit: the calibration needs its row of {} bytes", reference.file, bytes);
  }
  return *row;
}

const ReferenceRow& first_row(const Reference& reference) {
  return reference.rows.front();
}

const ReferenceRow& last_row(const Reference& reference) {
  return reference.rows.back();
}

void fit_floor(Fit& fit) {
  const ReferenceRow& row = first_row(fit.reference);
  const Start single = start_of(fit.machine, fit.question.setup.library, "single");
  fit.machine.set(fit.key("floor_us"), row.value, fit.source(row));
  if (single.floor_us > 0 && fit.question.setup.policy != "single") {
    fit.machine.set(fit.key("start_us"),
                    std::max(0.0, single.start_us + row.value - single.floor_us),
                    "that of single, and the difference of the floors");
  }
}

// The largest size, and a 64th of it: their difference has no start in it.
void fit_start(Fit& fit) {
  constexpr std::uint64_t kSmaller = 64;
  const ReferenceRow& large = last_row(fit.reference);
  const ReferenceRow& small = row_with(fit.reference, large.bytes / kSmaller);
  const ReferenceRow& first = first_row(fit.reference);
  fit.machine.set(fit.key("floor_us"), first.value, fit.source(first));
  fit.machine.set("efficiency", 1, "");
  const double simulated = fit.net_us(large) - fit.net_us(small);
  const double measured = large.value - small.value;
  if (!(measured > 0) || simulated / measured > 1.5) {
    refuse(
        "{} does not fit: from {} to {} bytes it takes {:.0f} us more, and the NICs of {} {:.0f}; "
        "is it of another machine, number of nodes or policy?",
        fit.reference.file, small.bytes, large.bytes, measured, fit.machine.name, simulated);
  }
  fit.machine.set("efficiency", simulated / measured,
                  fmt::format("fitted to {}, from {} to {} bytes", fit.reference.file, small.bytes,
                              large.bytes));
  fit.machine.set(fit.key("start_us"), std::max(0.0, small.value - fit.net_us(small)),
                  fit.source(small));
}

// The value between low and high at which the row is predicted. A larger value means less time, or
// more if `rises`.
void bisect(
    Fit& fit, const char* key, const ReferenceRow& row, std::array<double, 2> range, bool rises) {
  constexpr int kRounds = 12;
  constexpr double kExplained = 0.1;
  auto [low, high] = range;
  for (int round = 0; round < kRounds; ++round) {
    const double middle = std::sqrt(low * high);
    fit.machine.set(key, middle, fit.source(row));
    (fit.us(row) > row.value) == rises ? high = middle : low = middle;
  }
  if (std::abs(fit.us(row) / row.value - 1) > kExplained) {
    refuse("{} does not fit: no {} from {} to {} explains {:.1f} us for {} bytes, only {:.1f}",
           fit.reference.file, key, range[0], range[1], row.value, row.bytes, fit.us(row));
  }
}

void fit_overload(Fit& fit) {
  bisect(fit, "overload_rate", last_row(fit.reference), {0.05, 1}, false);
}

void fit_latency(Fit& fit) {
  bisect(fit, "latency_us", first_row(fit.reference), {0.1, 10'000}, true);
}

void fit_copies(Fit& fit) {
  const ReferenceRow& row = last_row(fit.reference);
  const Setup& setup = fit.question.setup;
  const double near_bytes = static_cast<double>(row.bytes) / setup.nodes;
  const double us = row.value - start_of(fit.machine, setup.library, setup.policy).start_us;
  if (!(us > 0)) {
    refuse("{} does not fit: {} bytes take less than the start of the call", fit.reference.file,
           row.bytes);
  }
  fit.machine.set("copies_gb_per_s", near_bytes / us / 1e3, fit.source(row));
}

void fit_put_bw(Fit& fit) {
  const ReferenceRow& small = row_with(fit.reference, 4 * kKib);
  const ReferenceRow& middle = row_with(fit.reference, 2 * kMib);
  const ReferenceRow& large = row_with(fit.reference, 16 * kMib);
  const double ctas = fit.machine.value("put_bw_ctas");
  const auto us = [](const ReferenceRow& row, double gb_per_s) {
    return static_cast<double>(row.bytes) / gb_per_s / 1e3;
  };
  fit.machine.set(fmt::format("{}.proxy_ns", name_of(fit.question.setup.library)),
                  us(small, small.value) / ctas * 1e3, fit.source(small));
  fit.machine.set("nic_gb_per_s", large.value / fit.machine.nics_per_pe, fit.source(large));
  fit.machine.set("put_bw_gap_us",
                  std::max(0.0, us(middle, middle.value) - us(middle, large.value)),
                  fit.source(middle));
}

struct NamedFit {
  const char* name;
  bool is_of_bandwidths;
  void (*run)(Fit&);
};

constexpr std::array kFits{
    NamedFit{"start", false, fit_start},       NamedFit{"floor", false, fit_floor},
    NamedFit{"overload", false, fit_overload}, NamedFit{"copies", false, fit_copies},
    NamedFit{"latency", false, fit_latency},   NamedFit{"put_bw", true, fit_put_bw}};

}  // namespace

std::vector<std::string> fit_names() {
  std::vector<std::string> names;
  for (const NamedFit& fit : kFits) {
    names.emplace_back(fit.name);
  }
  return names;
}

Question question_of(const Question& question, const ReferenceRow& row) {
  Question asked = question;
  asked.setup.traffic.bytes =
      std::max<std::uint64_t>(1, row.bytes / asked.setup.pe_count() / asked.setup.traffic.steps /
                                     asked.setup.traffic.count_per_step);
  return asked;
}

void calibrate(Machine& machine,
               const Question& question,
               const Reference& reference,
               const std::string& name) {
  const auto* const fit = std::ranges::find_if(
      kFits, [&](const NamedFit& known) { return std::string_view(known.name) == name; });
  if (fit == kFits.end()) {
    refuse("--fit {}: use {}", name, fmt::join(fit_names(), ", "));
  }
  if (fit->is_of_bandwidths != reference.is_bandwidth) {
    refuse("{} has {}, and --fit {} needs {}", reference.file,
           reference.is_bandwidth ? "bandwidths" : "times", name,
           fit->is_of_bandwidths ? "bandwidths" : "times");
  }
  Fit run{.machine = machine, .question = question, .reference = reference};
  fit->run(run);
}

}  // namespace weft::sim
