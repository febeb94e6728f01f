// Teams and every collective with PEs as threads: on one node, between nodes of one and of two PEs,
// and where nodes have different sizes. Each call is checked against what its definition says, back
// to back and with slow PEs, in sizes on both sides of every change of algorithm.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/error.hpp"
#include "src/fabric/discovery.hpp"
#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using collectives::Collectives;
using collectives::combine_for;
using collectives::ElementType;
using collectives::Reduction;
using collectives::Sides;
using collectives::Team;
using testing::run_pes;

struct Shape {
  std::uint32_t pe_count;
  std::int64_t node_size;  // 0: all on one node
  bool is_emulated = false;

  friend void PrintTo(const Shape& shape, std::ostream* stream) {
    *stream << shape.pe_count << "_pes_on_nodes_of_" << shape.node_size
            << (shape.is_emulated ? "_emulated" : "");
  }
};

class Teams : public ::testing::TestWithParam<Shape> {
 protected:
  static constexpr std::size_t kBytesMax = 300'000;

  [[nodiscard]] static Config config() {
    Config config = testing::test_config();
    config.heap_size = std::uint64_t{24} << 20U;
    config.node_size = GetParam().node_size;
    config.nics = GetParam().is_emulated ? "" : "127.0.0.1";
    config.nics_shared = GetParam().is_emulated;
    return config;
  }

  // Runs the body on each PE with room for both sides of a collective.
  static void run(const std::function<void(runtime::Runtime&, Sides)>& body) {
    run_pes(
        GetParam().pe_count,
        [&](runtime::Runtime& runtime) {
          const std::size_t bytes = kBytesMax * (runtime.pe_count() + 1);
          auto* dest = static_cast<std::byte*>(runtime.heap().allocate(bytes, 64, true));
          auto* source = static_cast<std::byte*>(runtime.heap().allocate(bytes, 64, true));
          body(runtime, {dest, source});
        },
        config());
  }
};

std::byte pattern(Pe pe, std::size_t round, std::size_t at) {
  return static_cast<std::byte>(pe.value * 37 + round * 11 + at * 3 + (at >> 8U));
}

std::byte* fill(const Team& team, Sides sides, std::size_t round, std::size_t bytes) {
  auto* source = const_cast<std::byte*>(sides.source);
  for (std::size_t i = 0; i < bytes; ++i) {
    source[i] = pattern(team.pe(team.index()), round, i);
  }
  std::memset(sides.dest, 0xEE, bytes);
  if ((round + team.index()) % 5 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return source;
}

// How many of `bytes` at `dest` are not what `from` had at `offset` of its source.
std::size_t wrong_bytes(
    const std::byte* dest, Pe from, std::size_t round, std::size_t offset, std::size_t bytes) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    wrong += dest[i] == pattern(from, round, offset + i) ? 0 : 1;
  }
  return wrong;
}

constexpr std::size_t kSizes[] = {0, 1, 8, 40, 1000, 5000, 9000, 20'000, 40'001, 70'000, 5, 16};

void check_alltoall(Team& team, Sides sides, std::size_t round, std::size_t bytes) {
  fill(team, sides, round, bytes * team.size());
  ASSERT_EQ(Collectives::alltoall(team, sides, bytes), Status::Ok);
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    ASSERT_EQ(wrong_bytes(sides.dest + i * bytes, team.pe(i), round, team.index() * bytes, bytes),
              0U)
        << bytes;
  }
}

void check_fcollect(Team& team, Sides sides, std::size_t round, std::size_t bytes) {
  fill(team, sides, round, bytes);
  ASSERT_EQ(Collectives::fcollect(team, sides, bytes), Status::Ok);
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    ASSERT_EQ(wrong_bytes(sides.dest + i * bytes, team.pe(i), round, 0, bytes), 0U) << bytes;
  }
}

void check_collect(Team& team, Sides sides, std::size_t round, std::size_t bytes) {
  const auto length = [&](std::uint32_t i) { return (i + round) % 3 == 0 ? 0 : bytes / (i + 1); };
  fill(team, sides, round, length(team.index()));
  ASSERT_EQ(Collectives::collect(team, sides, length(team.index())), Status::Ok);
  const std::byte* at = sides.dest;
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    ASSERT_EQ(wrong_bytes(at, team.pe(i), round, 0, length(i)), 0U) << bytes;
    at += length(i);
  }
}

