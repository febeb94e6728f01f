// alltoall, fcollect and broadcast in every scope, over teams of several shapes, against a host
// reference; and rows of different collectives with nothing between them.
#include "tests/device/collectives_suite.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::TestTeam;

enum class Kind { Alltoall, Fcollect, Broadcast };

template <Kind kKind, typename Scope, typename T>
__global__ void exchange(wd::Team team, T* dest, const T* source, std::size_t count, int root) {
  if constexpr (kKind == Kind::Alltoall) {
    wd::alltoall<Scope>(team, dest, source, count);
  } else if constexpr (kKind == Kind::Fcollect) {
    wd::fcollect<Scope>(team, dest, source, count);
  } else {
    wd::broadcast<Scope>(team, dest, source, count, root);
  }
}

// What this PE's dest must be.
template <Kind kKind, typename T>
std::vector<T> reference(const TestTeam& team, std::uint64_t seed, std::size_t count, int root) {
  std::vector<T> expected;
  const int size = weft_team_pe_count(team.on_host());
  const auto me = static_cast<std::size_t>(weft_team_pe(team.on_host()));
  for (int i = 0; i < size; ++i) {
    if (kKind == Kind::Broadcast && i != root) {
      continue;
    }
    const int pe = weft_team_translate(team.on_host(), i, WEFT_TEAM_WORLD);
    const std::size_t first = kKind == Kind::Alltoall ? me * count : 0;
    for (std::size_t k = 0; k < count; ++k) {
      expected.push_back(suite::element_of<T>(seed, pe, first + k));
    }
  }
  return expected;
}

template <Kind kKind, typename Scope, typename T>
void check_team(const TestTeam& team, const char* name) {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  Array<T> source(pes * suite::count_max<Scope>());
  Array<T> dest(pes * suite::count_max<Scope>() + 4);
  source.write(suite::elements_of<T>(suite::seed(), suite::me(), source.count()));
  const int size = team.is_member() ? weft_team_pe_count(team.on_host()) : 1;
  for (const std::size_t count : suite::kCounts) {
    if (count > suite::count_max<Scope>()) {
      continue;
    }
    const int root = static_cast<int>(count % static_cast<std::size_t>(size));
    dest.fill(suite::kPoison);
    suite::require_weft(weft_barrier_all(), name);
    if (team.is_member()) {
      suite::launch<Scope>(&exchange<kKind, Scope, T>, team.on_device(), dest.get(), source.get(),
                           count, root);
    }
    suite::finish(name);
    if (team.is_member()) {
      suite::compare(dest, reference<kKind, T>(team, suite::seed(), count, root),
                     std::string(name) + ", " + suite::scope_name<Scope>() + ", " +
                         std::to_string(sizeof(T)) + " bytes x " + std::to_string(count));
    }
  }
}

template <Kind kKind>
void check() {
  suite::for_teams([](const TestTeam& team, const char* name) {
    check_team<kKind, wd::Thread, std::uint32_t>(team, name);
    check_team<kKind, wd::Warp, std::uint32_t>(team, name);
    check_team<kKind, wd::Block, std::uint32_t>(team, name);
    check_team<kKind, wd::Grid, std::uint32_t>(team, name);
    check_team<kKind, wd::Block, std::uint8_t>(team, name);
    check_team<kKind, wd::Block, double>(team, name);
    check_team<kKind, wd::Grid, double>(team, name);
  });
}

DEVICE_TEST(alltoall, "alltoall in every scope, over teams of every shape") {
  check<Kind::Alltoall>();
}

DEVICE_TEST(fcollect, "fcollect in every scope, over teams of every shape") {
  check<Kind::Fcollect>();
}

DEVICE_TEST(broadcast, "broadcast from several roots in every scope, over teams of every shape") {
  check<Kind::Broadcast>();
}

// ---- In a row

constexpr std::uint32_t kCalls = 200;
constexpr std::size_t kRoom = 20000;  // elements of a member in the largest call

