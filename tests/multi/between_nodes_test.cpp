// The algorithms between nodes with PEs as threads, each on a node of its own, over a transport
// that carries operations out at once and notes what was read: no NIC is needed, and many nodes are
// cheap.
#include "src/collectives/between_nodes.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "src/bootstrap/frame.hpp"
#include "src/collectives/algorithms.hpp"
#include "src/collectives/node_share.hpp"
#include "src/transport/atomic_update.hpp"
#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using collectives::Team;
using testing::run_pes;
using namespace transport;

struct Read {
  Pe by;
  Pe of;
  const void* local = nullptr;
};

std::mutex reads_mutex;
std::vector<Read> reads;

std::vector<Read> take_reads() {
  const std::lock_guard lock(reads_mutex);
  return std::exchange(reads, {});
}

// All PEs are threads of this process: the heap of each is memory of all.
class DirectTransport final : public Transport {
 public:
  DirectTransport(Pe me, std::byte* heap) : me_(me), heap_(heap) {}

  [[nodiscard]] bootstrap::Blob describe() const override {
    return bootstrap::FieldWriter().u64(reinterpret_cast<std::uint64_t>(heap_)).bytes();
  }

  void connect(const std::vector<bootstrap::Blob>& connection_data,
               const std::vector<bool>& /*reached*/) override {
    for (const bootstrap::Blob& blob : connection_data) {
      heaps_.push_back(reinterpret_cast<std::byte*>(bootstrap::FieldReader(blob).u64()));
    }
  }

  [[nodiscard]] bootstrap::Blob add_region(RegionIndex /*index*/,
                                           std::span<std::byte> /*memory*/) override {
    return {};
  }

  void connect_region(RegionIndex /*index*/,
                      const std::vector<bootstrap::Blob>& /*region_data*/) override {}

  void remove_region(RegionIndex /*index*/) override {}

  Status post(const Operation& operation) noexcept override {
    operation.counter->issue();
    std::byte* remote = at(operation, operation.remote);
    if (operation.kind == OperationKind::Get) {
      std::memcpy(operation.local, remote, operation.bytes);
      const std::lock_guard lock(reads_mutex);
      reads.push_back({.by = me_, .of = operation.peer, .local = operation.local});
    } else if (operation.kind != OperationKind::Atomic) {
      std::memcpy(remote, operation.local, operation.bytes);
    }
    if (operation.kind == OperationKind::PutSignal || operation.kind == OperationKind::Atomic) {
      const std::uint64_t old =
          apply_atomic(at(operation, operation.update.word), operation.update);
      if (operation.result != nullptr) {
        *operation.result = old;
      }
    }
    operation.counter->complete(false);
    return Status::Ok;
  }

  void flush(Pe /*peer*/) noexcept override {}

  bool progress() noexcept override { return false; }

  bool wait_for_event(std::uint32_t /*timeout_us*/) noexcept override {
    std::this_thread::yield();
    return false;
  }

  [[nodiscard]] Status peer_status(Pe /*peer*/) const noexcept override { return Status::Ok; }

 private:
  [[nodiscard]] std::byte* at(const Operation& operation, const heap::Place& address) const {
    return heaps_[operation.peer.value] + address.offset.value;
  }

  Pe me_;
  std::byte* heap_;
  std::vector<std::byte*> heaps_;  // by PE
};

constexpr runtime::TransportKind kDirect{
    .name = "direct",
    .is_needed =
        [](const runtime::TransportSite& site) { return site.membership.node_count() > 1; },
    .reaches =
        [](const runtime::TransportSite& site) {
          std::vector<bool> others = site.membership.locals();
          others.flip();
          return others;
        },
    .make = [](const runtime::TransportSite& site) -> std::unique_ptr<Transport> {
      return std::make_unique<DirectTransport>(site.bootstrap.pe(), site.heap.base());
    }};

void run_on_nodes(std::uint32_t pe_count,
                  std::uint32_t node_size,
                  const std::function<void(runtime::Runtime&)>& body) {
  Config config = testing::test_config();
  config.node_size = node_size;
  config.progress_thread = false;
  run_pes(pe_count, body, config, std::span(&kDirect, 1));
}

// The PEs of a job, and the nodes that they are on.
struct Everybody {
  Everybody(std::uint32_t pe_count, std::uint32_t node_size) {
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      members.emplace_back(pe);
      node_of.push_back(pe / node_size);
    }
  }

  std::vector<Pe> members;
  std::vector<std::uint32_t> node_of;  // by PE
};

