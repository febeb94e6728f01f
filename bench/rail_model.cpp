// The rail policies in a model of time (tests/support/rail_model.hpp): traffics and faults that a
// lab on one machine cannot show, such as a slow NIC of every PE and leaf switches. One JSON line
// for each row: each policy's share of what the busiest PE's NICs carry. No network, no clock: the
// same lines in each run. Started by `scripts/bench policies --model`.
#include "tests/support/rail_model.hpp"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/transport/rails/policies.hpp"

namespace weft::transport::rails {
namespace {

// In which a NIC of 100 Gbit/s carries a cell of 4 KiB.
constexpr std::uint64_t kTickNs = 327;
constexpr std::uint32_t kMib = 1024;  // in KiB

struct Shape {
  std::uint32_t hosts;
  std::uint32_t pes_per_host;
};

struct Row {
  const char* name;
  ModelOptions options;
};

constexpr std::array kShapes{Shape{2, 1}, Shape{2, 2}, Shape{2, 4}, Shape{3, 1},
                             Shape{3, 2}, Shape{4, 1}, Shape{4, 2}, Shape{8, 1}};

ModelOptions with_slow_nics(ModelOptions options, std::uint32_t pe, std::uint32_t slowness) {
  options.slow_nic_of_pe = pe;
  options.slowness = slowness;
  options.windows = 40;  // half as many before, in which they are found
  return options;
}

std::vector<Row> rows_of(const ModelOptions& even) {
  std::vector<Row> rows{{"even", even},
                        {"NIC 0 of all PEs at a half", with_slow_nics(even, kAllPes, 2)},
                        {"NIC 0 of all PEs at a quarter", with_slow_nics(even, kAllPes, 4)},
                        {"NIC 0 of PE 1 at a half", with_slow_nics(even, 1, 2)}};
  const auto add = [&](const char* name, auto change) {
    ModelOptions options = even;
    change(options);
    rows.push_back({name, options});
  };
  add("leaves 2:1", [](ModelOptions& options) { options.oversubscription = 2; });
  add("leaves 2:1 for each NIC", [](ModelOptions& options) {
    options.oversubscription = 2;
    options.has_rail_leaves = true;
  });
  add("peers in shuffled order", [](ModelOptions& options) { options.shuffled_peers = true; });
  add("PEs start up to 50 us apart",
      [](ModelOptions& options) { options.skew_ticks = 50'000 / kTickNs; });
  return rows;
}

double share(ModelOptions options, const Policy& policy) {
  options.policy = &policy;
  return RailModel(options).run().share;
}

void print(const Row& row, Shape shape) {
  std::string shares;
  for (const Policy& policy : policies()) {
    shares += fmt::format("{}\"{}\": {:.3f}", shares.empty() ? "" : ", ", policy.name,
                          share(row.options, policy));
  }
  fmt::print(
      "{{\"row\": \"{}\", \"hosts\": {}, \"pes_per_host\": {}, \"kib\": {}, \"steps\": {}, "
      "\"shares\": "
      "{{{}}}}}\n",
      row.name, shape.hosts, shape.pes_per_host, row.options.bytes >> 10U, row.options.steps,
      shares);
}

void print_all(Shape shape) {
  const ModelOptions even{
      .hosts = shape.hosts, .pes_per_host = shape.pes_per_host, .windows = 8, .tick_ns = kTickNs};
  for (const std::uint32_t kib : {64U, 256U}) {
    for (const std::uint32_t steps : {1U, 4U, 16U}) {
      ModelOptions options = even;
      options.bytes = std::uint64_t{kib} << 10U;
      options.steps = steps;
      for (const Row& row : rows_of(options)) {
        print(row, shape);
      }
    }
  }
  for (const std::uint32_t kib : {kMib, 32 * kMib}) {
    ModelOptions options = even;
    options.bytes = std::uint64_t{kib} << 10U;
    options.steps = 32 * kMib / kib;
    options.windows = 2;
    print({"32 MiB to each peer", options}, shape);
  }
}

}  // namespace
}  // namespace weft::transport::rails

int main() {
  for (const auto& shape : weft::transport::rails::kShapes) {
    weft::transport::rails::print_all(shape);
  }
  return 0;
}
