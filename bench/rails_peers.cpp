// What peers cost one PE with 4 rails, over simulated NICs: bytes of a peer that nobody talks to,
// of one that was sent to, and of one that has sent; the time of a tick while 16 peers are active.
//
//   rails_peers [PEERS...]        one JSON line for each number of peers (default 1024 8192)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "src/base/clock.hpp"
#include "tests/support/many_peers.hpp"

namespace weft::test {
namespace {

constexpr std::uint32_t kRails = 4;
constexpr std::uint32_t kActive = 16;
constexpr std::uint32_t kOperations = 32;  // in flight to each of them: one message each
constexpr int kTicks = 21;
constexpr std::uint64_t kTickNs = 25'000'000;

double thread_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// The median of passes that contain a tick.
double tick_us(ManyPeers& scene) {
  std::vector<double> ticks;
  for (int i = 0; i < kTicks; ++i) {
    for (const std::uint64_t start = now_ns(); now_ns() - start < kTickNs + kTickNs / 10;) {
    }
    const double before = thread_us();
    scene.transport().progress();
    ticks.push_back(thread_us() - before);
    scene.progress(64);
  }
  std::ranges::sort(ticks);
  return ticks[ticks.size() / 2];
}

void measure(std::uint32_t peers) {
  const std::uint32_t third = peers / 4;
  ManyPeers scene(peers, kRails);
  const double idle_us = tick_us(scene);
  std::size_t before = allocated_bytes();
  for (std::uint32_t i = 0; i < third; ++i) {
    static_cast<void>(scene.put_signal(Pe(1 + i)));
    scene.progress(4);
    scene.acknowledge(Pe(1 + i), 1);
  }
  const std::size_t to_peers = allocated_bytes() - before;
  before = allocated_bytes();
  for (std::uint32_t i = 0; i < third; ++i) {
    scene.hear_from(Pe(1 + third + i));
  }
  const std::size_t from_peers = allocated_bytes() - before;
  for (std::uint32_t i = 0; i < kActive * kOperations; ++i) {
    static_cast<void>(scene.put_signal(Pe(1 + i % kActive)));
    scene.progress(4);
  }
  const double active_us = tick_us(scene);
  fmt::print(
      "{{\"peers\": {}, \"rails\": {}, \"silent_bytes\": {}, \"sent_to_bytes\": {}, "
      "\"has_sent_bytes\": {}, \"idle_pass_us\": {:.1f}, \"tick_us_{}_active\": {:.1f}}}\n",
      peers, kRails, scene.silent_bytes() / peers, to_peers / third, from_peers / third, idle_us,
      kActive, active_us);
  std::fflush(stdout);
}

}  // namespace
}  // namespace weft::test

int main(int count, char** values) {
  const std::vector<const char*> given(values + 1, values + count);
  for (const char* peers : given.empty() ? std::vector{"1024", "8192"} : given) {
    weft::test::measure(static_cast<std::uint32_t>(std::strtoul(peers, nullptr, 10)));
  }
}
