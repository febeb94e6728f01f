// Who is mapped, who is in which team, and that sync and barrier are what they say.
#include "tests/device/device_tools.cuh"
#include "tests/device/test_team.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;
using suite::for_teams;
using suite::TestTeam;

// ---- ptr

__global__ void look_at_peers(int* word, std::uint64_t* addresses) {
  for (int pe = 0; pe < wd::pe_count(); ++pe) {
    addresses[pe] = reinterpret_cast<std::uint64_t>(wd::ptr(word, pe));
    if (int* mapped = wd::ptr(word, pe)) {
      atomicAdd_system(mapped, 1 + wd::pe());
    }
  }
  addresses[wd::pe_count()] = reinterpret_cast<std::uint64_t>(wd::ptr(word, wd::pe_count()));
  addresses[wd::pe_count() + 1] = reinterpret_cast<std::uint64_t>(wd::ptr(word, -1));
  addresses[wd::pe_count() + 2] = reinterpret_cast<std::uint64_t>(wd::ptr(addresses, 0));
  wd::quiet();
}

DEVICE_TEST(addresses,
            "ptr is an address exactly for the PEs of the node, the one that the host gives") {
  const Array<int> word(1);
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const Array<std::uint64_t> addresses(pes + 3, suite::Where::Own);
  look_at_peers<<<1, 1>>>(word.get(), addresses.get());
  suite::finish("looking");
  const std::vector<std::uint64_t> seen = addresses.read();
  int sum = 0;
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    const bool is_near = weft_node_of(pe) == weft_node();
    sum += is_near ? 1 + pe : 0;
    const auto host = reinterpret_cast<std::uint64_t>(weft_device_ptr(word.get(), pe));
    if ((seen[static_cast<std::size_t>(pe)] != 0) != is_near ||
        host != seen[static_cast<std::size_t>(pe)]) {
      suite::fail("PE %d, %s: kernel 0x%llx, host 0x%llx", pe,
                  is_near ? "of the node" : "of another node",
                  static_cast<unsigned long long>(seen[static_cast<std::size_t>(pe)]),
                  static_cast<unsigned long long>(host));
    }
  }
  if (seen[pes] != 0 || seen[pes + 1] != 0 || seen[pes + 2] != 0) {
    suite::fail("there is an address of no PE, or of memory that is not symmetric");
  }
  if (const int got = word.read()[0]; got != sum) {
    suite::fail("the additions through the addresses come to %d, not %d", got, sum);
  }
}

// ---- Teams

__global__ void describe(wd::Team team, int* out) {
  out[0] = wd::team_pe(team);
  out[1] = wd::team_pe_count(team);
  for (int i = 0; i < out[1]; ++i) {
    out[2 + i] = wd::team_world_pe(team, i);
  }
}

DEVICE_TEST(numbers, "a kernel knows the members of a team as the host does") {
  const Array<int> out(static_cast<std::size_t>(suite::pe_count()) + 2, suite::Where::Own);
  for_teams([&](const TestTeam& team, const char* name) {
    if (!team.is_member()) {
      return;
    }
    describe<<<1, 1>>>(team.on_device(), out.get());
    suite::require_cuda(cudaDeviceSynchronize(), name);
    const std::vector<int> got = out.read();
    bool is_right =
        got[0] == weft_team_pe(team.on_host()) && got[1] == weft_team_pe_count(team.on_host());
    for (int i = 0; is_right && i < got[1]; ++i) {
      is_right = got[static_cast<std::size_t>(i) + 2] ==
                 weft_team_translate(team.on_host(), i, WEFT_TEAM_WORLD);
    }
    if (!is_right) {
      suite::fail("team %s: PE %d of %d is not so on the host", name, got[0], got[1]);
    }
  });
}

// ---- sync and barrier

struct Meeting {
  wd::Team team;
  std::uint32_t* row;      // symmetric: two for each member
  std::uint64_t* counter;  // symmetric: of arrivals, at the first member
  std::uint32_t rounds;
};

