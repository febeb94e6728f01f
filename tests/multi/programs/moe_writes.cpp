// Dispatch and combine through weft/moe.hpp on PEs that are nodes of their own, and how many writes each call posts: at
// most two for each peer, whatever the number of rows.
#include <weft/moe.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/multi/programs/expect.h"

namespace {

constexpr int kTokens = 100;  // more than travel behind a header
constexpr int kHidden = 64;
constexpr int kTopk = 4;
constexpr int kCalls = 10;

// Signals that this PE's rails sent: each write of an exchange is one put_signal.
std::uint64_t writes() {
  std::vector<weft_rail_counters> rails(static_cast<std::size_t>(weft_counters(nullptr, 0)));
  weft_counters(rails.data(), rails.size());
  std::uint64_t sum = 0;
  for (const weft_rail_counters& rail : rails) {
    sum += rail.tx_signals;
  }
  return sum;
}

}  // namespace

int main() {
  const weft::Session session;
  const int pes = weft::pe_count();
  const weft_moe_config config{.team = WEFT_TEAM_WORLD,
                               .max_tokens = kTokens,
                               .hidden = kHidden,
                               .experts = 3 * pes + 1,
                               .topk = kTopk,
                               .payload = WEFT_MOE_F32,
                               .scales = WEFT_MOE_SCALES_NONE,
                               .output = WEFT_MOE_F32,
                               .layout = WEFT_MOE_EXPERT_COMPACT,
                               .alignment = 1,
                               .timeout_s = 60,
                               .on_timeout = WEFT_MOE_ERROR};
  weft::moe::Exchange exchange(config);
  std::vector<float> x(kTokens * kHidden);
  std::vector<std::int64_t> ids(kTokens * kTopk);
  const std::vector<float> weights(kTokens * kTopk, 0.25F);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 251) + static_cast<float>(weft::pe());
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] =
        static_cast<std::int64_t>(i * 7 + static_cast<std::size_t>(weft::pe())) % config.experts;
  }
  std::uint64_t most = 0;
  for (int call = 0; call < kCalls; ++call) {
    const std::uint64_t before = writes();
    const weft::moe::Received got = exchange.dispatch({.count = kTokens,
                                                       .x = x.data(),
                                                       .type = WEFT_MOE_F32,
                                                       .topk_ids = ids.data(),
                                                       .topk_weights = weights.data()});
    const std::uint64_t between = writes();
    std::vector<float> y(x.size());
    exchange.combine(got.plan,
                     {.rows = got.rows.x,
                      .precision = WEFT_MOE_REDUCED,
                      .weighting = WEFT_MOE_WEIGHTS_OF_DISPATCH},
                     y.data());
    WEFT_EXPECT(std::equal(x.begin(), x.end(), y.begin()));
    most = std::max({most, between - before, writes() - between});
  }
  const auto peers = static_cast<std::uint64_t>(weft_node_count() - 1) *
                     static_cast<std::uint64_t>(weft_node_pe_count());
  WEFT_EXPECT(most <= 2 * peers);
  WEFT_EXPECT(peers == 0 || most >= peers);
  weft::barrier_all();
  if (weft::pe() == 0) {
    std::printf("moe_writes ok\n");
  }
  return 0;
}
