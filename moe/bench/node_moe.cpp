// What a dispatch and a combine of weft::moe cost on CPUs, beside what the same bytes cost without
// them, in one run and in turn. JSON lines: median, least and most of the samples of PE 0, in
// microseconds.
//
//   weft-run -n 2 -- node_moe [tokens]                      one node: against a memcpy of the same
//                                                           bytes
//   WEFT_NODE_SIZE=1 weft-run -n 4 -- node_moe [tokens]     every PE a node: against one put_signal
//                                                           for each row (token-first), and one of
//                                                           the same bytes for each peer
//   WEFT_NODE_SIZE=2 weft-run -n 4 -- node_moe [tokens]     the same, and rows that travel once to
//                                                           each node
//   ... node_moe [tokens] dispatch                          without the combines, which take most
//                                                           of the time
//
// 128 tokens on 4 PEs need WEFT_HEAP_SIZE=1G.
//
// "writes": put_signals of PE 0 in one call. "rx_max_over_mean": bytes put to the busiest PE, by
// those to all on average.
#include <weft/moe.hpp>
#include <weft/moe/experts.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/utsname.h>

#include "tests/multi/programs/expect.h"
#include "tests/multi/programs/sent_counts.hpp"
#include "tools/balance/max_over_mean.hpp"

namespace {

using weft::programs::put_bytes;
using weft::programs::sent_signals;

constexpr int kHidden = 7168;
constexpr int kExperts = 256;
constexpr int kTopk = 8;
constexpr std::size_t kRowBytes = 14432;  // bfloat16, ids, weights: as the exchange's own rows
constexpr int kSamples = 41;

using Clock = std::chrono::steady_clock;

struct Tokens {
  int count;
  std::vector<std::uint16_t> x;
  std::vector<std::int64_t> ids;
  std::vector<float> weights;

  explicit Tokens(int tokens)
      : count(tokens),
        x(static_cast<std::size_t>(tokens * kHidden), 0x3F80),
        ids(static_cast<std::size_t>(tokens * kTopk)),
        weights(ids.size(), 0.125F) {
    std::mt19937 random(static_cast<unsigned>(weft::pe()));
    for (std::int64_t& id : ids) {
      id = static_cast<std::int64_t>(random() % kExperts);
    }
  }

  [[nodiscard]] weft_moe_tokens view() const {
    return {.count = count,
            .x = x.data(),
            .type = WEFT_MOE_BF16,
            .topk_ids = ids.data(),
            .topk_weights = weights.data()};
  }

  // By rank: how many rows go there, if each row goes to `target` of each rank that has one of its
  // experts.
  [[nodiscard]] std::vector<std::uint64_t> rows(const std::function<int(int)>& target) const {
    const weft::moe::ExpertMap map{kExperts, weft::pe_count()};
    std::vector<std::uint64_t> rows(static_cast<std::size_t>(weft::pe_count()));
    for (int token = 0; token < count; ++token) {
      std::vector<bool> goes(rows.size());
      for (int lane = 0; lane < kTopk; ++lane) {
        const auto id =
            static_cast<std::int32_t>(ids[static_cast<std::size_t>(token * kTopk + lane)]);
        goes[static_cast<std::size_t>(target(map.rank_of(id)))] = true;
      }
      for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        rows[rank] += goes[rank] ? 1 : 0;
      }
    }
    return rows;
  }
};

int to_rank(int rank) {
  return rank;
}

// The PE of another node with this PE's index in it.
int to_node(int rank) {
  const int first = rank - rank % weft_node_pe_count();
  return weft_node_of(rank) == weft_node() ? rank : first + weft_node_pe();
}

weft_moe_config config_of(int tokens, weft_moe_layout layout, weft_moe_row_per row_per) {
  return {.team = WEFT_TEAM_WORLD,
          .max_tokens = tokens,
          .hidden = kHidden,
          .experts = kExperts,
          .topk = kTopk,
          .payload = WEFT_MOE_BF16,
          .scales = WEFT_MOE_SCALES_NONE,
          .output = WEFT_MOE_BF16,
          .layout = layout,
          .alignment = 1,
          .timeout_s = 60,
          .on_timeout = WEFT_MOE_ERROR,
          .row_per = row_per};
}

// The same rows by put_signal: one for each row, or one for each peer.
class Puts {
 public:
  Puts(const Tokens& tokens, const std::function<int(int)>& target)
      : sent_(tokens.rows(target)),
        most_(static_cast<std::size_t>(tokens.count)),
        inbox_(sent_.size() * most_ * kRowBytes),
        outbox_(most_ * kRowBytes),
        signals_(2 * sent_.size()),
        expected_(sent_.size()) {
    weft::SymmetricArray<std::uint64_t> all(sent_.size());
    weft::SymmetricArray<std::uint64_t> mine(sent_.size());
    std::copy(sent_.begin(), sent_.end(), mine.begin());
    weft::check(weft_alltoall(all.data(), mine.data(), sizeof(std::uint64_t)));
    std::copy(all.begin(), all.end(), expected_.begin());
    weft::barrier_all();
  }