// In each round every member writes to every other; after a barrier all of it is there.
template <typename Scope>
__global__ void barriers(Meeting m, Finding* finding) {
  const auto size = static_cast<std::uint32_t>(wd::team_pe_count(m.team));
  const auto me = static_cast<std::uint32_t>(wd::team_pe(m.team));
  for (std::uint32_t round = 1; round <= m.rounds; ++round) {
    // Two rows, used in turn: a member that is a round ahead writes the other one.
    std::uint32_t* row = m.row + (round % 2) * size;
    for (std::uint32_t i = Scope::rank(); i < size; i += Scope::size()) {
      wd::p(row + me, round * 100 + me, wd::team_world_pe(m.team, static_cast<int>(i)));
    }
    wd::barrier<Scope>(m.team);
    for (std::uint32_t i = Scope::rank(); i < size; i += Scope::size()) {
      suite::expect_equal(finding, round, round * 100 + i, wd::g(row + i, wd::pe()));
    }
  }
}

// Nobody leaves before all have entered: a counter says how many have.
template <typename Scope>
__global__ void syncs(Meeting m, Finding* finding) {
  const auto size = static_cast<std::uint64_t>(wd::team_pe_count(m.team));
  const int first = wd::team_world_pe(m.team, 0);
  for (std::uint64_t round = 1; round <= m.rounds; ++round) {
    if (Scope::rank() == 0) {
      wd::atomic_inc(m.counter, first);
      wd::quiet();
    }
    wd::sync<Scope>(m.team);
    if (Scope::rank() == 0) {
      const std::uint64_t entered = wd::atomic_fetch(m.counter, first);
      suite::expect_equal(finding, round, 1,
                          entered >= size * round && entered < size * (round + 1) ? 1 : 0);
    }
    wd::sync<Scope>(m.team);
  }
}

using Kernel = void (*)(Meeting, Finding*);

struct Shape {
  Kernel kernel;
  std::uint32_t threads;
  const char* name;
};

void meet_in_teams(const std::vector<Shape>& shapes, double rounds) {
  for_teams([&](const TestTeam& team, const char* name) {
    Array<std::uint32_t> row(2 * static_cast<std::size_t>(suite::pe_count()));
    Array<std::uint64_t> counter(1);
    const suite::Findings findings;
    for (const Shape& shape : shapes) {
      row.fill(0);
      counter.fill(0);
      suite::require_weft(weft_barrier_all(), name);
      if (team.is_member()) {
        shape.kernel<<<1, shape.threads>>>(
            {team.on_device(), row.get(), counter.get(), suite::turns(rounds)}, findings.get());
      }
      suite::finish(name);
      findings.report((std::string(name) + ", " + shape.name).c_str());
    }
  });
}

DEVICE_TEST(
    barrier,
    "after a barrier of a team all that its members did before is there, round after round") {
  meet_in_teams({{&barriers<wd::Thread>, 1, "thread"},
                 {&barriers<wd::Warp>, 32, "warp"},
                 {&barriers<wd::Block>, 256, "block"}},
                10000);
}

DEVICE_TEST(sync,
            "nobody leaves a sync of a team before all members have entered, round after round") {
  meet_in_teams({{&syncs<wd::Thread>, 1, "thread"},
                 {&syncs<wd::Warp>, 32, "warp"},
                 {&syncs<wd::Block>, 256, "block"}},
                5000);
}

// Halves of the job that meet by themselves while nobody else does, then all together, then again.
__global__ void in_turns(wd::Team half,
                         std::uint64_t* counter,
                         std::uint32_t rounds,
                         Finding* finding) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    wd::sync<wd::Warp>(half);
    if (wd::Warp::rank() == 0) {
      wd::atomic_inc(counter, 0);
    }
    wd::barrier_all<wd::Warp>();
    if (wd::Warp::rank() == 0) {
      suite::expect_equal(finding, round, static_cast<std::uint64_t>(wd::pe_count()) * round,
                          wd::atomic_fetch(counter, 0));
    }
    wd::barrier_all<wd::Warp>();
  }
}

DEVICE_TEST(overlapping, "teams that share PEs meet in turns and do not mix up their rounds") {
  const int pes = suite::pe_count();
  const TestTeam even = TestTeam::split({0, 2, (pes + 1) / 2});
  const TestTeam odd = TestTeam::split({pes > 1 ? 1 : 0, 2, pes > 1 ? pes / 2 : 1});
  const Array<std::uint64_t> counter(1);
  const suite::Findings findings;
  const TestTeam& mine = even.is_member() ? even : odd;
  in_turns<<<1, 32>>>(mine.on_device(), counter.get(), suite::turns(5000), findings.get());
  suite::finish("meeting");
  findings.report("halves, then all");
}

}  // namespace
