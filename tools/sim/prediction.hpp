// What a machine is predicted to take: simulations of its NICs, and what a call costs besides.
//
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/sim/machine.hpp"
#include "tools/sim/setup.hpp"

namespace weft::sim {

// Two numbers of peers with which to simulate: the rest is extrapolated.
struct Sample {
  std::uint32_t few = 0;
  std::uint32_t many = 0;
};

struct Question {
  Setup setup;  // without the machine's part
  std::optional<Sample> sample;
};

struct Prediction {
  double us = 0;
  double bytes = 0;  // that a PE sends, NVSHMEM's size
  double algbw_gb_per_s = 0;
  double busbw_gb_per_s = 0;
  Outcome outcome;     // of the NICs; of the larger sample
  std::string limit;   // in words
  std::string sample;  // in words; empty: nothing was extrapolated
};

// Throws Error.
[[nodiscard]] Prediction predict(const Machine& machine, const Question& question);

// put_bw of NVSHMEM's perftest: each CTA puts its part of `bytes`, then they meet. None if `bytes`
// is less than an element for each CTA: nothing is sent then.
[[nodiscard]] std::optional<double> predict_put_bw(const Machine& machine,
                                                   Library library,
                                                   std::uint64_t bytes);

// Time of all-to-alls with all `peers`, from those with the next few and many peers.
[[nodiscard]] double extrapolate(const Sample& sample, double few, double many, double peers);

}  // namespace weft::sim