void check_broadcast(Team& team, Sides sides, std::size_t round, std::size_t bytes) {
  const auto root = static_cast<std::uint32_t>(round) % team.size();
  fill(team, sides, round, bytes);
  ASSERT_EQ(Collectives::broadcast(team, sides, bytes, root), Status::Ok);
  ASSERT_EQ(wrong_bytes(sides.dest, team.pe(root), round, 0, bytes), 0U) << bytes;
}

void check_alltoalls(Team& team, Sides sides, std::size_t round) {
  constexpr collectives::Strides kStrides{.dest = 3, .source = 2, .element_bytes = 4, .count = 5};
  fill(team, sides, round, 2000);
  ASSERT_EQ(Collectives::alltoalls(team, sides, kStrides), Status::Ok);
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    for (std::size_t k = 0; k < kStrides.count; ++k) {
      const std::byte* got = sides.dest + (i * kStrides.count + k) * 12;
      const std::size_t from = (team.index() * kStrides.count + k) * 8;
      ASSERT_EQ(wrong_bytes(got, team.pe(i), round, from, 4), 0U);
      ASSERT_EQ(got[4], std::byte{0xEE});
    }
  }
}

void check_all(Team& team, Sides sides) {
  std::size_t round = team.id();
  for (const std::size_t bytes : kSizes) {
    check_alltoall(team, sides, ++round, bytes);
    check_fcollect(team, sides, ++round, bytes);
    check_collect(team, sides, ++round, bytes);
    check_broadcast(team, sides, ++round, bytes);
    check_alltoalls(team, sides, ++round);
    ASSERT_EQ(team.sync("a test"), Status::Ok);
  }
}

// Sums of integers in doubles, which are exact, in place and not.
void check_sum(Team& team, Sides sides, std::size_t count, bool in_place) {
  auto* dest = reinterpret_cast<double*>(sides.dest);
  auto* source = in_place ? dest : reinterpret_cast<double*>(const_cast<std::byte*>(sides.source));
  for (std::size_t i = 0; i < count; ++i) {
    source[i] = static_cast<double>(team.index() * 1000 + i % 100);
  }
  ASSERT_EQ(Collectives::reduce(team, {sides.dest, reinterpret_cast<std::byte*>(source)}, count,
                                {combine_for(ElementType::Double, Reduction::Sum), sizeof(double)}),
            Status::Ok);
  const std::uint32_t n = team.size();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(dest[i], n * (n - 1) / 2.0 * 1000 + n * static_cast<double>(i % 100)) << i;
  }
}

TEST_P(Teams, TheMachineIsATeamHoweverManyNodesItIs) {
  run([](runtime::Runtime& runtime, Sides sides) {
    Team& machine = runtime.collectives().machine_team();
    Team& peers = runtime.collectives().machine_peers();
    EXPECT_EQ(machine.size(), runtime.pe_count());
    EXPECT_EQ(machine.index(), runtime.machine_pe());
    EXPECT_EQ(peers.size(), 1U);
    EXPECT_EQ(peers.pe(0), runtime.pe());
    auto* dest = reinterpret_cast<std::uint32_t*>(sides.dest);
    auto* source = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(sides.source));
    *source = runtime.pe().value;
    EXPECT_EQ(Collectives::fcollect(machine, {sides.dest, sides.source}, sizeof *source),
              Status::Ok);
    for (std::uint32_t pe = 0; pe < runtime.pe_count(); ++pe) {
      EXPECT_EQ(dest[pe], pe);
    }
    EXPECT_EQ(peers.sync("test"), Status::Ok);
  });
}

TEST_P(Teams, EveryCollectiveIsRightOnTheTeamOfAll) {
  run([](runtime::Runtime& runtime, Sides sides) {
    check_all(runtime.collectives().world(), sides);
  });
}

