// The algorithms between nodes with PEs as threads, each on a node of its own, over a transport
// that carries operations out at once and notes them: no NIC is needed, and many nodes are cheap.
#include "src/collectives/between_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/collectives/agreed.hpp"
#include "src/collectives/algorithms.hpp"
#include "src/collectives/node_share.hpp"
#include "src/transport/atomic_update.hpp"
#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using collectives::Team;
using testing::run_pes;
using namespace transport;

struct Post {
  OperationKind kind = OperationKind::Get;
  Pe by;
  Pe of;
  const void* local = nullptr;
};

std::mutex posts_mutex;
std::vector<Post> posts;

std::vector<Post> take_posts() {
  const std::lock_guard lock(posts_mutex);
  return std::exchange(posts, {});
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
    {
      const std::lock_guard lock(posts_mutex);
      posts.push_back(
          {.kind = operation.kind, .by = me_, .of = operation.peer, .local = operation.local});
    }
    std::byte* remote = at(operation, operation.remote);
    if (operation.kind == OperationKind::Get) {
      std::memcpy(operation.local, remote, operation.bytes);
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

bool is_registered(runtime::Runtime& runtime, const void* local) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(local) -
                                                 runtime.rma().heap().control());
  return offset < collectives::kControlBytes;
}

TEST(BetweenNodes, NotesAreReadFromTheNextOneOnIntoRegisteredMemory) {
  constexpr std::uint32_t kPes = 7;
  std::vector<std::vector<std::uint32_t>> order(kPes);
  static_cast<void>(take_posts());
  run_on_nodes(kPes, 1, [&](runtime::Runtime& runtime) {
    std::uint64_t mine = runtime.pe().value;
    std::array<std::uint64_t, kPes> all{};
    ASSERT_EQ(collectives::Collectives::exchange(runtime.collectives().world(),
                                                 {"test", std::as_bytes(std::span(&mine, 1)),
                                                  std::as_writable_bytes(std::span(all))}),
              Status::Ok);
    const std::lock_guard lock(posts_mutex);
    for (const Post& post : posts) {
      if (post.kind == OperationKind::Get && post.by == runtime.pe()) {
        order[post.by.value].push_back(post.of.value);
        EXPECT_TRUE(is_registered(runtime, post.local));
      }
    }
  });
  for (std::uint32_t pe = 0; pe < kPes; ++pe) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t k = 1; k < kPes; ++k) {
      expected.push_back((pe + k) % kPes);
    }
    EXPECT_EQ(order[pe], expected) << "PE " << pe;
  }
}

// On 75 nodes the tree has three levels. A round has one value and one answer for each node but the
// root, whatever the number of nodes is.
TEST(BetweenNodes, PesThatAgreeReadNothingAndTellTheirNeighboursInATreeAlone) {
  constexpr std::uint32_t kPes = 75;
  run_on_nodes(kPes, 1, [&](runtime::Runtime& runtime) {
    const collectives::CollectiveRequest mine{.kind = 1, .bytes = 64};
    ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
    if (runtime.pe() == Pe(0)) {
      static_cast<void>(take_posts());
    }
    ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
    auto all = collectives::comparison_of(mine, runtime.pe().value);
    ASSERT_EQ(collectives::agree(
                  runtime.collectives().world(), all,
                  [](auto& into, const auto& from) { collectives::fold(into, from); }, "test"),
              Status::Ok);
    EXPECT_FALSE(all.differs);
    EXPECT_EQ(all.first, mine);
    ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
    if (runtime.pe() == Pe(0)) {
      const std::vector<Post> seen = take_posts();
      EXPECT_EQ(std::ranges::count(seen, OperationKind::Get, &Post::kind), 0);
      EXPECT_EQ(std::ranges::count(seen, OperationKind::PutSignal, &Post::kind), 2 * (kPes - 1));
      const auto from_root = [](const Post& post) {
        return post.by == Pe(0) && post.kind == OperationKind::PutSignal;
      };
      EXPECT_EQ(std::ranges::count_if(seen, from_root), collectives::kTreeArity);
    }
  });
}

// One node that is a tree, several such nodes, and trees of nodes; each call back to back, with a
// slow PE that is the last of a branch or the root.
TEST(BetweenNodes, SyncsAllocationsAndTeamsFollowEachOtherOverTreesOfPesAndOfNodes) {
  struct Shape {
    std::uint32_t pes;
    std::uint32_t node_size;
  };

  for (const Shape& shape : {Shape{40, 40}, Shape{51, 17}, Shape{27, 1}, Shape{36, 3}}) {
    std::atomic<std::uint32_t> entered{0};
    run_on_nodes(shape.pes, shape.node_size, [&](runtime::Runtime& runtime) {
      collectives::Collectives& all = runtime.collectives();
      const std::uint32_t me = runtime.pe().value;
      for (std::uint32_t round = 1; round <= 20; ++round) {
        if (me == round * 7 % shape.pes) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        entered.fetch_add(1);
        ASSERT_EQ(all.sync_all(), Status::Ok);
        ASSERT_GE(entered.load(), round * shape.pes);
      }
      const std::uint32_t odd = shape.pes - 2;
      for (const std::uint32_t differs : {shape.pes, odd, shape.pes}) {
        std::string text;
        try {
          runtime.heap().release(runtime.heap().allocate(me == differs ? 128 : 64, 64, false));
        } catch (const Error& error) {
          text = error.what();
        }
        ASSERT_EQ(text, differs == shape.pes
                            ? std::string()
                            : fmt::format("weft_malloc: PE {} asked for 128 bytes, PE 0 for 64; "
                                          "the arguments must be the same on all PEs",
                                          odd));
        const auto half = static_cast<std::int32_t>(shape.pes / 2);
        const auto split = all.split(all.world(), {0, 2, half});
        ASSERT_EQ(split.status, Status::Ok);
        ASSERT_EQ(split.team != nullptr, me % 2 == 0 && me / 2 < shape.pes / 2);
        if (split.team != nullptr) {
          ASSERT_EQ(split.team->sync("test"), Status::Ok);
          ASSERT_EQ(all.destroy(*split.team), Status::Ok);
        }
      }
    });
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
