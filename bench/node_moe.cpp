// What a dispatch and a combine of weft::moe cost on CPUs, beside what the same bytes cost without them, in one run and in
// turn. JSON lines: median, least and most of the samples of PE 0, in microseconds.
//
//   weft-run -n 2 -- node_moe [tokens]                      one node: against a memcpy of the same bytes
//   WEFT_NODE_SIZE=1 weft-run -n 4 -- node_moe [tokens]     every PE a node: against one put_signal for each row
//                                                           (token-first), and one of the same bytes for each peer
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

namespace {

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

  // By rank: how many tokens go there.
  [[nodiscard]] std::vector<std::uint64_t> rows() const {
    const weft::moe::ExpertMap map{kExperts, weft::pe_count()};
    std::vector<std::uint64_t> rows(static_cast<std::size_t>(weft::pe_count()));
    for (int token = 0; token < count; ++token) {
      std::vector<bool> goes(rows.size());
      for (int lane = 0; lane < kTopk; ++lane) {
        const auto id =
            static_cast<std::int32_t>(ids[static_cast<std::size_t>(token * kTopk + lane)]);
        goes[static_cast<std::size_t>(map.rank_of(id))] = true;
      }
      for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        rows[rank] += goes[rank] ? 1 : 0;
      }
    }
    return rows;
  }
};

weft_moe_config config_of(int tokens, weft_moe_layout layout) {
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
          .on_timeout = WEFT_MOE_ERROR};
}

// The same rows by put_signal: one for each row, or one for each peer.
class Puts {
 public:
  Puts(const Tokens& tokens)
      : sent_(tokens.rows()),
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
};

void print(Row& row, int tokens, std::uint64_t bytes) {
  std::sort(row.us.begin(), row.us.end());
  utsname machine{};
  uname(&machine);
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::printf(
      "{\"name\": \"moe_%s\", \"us\": %.1f, \"us_min\": %.1f, \"us_max\": %.1f, "
      "\"samples\": %zu, \"pes\": %d, \"nodes\": %d, \"tokens\": %d, \"hidden\": %d, "
      "\"topk\": %d, \"experts\": %d, \"payload\": \"bfloat16\", \"bytes_sent\": %llu, "
      "\"machine\": \"%s\", \"cpus\": %u, \"date\": \"%s\"}\n",
      row.name, row.us[row.us.size() / 2], row.us.front(), row.us.back(), row.us.size(),
      weft::pe_count(), weft_node_count(), tokens, kHidden, kTopk, kExperts,
      static_cast<unsigned long long>(bytes), machine.machine, std::thread::hardware_concurrency(),
      date);
}

void measure(std::vector<Row>& rows) {
  for (int sample = -2; sample < kSamples; ++sample) {  // two rounds to warm up
    for (Row& row : rows) {
      weft::quiet();
      weft::barrier_all();
      const auto start = Clock::now();
      row.run();
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (sample >= 0) {
        row.us.push_back(us / row.divisor);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const weft::Session session;
  const Tokens tokens(argc > 1 ? std::atoi(argv[1]) : 128);
  const bool is_one_node = weft_node_count() == 1;
  weft::moe::Exchange by_rank(config_of(tokens.count, WEFT_MOE_RANK_MAJOR));
  weft::moe::Exchange by_expert(config_of(tokens.count, WEFT_MOE_EXPERT_COMPACT));
  Puts puts(tokens);
  PingPong ping_pong;
  weft::moe::Received rows_by_rank;
  weft::moe::Received rows_by_expert;
  std::uint64_t sent = 0;
  const std::vector<std::uint64_t> to = tokens.rows();
  for (std::size_t rank = 0; rank < to.size(); ++rank) {
    sent += is_one_node || rank != static_cast<std::size_t>(weft::pe()) ? to[rank] * kRowBytes : 0;
  }
  const std::vector<std::byte> from(sent, std::byte{1});
  std::vector<std::byte> copy(sent, std::byte{2});
  std::vector<std::uint16_t> y(tokens.x.size());
  std::vector<Row> rows{
      {"dispatch_rank_major", [&] { rows_by_rank = by_rank.dispatch(tokens.view()); }},
      {"dispatch_expert_compact",
       [&] { rows_by_expert = by_expert.dispatch(tokens.view(), std::move(rows_by_expert)); }},
      {"combine_reduced", [&] {
         by_expert.combine(rows_by_expert.plan,
                           {.rows = rows_by_expert.rows.x,
                            .precision = WEFT_MOE_REDUCED,
                            .weighting = WEFT_MOE_WEIGHTS_OF_DISPATCH},
                           y.data());
       }}};
  if (is_one_node) {
    rows.push_back({"memcpy", [&] { std::memcpy(copy.data(), from.data(), sent); }});
  } else {
    rows.push_back({"token_first", [&] { puts.token_first(); }});
    rows.push_back({"one_put_a_peer", [&] { puts.one_put(); }});
    rows.push_back({"one_way_latency", [&] { ping_pong.round_trip(); }, 2});
  }
  measure(rows);
  if (weft::pe() == 0) {
    for (Row& row : rows) {
      print(row, tokens.count, sent);
    }
  }
  rows_by_rank = {};
  weft::barrier_all();
  return 0;
}