TEST_P(Teams, EveryCollectiveIsRightOnTeamsThatComeAndGo) {
  run([](runtime::Runtime& runtime, Sides sides) {
    Collectives& all = runtime.collectives();
    const auto n = static_cast<std::int32_t>(runtime.pe_count());
    const std::vector<collectives::TeamRange> ranges{
        {0, 1, n}, {n - 1, -1, n}, {0, 2, (n + 1) / 2}, {n / 2, 1, n - n / 2}, {n - 1, 0, 1}};
    for (int round = 0; round < 3; ++round) {
      std::vector<Team*> teams;
      for (const collectives::TeamRange& range : ranges) {
        const Collectives::Split split = all.split(all.world(), range);
        ASSERT_EQ(split.status, Status::Ok);
        teams.push_back(split.team);
      }
      for (Team* team : teams) {
        if (team != nullptr) {
          check_all(*team, sides);
          check_sum(*team, sides, 5000, round == 0);
          ASSERT_EQ(all.destroy(*team), Status::Ok);
        }
      }
    }
    check_all(all.node_team(), sides);
  });
}

TEST_P(Teams, ReductionsAreRightInEverySizeAndInPlace) {
  run([](runtime::Runtime& runtime, Sides sides) {
    Team& world = runtime.collectives().world();
    for (const std::size_t count : {0, 1, 7, 8, 100, 1000, 1025, 5000, 20'000, 37'000, 3}) {
      check_sum(world, sides, count, false);
      check_sum(world, sides, count, true);
    }
  });
}

TEST_P(Teams, AReductionGivesTheSameBitsOnEveryPeAndInEveryRun) {
  run([](runtime::Runtime& runtime, Sides sides) {
    Team& world = runtime.collectives().world();
    constexpr std::size_t kCount = 3000;
    auto* source = reinterpret_cast<float*>(const_cast<std::byte*>(sides.source));
    for (std::size_t i = 0; i < kCount; ++i) {
      source[i] = 1.0F / static_cast<float>(i * 7 + world.index() + 1);
    }
    const collectives::Reducer sum{combine_for(ElementType::Float, Reduction::Sum), 4};
    std::vector<float> first(kCount);
    for (int round = 0; round < 4; ++round) {
      ASSERT_EQ(Collectives::reduce(world, sides, kCount, sum), Status::Ok);
      if (round == 0) {
        std::memcpy(first.data(), sides.dest, kCount * 4);
      }
      ASSERT_EQ(std::memcmp(first.data(), sides.dest, kCount * 4), 0);
    }
    std::memcpy(const_cast<std::byte*>(sides.source), first.data(), kCount * 4);
    ASSERT_EQ(Collectives::fcollect(world, sides, kCount * 4), Status::Ok);
    for (std::uint32_t i = 0; i < world.size(); ++i) {
      ASSERT_EQ(std::memcmp(sides.dest + i * kCount * 4, first.data(), kCount * 4), 0);
    }
  });
}

// The ids travel through memory that all PEs have, as threads.
struct Ids {
  std::array<std::atomic<std::uint64_t>, 64> values{};

  std::uint64_t await(std::size_t index) const {
    std::uint64_t id = 0;
    while ((id = values.at(index).load()) == 0) {
      std::this_thread::yield();
    }
    return id;
  }
};

TEST_P(Teams, AnyPesInAnyOrderBecomeATeamByAnIdWhileOthersDoOtherThings) {
  Ids ids;
  run([&](runtime::Runtime& runtime, Sides sides) {
    Collectives& all = runtime.collectives();
    const std::uint32_t n = runtime.pe_count();
    const std::uint32_t me = runtime.pe().value;
    // Of all PEs from `first` on, the highest first; PE `first` makes the id. So PEs come at
    // different times.
    for (std::uint32_t first = 0; first <= me; ++first) {
      if (me == first) {
        static_cast<void>(all.make_id());  // one that nobody uses
        ids.values.at(first).store(all.make_id().value());
      }
      const Collectives::Split made =
          all.join(collectives::MeetingId(ids.await(first)), {n - 1 - me, n - first});
      ASSERT_EQ(made.status, Status::Ok);
      ASSERT_EQ(made.team->size(), n - first);
      ASSERT_EQ(made.team->index(), n - 1 - me);
      for (std::uint32_t i = 0; i < made.team->size(); ++i) {
        ASSERT_EQ(made.team->pe(i).value, n - 1 - i);
      }
      check_all(*made.team, sides);
      const Collectives::Split child = all.split(*made.team, {0, 1, 1});
      ASSERT_EQ(child.status, Status::Ok);
      if (child.team != nullptr) {
        ASSERT_EQ(all.destroy(*child.team), Status::Ok);
      }
      ASSERT_EQ(all.destroy(*made.team), Status::Ok);
    }
    check_all(all.world(), sides);
  });
}

