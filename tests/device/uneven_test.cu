// alltoallv: blocks of random sizes arrive where they belong, in every scope, over teams of several
// shapes; and signal_each: many puts to many PEs, then one flag for each.
#include <algorithm>
#include <numeric>

#include "tests/device/collectives_suite.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;
using suite::TestTeam;

// ---- alltoallv

template <typename Scope, typename T>
__global__ void exchange(wd::Team team, wd::UnevenBlocks<T> blocks, std::uint32_t* has_moved) {
  const bool moved = wd::alltoallv<Scope>(team, blocks);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *has_moved = moved ? 1 : 0;
  }
}

// Of the block from PE `from` for PE `to`: often empty, sometimes the largest.
std::uint64_t count_of(std::uint64_t seed, int from, int to, std::size_t most) {
  const std::uint64_t draw = suite::random_at(seed, from, static_cast<std::uint64_t>(to));
  switch (draw % 4) {
    case 0:
      return 0;
    case 1:
      return std::min<std::uint64_t>(draw / 4 % 8, most);
    case 2:
      return draw / 4 % (most + 1);
    default:
      return most;
  }
}

int pe_of(const TestTeam& team, int member) {
  return weft_team_translate(team.on_host(), member, WEFT_TEAM_WORLD);
}

std::vector<std::uint64_t> counts_of(const TestTeam& team,
                                     int member,
                                     std::uint64_t seed,
                                     std::size_t most) {
  std::vector<std::uint64_t> counts;
  for (int to = 0; to < weft_team_pe_count(team.on_host()); ++to) {
    counts.push_back(count_of(seed, pe_of(team, member), pe_of(team, to), most));
  }
  return counts;
}

std::uint64_t sum(const std::vector<std::uint64_t>& counts, int end) {
  return std::accumulate(counts.begin(), counts.begin() + end, std::uint64_t{0});
}

// What this PE's dest and matrix must be.
template <typename T>
struct Expected {
  std::vector<T> dest;
  std::vector<std::uint64_t> matrix;
};

template <typename T>
Expected<T> reference(const TestTeam& team, std::uint64_t seed, std::size_t most) {
  Expected<T> expected;
  const int me = weft_team_pe(team.on_host());
  for (int from = 0; from < weft_team_pe_count(team.on_host()); ++from) {
    const std::vector<std::uint64_t> counts = counts_of(team, from, seed, most);
    expected.matrix.insert(expected.matrix.end(), counts.begin(), counts.end());
    const std::uint64_t first = sum(counts, me);
    for (std::uint64_t k = 0; k < counts[static_cast<std::size_t>(me)]; ++k) {
      expected.dest.push_back(suite::element_of<T>(suite::seed(), pe_of(team, from),
                                                   static_cast<std::size_t>(first + k)));
    }
  }
  return expected;
}

template <typename Scope, typename T>
struct Exchange {
  explicit Exchange(std::size_t largest)
      : most(largest),
        pes(static_cast<std::size_t>(suite::pe_count())),
        source(pes * most),
        dest(pes * most + 4),
        counts(pes),
        matrix(pes * pes),
        has_moved(1, suite::Where::Own) {
    source.write(suite::elements_of<T>(suite::seed(), suite::me(), source.count()));
  }

  // Returns whether the data moved.
  bool run(const TestTeam& team, const char* name, std::uint64_t seed, std::size_t capacity) {
    dest.fill(suite::kPoison);
    if (team.is_member()) {
      counts.write(counts_of(team, weft_team_pe(team.on_host()), seed, most));
    }
    suite::require_weft(weft_barrier_all(), name);
    if (team.is_member()) {
      suite::launch<Scope>(
          &exchange<Scope, T>, team.on_device(),
          wd::UnevenBlocks<T>{dest.get(), capacity, source.get(), counts.get(), matrix.get()},
          has_moved.get());
    }
    suite::finish(name);
    return team.is_member() && has_moved.read()[0] == 1;
  }

  std::size_t most;
  std::size_t pes;
  Array<T> source;
  Array<T> dest;
  Array<std::uint64_t> counts;
  Array<std::uint64_t> matrix;
  Array<std::uint32_t> has_moved;
};

template <typename Scope, typename T>
void check_team(const TestTeam& team, const char* name) {
  for (const std::size_t most : {std::size_t{5}, std::size_t{1000}, std::size_t{20000}}) {
    Exchange<Scope, T> exchange(most);
    for (std::uint64_t round = 0; round < 3; ++round) {
      const std::uint64_t seed = suite::seed() + 100 * round + most;
      const bool has_moved = exchange.run(team, name, seed, exchange.pes * most);
      if (!team.is_member()) {
        continue;
      }
      const std::string what = std::string(name) + ", " + suite::scope_name<Scope>() + ", up to " +
                               std::to_string(most) + " x " + std::to_string(sizeof(T)) + " bytes";
      if (!has_moved) {
        suite::fail("%s: nothing moved", what.c_str());
      }
      const Expected<T> expected = reference<T>(team, seed, most);
      suite::compare(exchange.dest, expected.dest, what);
      const std::vector<std::uint64_t> matrix = exchange.matrix.read();
      if (!std::equal(expected.matrix.begin(), expected.matrix.end(), matrix.begin())) {
        suite::fail("%s: other counts than the members gave", what.c_str());
      }
    }
  }
}

DEVICE_TEST(alltoallv, "alltoallv in every scope, over teams of every shape") {
  suite::for_teams([](const TestTeam& team, const char* name) {
    check_team<wd::Thread, std::uint32_t>(team, name);
    check_team<wd::Warp, std::uint32_t>(team, name);
    check_team<wd::Block, std::uint32_t>(team, name);
    check_team<wd::Grid, std::uint32_t>(team, name);
    check_team<wd::Block, std::uint8_t>(team, name);
    check_team<wd::Grid, double>(team, name);
  });
}

