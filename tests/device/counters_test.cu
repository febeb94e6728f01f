// Collectives of a team that has made very many calls: where its counts pass 32 bits, where those
// with a part for the blocks of a grid wrap, and where the others do (weft/device/control.hpp).
// Every PE sets its words to what they are then, a few calls before, and one PE in turn comes late
// to each call: whoever does not wait for it has the data of the call before.
#include "tests/device/collectives_suite.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;

constexpr std::uint32_t kBefore = 3;  // calls before a count wraps
constexpr std::uint32_t kCalls = 6;

struct Start {
  std::uint64_t calls;
  const char* name;
};

constexpr std::uint64_t kTallyCalls = std::uint64_t{1} << (64 - wd::kTallyShift);
constexpr Start kStarts[] = {{(std::uint64_t{1} << 32U) - kBefore, "at 2^32 calls"},
                             {kTallyCalls - kBefore, "where tallies wrap"},
                             {std::uint64_t{0} - kBefore, "where 64 bits wrap"}};

// As after `calls` calls of each kind.
__global__ void count_calls(wd::Team team, std::uint64_t calls) {
  const wd::TeamState& members = wd::detail::members_of(team);
  wd::TeamControl* control = wd::detail::control_of(members);
  const std::uint64_t whole = wd::detail::whole(calls);
  control->sync_epoch = calls;
  control->exchanges.value = control->broadcasts.value = control->gate.value = whole;
  control->gate_opened = whole;
  control->arrivals.signals.value = control->arrivals.expected = calls;
  control->uneven_arrivals.signals.value = control->uneven_arrivals.expected = calls;
  for (wd::Flag& round : control->rounds) {
    round.value = calls;
  }
  for (wd::Meeting& meeting : control->meetings) {
    meeting.entered.value = whole;
  }
  for (std::uint32_t i = 0; i < wd::kFlatMembersMax; ++i) {
    control->entered[i].value = calls;
    control->broadcast_done[i].value = whole;
    for (wd::Meeting& meeting : control->meetings) {
      meeting.ready[i].value = meeting.done[i].value = whole;
    }
  }
}

__device__ void come_late(std::uint32_t call) {
  if (call % static_cast<std::uint32_t>(wd::pe_count()) == static_cast<std::uint32_t>(wd::pe())) {
    const std::uint64_t start = wd::now_ns();
    while (wd::now_ns() - start < 200'000) {
    }
  }
}

__device__ std::uint32_t element(int pe, std::uint32_t call, std::size_t place) {
  return (static_cast<std::uint32_t>(pe) + 1) * 1'000'000 + call * 1'000 +
         static_cast<std::uint32_t>(place % 997);
}

enum class Kind { Alltoall, Fcollect, Broadcast, Reduce, Uneven };

struct Memory {
  std::uint32_t* dest;
  std::uint32_t* source;
  std::size_t count;            // of each block
  const std::uint64_t* counts;  // as `count`, for each PE
  std::uint64_t* counts_of_all;
};

// Blocks wait for each other before and after what is no call of a grid.
template <typename Scope>
__device__ void meet() {
  if constexpr (std::is_same_v<Scope, wd::Grid>) {
    wd::grid_sync(wd::kWorld);
  } else {
    Scope::sync();
  }
}

template <typename Scope, Kind kKind>
__device__ void make(const Memory& m, int root) {
  const std::uint32_t* source = m.source;
  if constexpr (kKind == Kind::Alltoall) {
    wd::alltoall<Scope>(wd::kWorld, m.dest, source, m.count);
  } else if constexpr (kKind == Kind::Fcollect) {
    wd::fcollect<Scope>(wd::kWorld, m.dest, source, m.count);
  } else if constexpr (kKind == Kind::Broadcast) {
    wd::broadcast<Scope>(wd::kWorld, m.dest, source, m.count, root);
  } else if constexpr (kKind == Kind::Reduce) {
    wd::reduce<Scope, wd::Sum>(wd::kWorld, m.dest, source, m.count);
  } else {
    const std::size_t room = m.count * static_cast<std::size_t>(wd::pe_count());
    wd::alltoallv<Scope>(wd::kWorld, wd::UnevenBlocks<std::uint32_t>{m.dest, room, source, m.counts,
                                                                     m.counts_of_all});
  }
}

// What is at `place` of dest; the blocks of a source follow each other.
template <Kind kKind>
__device__ std::uint32_t expected(const Memory& m,
                                  std::uint32_t call,
                                  int root,
                                  std::size_t place) {
  const auto from = static_cast<int>(place / m.count);
  const std::size_t inside = place % m.count;
  if constexpr (kKind == Kind::Broadcast) {
    return element(root, call, place);
  } else if constexpr (kKind == Kind::Reduce) {
    std::uint32_t sum = 0;
    for (int pe = 0; pe < wd::pe_count(); ++pe) {
      sum += element(pe, call, place);
    }
    return sum;
  } else if constexpr (kKind == Kind::Fcollect) {
    return element(from, call, inside);
  } else {
    return element(from, call, static_cast<std::size_t>(wd::pe()) * m.count + inside);
  }
}

