// Dispatch and combine through weft/moe.hpp between nodes, and how many writes each call posts: at
// most two for each peer, or, where rows travel by node, for each other node, whatever the number
// of rows. Then also how many bytes: one row for each token and node, evenly over the PEs.
#include <weft/moe.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/multi/programs/expect.h"
#include "tests/multi/programs/sent_counts.hpp"

namespace {

using weft::programs::put_bytes;
using weft::programs::sent_signals;

constexpr int kTokens = 100;  // more than travel behind a header
constexpr int kHidden = 64;
constexpr int kTopk = 4;
constexpr int kCalls = 10;
constexpr std::uint64_t kRowBytes = 320;  // payload, ids, weights, number, up to 32 bytes
constexpr std::uint64_t kHeaderBytes =
    2048;  // of the two writes of a message, with what the rails add

struct Sums {
  std::uint64_t writes = 0;  // the most of a call
  std::vector<std::uint64_t> dispatched =
      std::vector<std::uint64_t>(static_cast<std::size_t>(weft::pe_count()));
};

void expect_few_bytes_evenly(const Sums& sums) {
  const auto pes = static_cast<std::size_t>(weft::pe_count());
  weft::SymmetricArray<std::uint64_t> mine(pes);
  weft::SymmetricArray<std::uint64_t> received(pes);
  std::copy(sums.dispatched.begin(), sums.dispatched.end(), mine.begin());
  weft::check(weft_team_reduce(WEFT_TEAM_WORLD, received.data(), mine.data(), {WEFT_UINT64, pes},
                               WEFT_SUM));
  std::uint64_t all = 0;
  std::uint64_t most = 0;
  for (const std::uint64_t bytes : received) {
    all += bytes;
    most = std::max(most, bytes);
  }
  const auto others = static_cast<std::uint64_t>(weft_node_count() - 1);
  const std::uint64_t rows = pes * others * kTokens * kCalls * kRowBytes;
  const std::uint64_t headers = pes * others * kCalls * kHeaderBytes;
  WEFT_EXPECT(all <= rows * 102 / 100 + headers);
  WEFT_EXPECT(most * pes * 100 <= all * 105);
}

void run(weft_moe_row_per row_per) {
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
                               .on_timeout = WEFT_MOE_ERROR,
                               .row_per = row_per};
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
  Sums sums;
  for (int call = 0; call < kCalls; ++call) {
    const std::uint64_t before = sent_signals();
    const std::vector<std::uint64_t> put_before = put_bytes();
    const weft::moe::Received got = exchange.dispatch({.count = kTokens,
                                                       .x = x.data(),
                                                       .type = WEFT_MOE_F32,
                                                       .topk_ids = ids.data(),
                                                       .topk_weights = weights.data()});
    weft::quiet();
    const std::vector<std::uint64_t> put_after = put_bytes();
    for (std::size_t pe = 0; pe < put_after.size(); ++pe) {
      sums.dispatched[pe] += put_after[pe] - put_before[pe];
    }
    const std::uint64_t between = sent_signals();
    std::vector<float> y(x.size());
    exchange.combine(got.plan,
                     {.rows = got.rows.x,
                      .precision = WEFT_MOE_REDUCED,
                      .weighting = WEFT_MOE_WEIGHTS_OF_DISPATCH},
                     y.data());
    WEFT_EXPECT(std::equal(x.begin(), x.end(), y.begin()));
    sums.writes = std::max({sums.writes, between - before, sent_signals() - between});
  }
  const auto others = static_cast<std::uint64_t>(weft_node_count() - 1);
  const bool is_by_node = row_per == WEFT_MOE_ROW_PER_NODE;
  const std::uint64_t peers =
      is_by_node ? others : others * static_cast<std::uint64_t>(weft_node_pe_count());
  WEFT_EXPECT(sums.writes <= 2 * peers);
  WEFT_EXPECT(peers == 0 || sums.writes >= peers);
  if (is_by_node && peers > 0 && weft_node_pe_count() > 1) {
    expect_few_bytes_evenly(sums);
  }
}

}  // namespace

int main() {
  const weft::Session session;
  run(WEFT_MOE_ROW_PER_RANK);
  run(WEFT_MOE_ROW_PER_NODE);
  weft::barrier_all();
  if (weft::pe() == 0) {
    std::printf("moe_writes ok\n");
  }
  return 0;
}