DEVICE_TEST(alltoallv_without_room, "alltoallv into too small a dest moves nothing, on any PE") {
  constexpr std::size_t kMost = 50;
  suite::for_teams([](const TestTeam& team, const char* name) {
    Exchange<wd::Block, std::uint32_t> exchange(kMost);
    std::uint64_t largest = 0;
    if (team.is_member()) {
      const int size = weft_team_pe_count(team.on_host());
      std::vector<std::uint64_t> totals(static_cast<std::size_t>(size));
      for (int from = 0; from < size; ++from) {
        const auto counts = counts_of(team, from, suite::seed(), kMost);
        for (std::size_t to = 0; to < totals.size(); ++to) {
          totals[to] += counts[to];
        }
      }
      largest = *std::max_element(totals.begin(), totals.end());
    }
    const bool fits = exchange.run(team, name, suite::seed(), largest);
    if (team.is_member() && !fits) {
      suite::fail("%s: refused what fits", name);
    }
    const bool has_moved = largest > 0
                               ? exchange.run(team, name, suite::seed(), largest - 1)
                               : exchange.run(team, name, suite::seed(), 0) && !team.is_member();
    if (team.is_member() && largest > 0) {
      if (has_moved) {
        suite::fail("%s: moved %llu elements into room for one less", name,
                    static_cast<unsigned long long>(largest));
      }
      suite::compare(exchange.dest, std::vector<std::uint32_t>{}, name);
    }
  });
}

// ---- signal_each

inline constexpr std::uint32_t kPuts = 12;     // to each PE, before its flag
inline constexpr std::uint32_t kLength = 400;  // elements of the longest

struct Letters {
  std::uint32_t* inbox;   // symmetric: kPuts places for each sender
  std::uint32_t* drafts;  // kPuts places for each receiver
  std::uint64_t* flags;   // symmetric: one for each sender
  std::uint64_t seed;
  std::uint32_t round;
};

inline __device__ std::uint32_t length_of(const Letters& l, int from, int to, std::uint32_t put) {
  return static_cast<std::uint32_t>(suite::random_at(l.seed + l.round, from * 64 + to, put) %
                                    (kLength + 1));
}

inline __device__ std::uint32_t letter(const Letters& l,
                                       int from,
                                       std::uint32_t put,
                                       std::uint32_t i) {
  return static_cast<std::uint32_t>(suite::random_at(l.seed, from, put * kLength + i)) + l.round;
}

template <typename Scope>
__global__ void write_to_all(Letters l, Finding* finding) {
  const int me = wd::pe();
  const int pes = wd::pe_count();
  for (int to = 0; to < pes; ++to) {
    for (std::uint32_t put = 0; put < kPuts; ++put) {
      std::uint32_t* draft = l.drafts + (std::size_t(to) * kPuts + put) * kLength;
      const std::uint32_t length = length_of(l, me, to, put);
      for (std::uint32_t i = Scope::rank(); i < length; i += Scope::size()) {
        draft[i] = letter(l, me, put, i);
      }
      Scope::sync();
      wd::put_nbi<Scope>(l.inbox + (std::size_t(me) * kPuts + put) * kLength, draft, length, to);
    }
  }
  wd::signal_each<Scope>(static_cast<std::uint32_t>(pes), [&](std::uint32_t i) {
    return wd::Notice{{l.flags + me, 1, wd::SignalOp::Add}, (me + static_cast<int>(i)) % pes};
  });
  for (int from = 0; from < pes; ++from) {
    wd::signal_wait_until<Scope>(l.flags + from, wd::Comparison::Ge, l.round);
    for (std::uint32_t put = 0; put < kPuts; ++put) {
      const std::uint32_t length = length_of(l, from, me, put);
      for (std::uint32_t i = Scope::rank(); i < length; i += Scope::size()) {
        suite::expect_equal(finding, (std::uint64_t{put} << 32U) | i, letter(l, from, put, i),
                            l.inbox[(std::size_t(from) * kPuts + put) * kLength + i]);
      }
    }
  }
  Scope::sync();
  if (wd::is_leader<Scope>()) {
    wd::quiet();
  }
  Scope::sync();
}

template <typename Scope>
void check_letters(const char* name) {
  const std::size_t room = static_cast<std::size_t>(suite::pe_count()) * kPuts * kLength;
  const Array<std::uint32_t> inbox(room);
  const Array<std::uint32_t> drafts(room, suite::Where::Own);
  const Array<std::uint64_t> flags(static_cast<std::size_t>(suite::pe_count()));
  const suite::Findings findings;
  const std::uint32_t rounds = suite::turns(400);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    suite::launch<Scope>(&write_to_all<Scope>,
                         Letters{inbox.get(), drafts.get(), flags.get(), suite::seed(), round},
                         findings.get());
    suite::finish(name);  // a barrier: the next round's letters lie where these did
  }
  for (const std::uint64_t flag : flags.read()) {
    if (flag != rounds) {
      suite::fail("%s: a flag was set %llu times in %u rounds", name,
                  static_cast<unsigned long long>(flag), rounds);
    }
  }
  findings.report(name);
}

DEVICE_TEST(signal_each, "who sees the one flag of a PE sees all that it has put before") {
  check_letters<wd::Thread>("thread");
  check_letters<wd::Warp>("warp");
  check_letters<wd::Block>("block");
}

}  // namespace