template <typename Scope, Kind kKind>
__global__ void calls_in_a_row(Memory m, Finding* finding) {
  const auto pes = static_cast<std::size_t>(wd::pe_count());
  const bool is_one = kKind == Kind::Broadcast || kKind == Kind::Reduce;
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    const int root = static_cast<int>(call) % wd::pe_count();
    come_late(call);
    for (std::size_t i = Scope::rank(); i < m.count * pes; i += Scope::size()) {
      m.source[i] = element(wd::pe(), call, i);
    }
    meet<Scope>();
    make<Scope, kKind>(m, root);
    for (std::size_t i = Scope::rank(); i < m.count * (is_one ? 1 : pes); i += Scope::size()) {
      const std::uint32_t seen = reinterpret_cast<volatile std::uint32_t*>(m.dest)[i];
      suite::expect_equal(finding, call, expected<kKind>(m, call, root, i), seen);
    }
    meet<Scope>();
  }
}

// `row`, symmetric, has a word for each PE: in each round all write to all.
template <typename Scope>
__global__ void barriers_in_a_row(std::uint32_t* row, Finding* finding) {
  const auto pes = static_cast<std::uint32_t>(wd::pe_count());
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    std::uint32_t* words = row + call * pes;
    come_late(call);
    for (std::uint32_t i = Scope::rank(); i < pes; i += Scope::size()) {
      wd::p(words + wd::pe(), call + 1, static_cast<int>(i));
    }
    wd::barrier_all<Scope>();
    for (std::uint32_t i = Scope::rank(); i < pes; i += Scope::size()) {
      suite::expect_equal(finding, call, call + 1, wd::g(words + i, wd::pe()));
    }
  }
}

// Every block says that it is there, and one of them late.
__global__ void grid_syncs_in_a_row(std::uint32_t* flags, Finding* finding) {
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    std::uint32_t* words = flags + call * gridDim.x;
    if (threadIdx.x == 0) {
      const std::uint64_t start = wd::now_ns();
      while (blockIdx.x == call % gridDim.x && wd::now_ns() - start < 100'000) {
      }
      wd::store_relaxed(words + blockIdx.x, 1U);
    }
    wd::grid_sync(wd::kWorld);
    for (std::uint32_t i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
      suite::expect_equal(finding, call, 1, wd::load_relaxed(words + i));
    }
  }
}

template <typename Run>
void from(const Start& start, const std::string& what, Run&& run) {
  const suite::Findings findings;
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  count_calls<<<1, 1>>>(wd::kWorld, start.calls);
  suite::finish("counting");
  run(findings.get());
  suite::finish(what.c_str());
  findings.report((what + ", " + start.name).c_str());
}

template <typename Scope, Kind kKind>
void check(const char* name, std::size_t count) {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  for (const Start& start : kStarts) {
    const Array<std::uint32_t> source(count * pes);
    const Array<std::uint32_t> dest(count * pes);
    const Array<std::uint64_t> counts_of_all(pes * pes);
    Array<std::uint64_t> counts(pes);
    counts.write(std::vector<std::uint64_t>(pes, count));
    const Memory memory{dest.get(), source.get(), count, counts.get(), counts_of_all.get()};
    const std::string what =
        std::string(name) + " of " + std::to_string(count) + " by a " + suite::scope_name<Scope>();
    from(start, what, [&](Finding* finding) {
      suite::launch<Scope>(&calls_in_a_row<Scope, kKind>, memory, finding);
    });
  }
}

// Few elements go by parcels, many by loads and stores between entering and leaving.
template <typename Scope>
void check_scope(std::size_t many) {
  for (const std::size_t count : {std::size_t{3}, many}) {
    check<Scope, Kind::Alltoall>("alltoall", count);
    check<Scope, Kind::Fcollect>("fcollect", count);
    check<Scope, Kind::Broadcast>("broadcast", count);
    check<Scope, Kind::Reduce>("reduce", count);
  }
  check<Scope, Kind::Uneven>("alltoallv", 3);
}

DEVICE_TEST(thread_calls, "counts of calls wrap: collectives of a thread and of a warp") {
  check_scope<wd::Thread>(100);
  check_scope<wd::Warp>(3000);
}

DEVICE_TEST(block_calls, "counts of calls wrap: collectives of a block") {
  check_scope<wd::Block>(40'000);
}

DEVICE_TEST(grid_calls, "counts of calls wrap: collectives of a grid") {
  check_scope<wd::Grid>(300'000);
}

DEVICE_TEST(barriers, "counts of calls wrap: barriers") {
  for (const Start& start : kStarts) {
    const auto words = static_cast<std::size_t>(suite::pe_count()) * kCalls;
    const auto check_one = [&](const char* what, auto kernel, unsigned blocks, unsigned threads) {
      const Array<std::uint32_t> row(words);
      from(start, what, [&](Finding* finding) {
        suite::require_cuda(wd::launch_collective(kernel, dim3(blocks), dim3(threads), 0, nullptr,
                                                  row.get(), finding),
                            what);
      });
    };
    check_one("barrier by a thread", &barriers_in_a_row<wd::Thread>, 1, 1);
    check_one("barrier by a block", &barriers_in_a_row<wd::Block>, 1, 64);
    check_one("barrier by a grid", &barriers_in_a_row<wd::Grid>, 4, 64);
  }
}

DEVICE_TEST(grid_syncs, "counts of calls wrap: grid_sync") {
  constexpr unsigned kBlocks = suite::kGridBlocks;
  for (const Start& start : kStarts) {
    const Array<std::uint32_t> flags(std::size_t{kCalls} * kBlocks, suite::Where::Own);
    from(start, "grid_sync", [&](Finding* finding) {
      suite::require_cuda(wd::launch_collective(&grid_syncs_in_a_row, dim3(kBlocks), dim3(32), 0,
                                                nullptr, flags.get(), finding),
                          "grid_sync");
    });
  }
}

}  // namespace