struct Row {
  std::int64_t* dest;    // a place for each call
  std::int64_t* source;  // of the largest call
  std::size_t place;     // elements
};

inline __host__ __device__ std::size_t count_of_call(std::uint32_t call) {
  const std::size_t counts[] = {1, 7, 64, 1, 513, 3, 3000, 2};
  return counts[call % 8];
}

// Different calls, each into a place of its own, without a sync between them.
template <typename Scope>
__global__ void calls_in_a_row(wd::Team team, Row row) {
  const int size = wd::team_pe_count(team);
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    std::int64_t* dest = row.dest + (call % 8) * row.place;
    const std::size_t count = count_of_call(call);
    switch (call % 5) {
      case 0:
        wd::alltoall<Scope>(team, dest, row.source, count);
        break;
      case 1:
        wd::reduce<Scope, wd::Sum>(team, dest, row.source, count);
        break;
      case 2:
        wd::broadcast<Scope>(team, dest, row.source, count, static_cast<int>(call) % size);
        break;
      case 3:
        wd::fcollect<Scope>(team, dest, row.source, count);
        break;
      default:
        wd::sync<Scope>(team);
    }
  }
}

std::vector<std::int64_t> reference_of_call(const TestTeam& team, std::uint32_t call) {
  const std::size_t count = count_of_call(call);
  const auto root = static_cast<int>(call) % weft_team_pe_count(team.on_host());
  switch (call % 5) {
    case 0:
      return reference<Kind::Alltoall, std::int64_t>(team, suite::seed(), count, 0);
    case 2:
      return reference<Kind::Broadcast, std::int64_t>(team, suite::seed(), count, root);
    case 3:
      return reference<Kind::Fcollect, std::int64_t>(team, suite::seed(), count, 0);
    default:
      break;
  }
  std::vector<std::int64_t> sum(count);
  for (int i = 0; i < weft_team_pe_count(team.on_host()); ++i) {
    const int pe = weft_team_translate(team.on_host(), i, WEFT_TEAM_WORLD);
    for (std::size_t k = 0; k < count; ++k) {
      sum[k] += suite::element_of<std::int64_t>(suite::seed(), pe, k);
    }
  }
  return sum;
}

// The last 8 calls' results are looked at: 40 calls are a turn of kinds and places.
void compare_places(const TestTeam& team, const std::vector<std::int64_t>& got, std::size_t place) {
  for (std::uint32_t call = kCalls - 8; call < kCalls; ++call) {
    if (call % 5 != 4) {
      const auto expected = reference_of_call(team, call);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (got[(call % 8) * place + i] != expected[i]) {
          suite::fail("call %u: element %zu of %zu is %lld, not %lld", call, i, expected.size(),
                      static_cast<long long>(got[(call % 8) * place + i]),
                      static_cast<long long>(expected[i]));
          return;
        }
      }
    }
  }
}

template <typename Scope>
void run_in_a_row() {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const std::size_t place = 3000 * pes;
  Array<std::int64_t> source(kRoom * pes);
  const Array<std::int64_t> dest(8 * place);
  source.write(suite::elements_of<std::int64_t>(suite::seed(), suite::me(), source.count()));
  suite::for_teams([&](const TestTeam& team, const char* name) {
    suite::require_weft(weft_barrier_all(), name);
    if (team.is_member()) {
      suite::launch<Scope>(&calls_in_a_row<Scope>, team.on_device(),
                           Row{dest.get(), source.get(), place});
    }
    suite::finish(name);
    if (team.is_member()) {
      compare_places(team, dest.read(), place);
    }
    suite::require_weft(weft_barrier_all(), name);
  });
}

DEVICE_TEST(in_a_row,
            "200 different collectives follow each other with nothing between, in every scope") {
  run_in_a_row<wd::Thread>();
  run_in_a_row<wd::Warp>();
  run_in_a_row<wd::Block>();
  run_in_a_row<wd::Grid>();
}

}  // namespace