TEST(BetweenNodes, AnAllocationReadsTheOthersFromTheNextOneOnIntoRegisteredMemory) {
  constexpr std::uint32_t kPes = 7;
  std::vector<const std::byte*> controls(kPes);
  run_on_nodes(kPes, 1, [&](runtime::Runtime& runtime) {
    controls[runtime.pe().value] = runtime.rma().heap().control();
    static_cast<void>(take_reads());
    ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
    static_cast<void>(runtime.heap().allocate(64, 64, false));
  });
  std::vector<std::vector<std::uint32_t>> order(kPes);
  for (const Read& read : take_reads()) {
    order[read.by.value].push_back(read.of.value);
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(read.local) -
                                                   controls[read.by.value]);
    EXPECT_LT(offset, collectives::kControlBytes);
  }
  for (std::uint32_t pe = 0; pe < kPes; ++pe) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t k = 1; k < kPes; ++k) {
      expected.push_back((pe + k) % kPes);
    }
    EXPECT_EQ(order[pe], expected) << "PE " << pe;
  }
}

void sum(void* result, const void* a, const void* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::uint64_t*>(result)[i] =
        static_cast<const std::uint64_t*>(a)[i] + static_cast<const std::uint64_t*>(b)[i];
  }
}

class Trees : public ::testing::TestWithParam<std::uint32_t> {};

// In place and not, with less than a chunk and with several, over trees of one and of several
// levels.
TEST_P(Trees, SumWhatAllPesHave) {
  const std::uint32_t fan_in = GetParam();
  for (const std::uint32_t nodes : {2U, 3U, 9U, 14U}) {
    for (const std::uint32_t node_size : {1U, 2U}) {
      const std::uint32_t pes = nodes * node_size;
      run_on_nodes(pes, node_size, [&](runtime::Runtime& runtime) {
        const Everybody all(pes, node_size);
        Team team(runtime.rma(), runtime.pe(), {collectives::kTeamCountMax - 1, all.members, -1},
                  all.node_of);
        constexpr std::size_t kCountMax = 5000;
        auto* source =
            static_cast<std::uint64_t*>(runtime.heap().allocate(kCountMax * 8, 64, true));
        auto* dest = static_cast<std::uint64_t*>(runtime.heap().allocate(kCountMax * 8, 64, true));
        for (const std::size_t count : {std::size_t{1}, std::size_t{100}, kCountMax}) {
          for (std::uint64_t* result : {dest, source}) {
            for (std::size_t i = 0; i < count; ++i) {
              source[i] = runtime.pe().value + i;
            }
            ASSERT_EQ(team.sync("test"), Status::Ok);
            if (team.members().mate_index() == 0) {
              ASSERT_EQ(
                  collectives::between_nodes::reduce_by_tree(
                      team,
                      {reinterpret_cast<std::byte*>(result), reinterpret_cast<std::byte*>(source)},
                      {sum, 8}, {0, count}, fan_in),
                  Status::Ok);
            }
            ASSERT_EQ(collectives::between_nodes::finish(team, "test"), Status::Ok);
            ASSERT_EQ(team.sync("test"), Status::Ok);
            for (std::size_t i = 0; i < count; ++i) {
              ASSERT_EQ(result[i], std::uint64_t{pes} * (pes - 1) / 2 + pes * i)
                  << nodes << " nodes";
            }
            ASSERT_EQ(team.sync("test"), Status::Ok);
          }
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ByFanIn, Trees, ::testing::Values(1, 2, 8));

// Whatever the number of nodes: either each has a slot for a share, or the tree is taken, which
// needs a few.
TEST(BetweenNodes, AReductionHasRoomOnAnyNumberOfNodes) {
  using collectives::between_nodes::share_count_max;
  for (const std::size_t scratch :
       {std::size_t{12} << 10U, collectives::kTeamScratchBytes, collectives::kWorldScratchBytes}) {
    for (const std::size_t element : {1U, 2U, 4U, 8U, 16U, 32U}) {
      for (std::size_t nodes = 2; nodes < 70'000; ++nodes) {
        const std::size_t line = kCacheLineBytes / element;
        const std::size_t shares = share_count_max(scratch, nodes, element);
        const bool fits = scratch / nodes >= 2 * kCacheLineBytes;
        ASSERT_EQ(shares > 0, fits) << nodes << " nodes, elements of " << element;
        // Shares are rounded up to whole lines, and one line more: they still fit a slot.
        ASSERT_TRUE(shares == 0 || (shares + line) * element <= scratch / nodes);
      }
    }
  }
}

}  // namespace
}  // namespace weft
