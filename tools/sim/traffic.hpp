// The operations that PEs post between two quiets: who sends how much to whom, in which order.
//
// One thread. The same setup gives the same operations.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tools/sim/setup.hpp"

namespace weft::sim {

struct Post {
  std::uint32_t peer = 0;
  std::uint64_t bytes = 0;
};

class Traffic {
 public:
  // The setup must outlive it.
  explicit Traffic(const Setup& setup);

  // The operations of a PE in the next window. Call for all PEs in turn.
  [[nodiscard]] std::vector<Post> posts_of(std::uint32_t pe);
  // How much later than the others it begins.
  [[nodiscard]] double delay_ns();
  // The PEs to which a PE may send in any window, in the order of the first.
  [[nodiscard]] std::vector<std::uint32_t> peers_of(std::uint32_t pe) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> targets_of(std::uint32_t pe);
  [[nodiscard]] std::vector<Post> routed(std::uint32_t pe);
  [[nodiscard]] std::uint64_t draw_bytes();

  const Setup& setup_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> experts_;  // by popularity
  std::vector<double> popularity_;      // accumulated
};

}  // namespace weft::sim