TEST_P(Teams, DisjointTeamsByIdsOfOnePeEachAreMadeAtOnce) {
  run([&](runtime::Runtime& runtime, Sides sides) {
    Collectives& all = runtime.collectives();
    std::vector<Team*> teams;
    for (int i = 0; i < 5; ++i) {
      const Collectives::Split made = all.join(all.make_id(), {0, 1});
      ASSERT_EQ(made.status, Status::Ok);
      teams.push_back(made.team);
    }
    for (Team* team : teams) {
      check_all(*team, sides);
      ASSERT_EQ(all.destroy(*team), Status::Ok);
    }
  });
}

TEST_P(Teams, TheSameIndexTwiceIsNoticedByAllAndTheNextIdWorks) {
  Ids ids;
  run([&](runtime::Runtime& runtime, Sides /*sides*/) {
    Collectives& all = runtime.collectives();
    const std::uint32_t n = runtime.pe_count();
    const std::uint32_t me = runtime.pe().value;
    for (std::size_t round = 0; round < 2; ++round) {
      if (me == 0) {
        ids.values.at(round).store(all.make_id().value());
      }
      const std::uint32_t index = round == 0 && me == n - 1 ? 0 : me;
      const Status status = all.join(collectives::MeetingId(ids.await(round)), {index, n}).status;
      EXPECT_EQ(status, round == 0 && n > 1 ? Status::Mismatch : Status::Ok);
    }
  });
}

TEST_P(Teams, RangesThatDifferAreNoticedByAllAndTheNextSplitWorks) {
  run([](runtime::Runtime& runtime, Sides /*sides*/) {
    Collectives& all = runtime.collectives();
    const auto n = static_cast<std::int32_t>(runtime.pe_count());
    const std::int32_t mine = runtime.pe().value == 1 ? 1 : n;
    const Collectives::Split split = all.split(all.world(), {0, 1, mine});
    EXPECT_EQ(split.status, n > 1 ? Status::Mismatch : Status::Ok);
    EXPECT_EQ(all.split(all.world(), {0, 1, n}).status, Status::Ok);
  });
}

TEST_P(Teams, NotesInAnyMemoryReachAllMembersBetweenOtherCollectives) {
  run([](runtime::Runtime& runtime, Sides sides) {
    Team& team = runtime.collectives().world();
    std::vector<std::byte> mine(collectives::kNoteBytesMax);
    std::vector<std::byte> all(mine.size() * team.size());
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, mine.size()}) {
      for (std::size_t i = 0; i < bytes; ++i) {
        mine[i] = pattern(runtime.pe(), bytes, i);
      }
      ASSERT_EQ(Collectives::exchange(team, {"a test", std::span(mine).first(bytes),
                                             std::span(all).first(bytes * team.size())}),
                Status::Ok);
      for (std::uint32_t i = 0; i < team.size(); ++i) {
        ASSERT_EQ(wrong_bytes(all.data() + i * bytes, team.pe(i), bytes, 0, bytes), 0U) << bytes;
      }
      check_fcollect(team, sides, bytes, bytes);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         Teams,
                         ::testing::Values(Shape{1, 0},
                                           Shape{2, 0},
                                           Shape{3, 0},
                                           Shape{5, 0},
                                           Shape{8, 0},
                                           Shape{2, 1},
                                           Shape{3, 1},
                                           Shape{4, 2},
                                           Shape{5, 2}));

// `loom run -- multi_tests`
std::vector<Shape> emulated_shapes() {
  return testing::emulated_only().empty() ? std::vector<Shape>{}
                                          : std::vector{Shape{3, 1, true}, Shape{5, 2, true}};
}

INSTANTIATE_TEST_SUITE_P(Emulated, Teams, ::testing::ValuesIn(emulated_shapes()));

}  // namespace
}  // namespace weft