  void token_first() {
    send([&](std::byte* dest, std::uint64_t rows, int pe) {
      for (std::uint64_t row = 0; row < rows; ++row) {
        put(dest + row * kRowBytes, row * kRowBytes, kRowBytes, pe);
      }
    });
    wait([](std::uint64_t rows) { return rows; });
  }

  void one_put() {
    send([&](std::byte* dest, std::uint64_t rows, int pe) { put(dest, 0, rows * kRowBytes, pe); });
    wait([](std::uint64_t rows) { return rows > 0 ? 1 : 0; });
  }

 private:
  void put(std::byte* dest, std::size_t from, std::size_t bytes, int pe) {
    const auto me = static_cast<std::size_t>(weft::pe());
    if (bytes > 0) {
      weft::check(weft_put_signal_nbi(dest, outbox_.data() + from, bytes,
                                      {signals_.data() + me, 1, WEFT_SIGNAL_ADD}, pe));
    }
  }

  template <typename Put>
  void send(Put&& put_rows) {
    const int pes = weft::pe_count();
    for (int i = 1; i < pes; ++i) {
      const int pe = (weft::pe() + i) % pes;
      std::byte* dest = inbox_.data() + static_cast<std::size_t>(weft::pe()) * most_ * kRowBytes;
      put_rows(dest, sent_[static_cast<std::size_t>(pe)], pe);
    }
  }

  template <typename SignalsOf>
  void wait(SignalsOf&& signals_of) {
    for (int pe = 0; pe < weft::pe_count(); ++pe) {
      const auto from = static_cast<std::size_t>(pe);
      if (pe != weft::pe()) {
        total_[from] += signals_of(expected_[from]);
        weft::signal_wait_until(signals_.data() + from, WEFT_GE, total_[from]);
      }
    }
  }

  std::vector<std::uint64_t> sent_;
  std::size_t most_;
  weft::SymmetricArray<std::byte> inbox_;
  weft::SymmetricArray<std::byte> outbox_;
  weft::SymmetricArray<std::uint64_t> signals_;
  std::vector<std::uint64_t> expected_;
  std::map<std::size_t, std::uint64_t> total_;
};

// One way of a put_signal of 8 bytes between PE 0 and PE 1.
class PingPong {
 public:
  PingPong() : words_(2) {}

  void round_trip() {
    ++round_;
    if (weft::pe() == 0) {
      post(1);
      weft::signal_wait_until(words_.data() + 1, WEFT_EQ, round_);
    } else if (weft::pe() == 1) {
      weft::signal_wait_until(words_.data() + 1, WEFT_EQ, round_);
      post(0);
    }
  }

 private:
  void post(int pe) {
    weft::check(weft_put_signal(words_.data(), &round_, sizeof round_,
                                {words_.data() + 1, round_, WEFT_SIGNAL_SET}, pe));
  }

  weft::SymmetricArray<std::uint64_t> words_;
  std::uint64_t round_ = 0;
};

struct Row {
  const char* name;
  std::function<void()> run;
  double divisor = 1;
  std::vector<double> us{};
  std::uint64_t writes = 0;
  std::vector<std::uint64_t> put =
      std::vector<std::uint64_t>(static_cast<std::size_t>(weft::pe_count()));

  // Collective.
  [[nodiscard]] double rx_max_over_mean() const {
    const std::size_t pes = put.size();
    weft::SymmetricArray<std::uint64_t> mine(pes);
    weft::SymmetricArray<std::uint64_t> all(pes * pes);
    std::copy(put.begin(), put.end(), mine.begin());
    weft::check(
        weft_team_fcollect(WEFT_TEAM_WORLD, all.data(), mine.data(), pes * sizeof(std::uint64_t)));
    std::vector<double> received(pes);
    for (std::size_t i = 0; i < pes * pes; ++i) {
      received[i % pes] += static_cast<double>(all.data()[i]);
    }
    weft::barrier_all();
    return weft::max_over_mean(received).value_or(0);
  }
};

void print(Row& row, int tokens, double balance) {
  std::sort(row.us.begin(), row.us.end());
  utsname machine{};
  uname(&machine);
  double put = 0;
  for (const std::uint64_t bytes : row.put) {
    put += static_cast<double>(bytes);
  }
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::printf(
      "{\"name\": \"moe_%s\", \"us\": %.1f, \"us_min\": %.1f, \"us_max\": %.1f, "
      "\"samples\": %zu, \"pes\": %d, \"nodes\": %d, \"tokens\": %d, \"hidden\": %d, "
      "\"topk\": %d, \"experts\": %d, \"payload\": \"bfloat16\", \"bytes_put\": %llu, "
      "\"writes\": %.1f, \"rx_max_over_mean\": %.3f, \"machine\": \"%s\", \"cpus\": %u, \"date\": "
      "\"%s\"}\n",
      row.name, row.us[row.us.size() / 2], row.us.front(), row.us.back(), row.us.size(),
      weft::pe_count(), weft_node_count(), tokens, kHidden, kTopk, kExperts,
      static_cast<unsigned long long>(put / static_cast<double>(row.us.size())),
      static_cast<double>(row.writes) / static_cast<double>(row.us.size()), balance,
      machine.machine, std::thread::hardware_concurrency(), date);
}

void measure(std::vector<Row>& rows) {
  for (int sample = -2; sample < kSamples; ++sample) {  // two rounds to warm up
    for (Row& row : rows) {
      weft::quiet();
      weft::barrier_all();
      const std::uint64_t signals_before = sent_signals();
      const std::vector<std::uint64_t> put_before = put_bytes();
      const auto start = Clock::now();
      row.run();
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (sample >= 0) {
        weft::quiet();
        row.us.push_back(us / row.divisor);
        row.writes += sent_signals() - signals_before;
        const std::vector<std::uint64_t> put_after = put_bytes();
        for (std::size_t pe = 0; pe < put_after.size(); ++pe) {
          row.put[pe] += put_after[pe] - put_before[pe];
        }
      }
    }
  }
}

// One exchange of each layout, and what its calls received last.
class Exchanges {
 public:
  Exchanges(const Tokens& tokens, weft_moe_row_per row_per)
      : tokens_(tokens),
        by_rank_(config_of(tokens.count, WEFT_MOE_RANK_MAJOR, row_per)),
        by_expert_(config_of(tokens.count, WEFT_MOE_EXPERT_COMPACT, row_per)),
        y_(tokens.x.size()) {}

  void dispatch_by_rank() { rows_by_rank_ = by_rank_.dispatch(tokens_.view()); }

  void dispatch_by_expert() {
    rows_by_expert_ = by_expert_.dispatch(tokens_.view(), std::move(rows_by_expert_));
  }

  void combine(weft_moe_precision precision) {
    by_expert_.combine(rows_by_expert_.plan,
                       {.rows = rows_by_expert_.rows.x,
                        .precision = precision,
                        .weighting = WEFT_MOE_WEIGHTS_OF_DISPATCH},
                       y_.data());
  }

 private:
  const Tokens& tokens_;
  weft::moe::Exchange by_rank_;
  weft::moe::Exchange by_expert_;
  weft::moe::Received rows_by_rank_;
  weft::moe::Received rows_by_expert_;
  std::vector<std::uint16_t> y_;
};

std::uint64_t sum_of(const std::vector<std::uint64_t>& rows) {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : rows) {
    sum += one;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) try {
  const weft::Session session;
  const Tokens tokens(argc > 1 ? std::atoi(argv[1]) : 128);
  const bool combines = argc < 3 || std::strcmp(argv[2], "dispatch") != 0;
  const bool has_nodes = weft_node_count() > 1 && weft_node_pe_count() > 1;
  Exchanges per_rank(tokens, WEFT_MOE_ROW_PER_RANK);
  Exchanges per_node(tokens, WEFT_MOE_ROW_PER_AUTO);
  Puts puts(tokens, to_rank);
  Puts node_puts(tokens, to_node);
  PingPong ping_pong;
  const std::vector<std::byte> from(sum_of(tokens.rows(to_rank)) * kRowBytes, std::byte{1});
  std::vector<std::byte> copy(from.size(), std::byte{2});
  std::vector<Row> rows{{"dispatch_rank_major", [&] { per_rank.dispatch_by_rank(); }},
                        {"dispatch_expert_compact", [&] { per_rank.dispatch_by_expert(); }}};
  if (combines) {
    rows.push_back({"combine_reduced", [&] { per_rank.combine(WEFT_MOE_REDUCED); }});
    rows.push_back({"combine_fp8", [&] { per_rank.combine(WEFT_MOE_FP8); }});
  }
  if (has_nodes) {
    rows.push_back({"dispatch_rank_major_per_node", [&] { per_node.dispatch_by_rank(); }});
    rows.push_back({"dispatch_expert_compact_per_node", [&] { per_node.dispatch_by_expert(); }});
    if (combines) {
      rows.push_back({"combine_reduced_per_node", [&] { per_node.combine(WEFT_MOE_REDUCED); }});
      rows.push_back({"combine_fp8_per_node", [&] { per_node.combine(WEFT_MOE_FP8); }});
    }
    rows.push_back({"one_put_a_node", [&] { node_puts.one_put(); }});
  }
  if (weft_node_count() == 1) {
    rows.push_back({"memcpy", [&] { std::memcpy(copy.data(), from.data(), from.size()); }});
  } else {
    rows.push_back({"token_first", [&] { puts.token_first(); }});
    rows.push_back({"one_put_a_peer", [&] { puts.one_put(); }});
    rows.push_back({"one_way_latency", [&] { ping_pong.round_trip(); }, 2});
  }
  measure(rows);
  for (Row& row : rows) {
    const double balance = row.rx_max_over_mean();
    if (weft::pe() == 0) {
      print(row, tokens.count, balance);
    }
  }
  weft::barrier_all();
  return 0;
} catch (const weft::Exception& error) {
  std::fprintf(stderr, "node_moe: %s\n", error.what());
  return 1;
}
