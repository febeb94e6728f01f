// Memory that a rail cannot register is the operation's error: the operation fails and says so, the
// link stays up, and what waits behind it goes on. Sources that may only be read are sent all the
// same.
#include <gtest/gtest.h>

#include <algorithm>

#include <sys/mman.h>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kHeapBytes = 1U << 20U;
constexpr std::size_t kBytes = 64U << 10U;
constexpr std::uint64_t kSignalAt = 64;
constexpr std::uint64_t kDataAt = 4096;

// `bytes` of fresh pages with the given protection.
class Pages {
 public:
  explicit Pages(int protection)
      : memory_(static_cast<std::byte*>(
                    ::mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
                kBytes) {}

  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  ~Pages() { ::munmap(memory_.data(), memory_.size()); }

  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }

 private:
  std::span<std::byte> memory_;
};

class RefusedMemory : public ::testing::Test {
 protected:
  Operation operation(OperationKind kind, std::span<std::byte> local, std::uint64_t signal = 0) {
    return {.kind = kind,
            .peer = Pe(1),
            .remote = {RegionIndex(0), HeapOffset(kDataAt)},
            .local = local.data(),
            .bytes = local.size(),
            .update = {.code = AtomicCode::Set,
                       .word = {RegionIndex(0), HeapOffset(kSignalAt)},
                       .operand = signal},
            .counter = &counter};
  }

  void post(const Operation& what) {
    ASSERT_EQ(pes[0]->transport->post(what), Status::Ok);
    pes[0]->transport->flush(Pe(1));
  }

  bool quiet() {
    return test::progress_until(pes, [this] { return counter.is_idle(); }, 500'000);
  }

  // All rails are as good as before: what counts is a put that goes out at once.
  void expect_next_works() {
    EXPECT_EQ(pes[0]->transport->peer_status(Pe(1)), Status::Ok);
    for (const RailCounters& rail : pes[0]->counters) {
      EXPECT_EQ(rail.up, 1U);
    }
    std::vector<std::byte> good(kBytes, std::byte{9});
    OperationCounter next;
    Operation put = operation(OperationKind::PutSignal, good, 99);
    put.counter = &next;
    post(put);
    EXPECT_TRUE(test::progress_until(pes, [&] { return next.is_idle(); }, 500'000));
    EXPECT_FALSE(next.has_failed());
    EXPECT_EQ(*pes[1]->word(kSignalAt), 99U);
    EXPECT_EQ(pes[1]->memory[kDataAt + kBytes - 1], std::byte{9});
  }

  test::SimulatedNetwork network{5, {}};
  std::vector<std::unique_ptr<test::RailsPe>> pes =
      test::make_rails_pes(2, kHeapBytes, {}, [this](std::uint32_t) {
        RailsTransport::Rails rails;
        rails.push_back(network.make_rail("nic0"));
        rails.push_back(network.make_rail("nic1"));
        return rails;
      });
  OperationCounter counter;
};

TEST_F(RefusedMemory, FailsAGetAndNothingElse) {
  const Pages pages(PROT_READ | PROT_WRITE);
  network.forbid(pages.memory());
  post(operation(OperationKind::Get, pages.memory()));
  EXPECT_TRUE(quiet()) << "its caller would wait for ever";
  EXPECT_TRUE(counter.has_failed());
  expect_next_works();
}

TEST_F(RefusedMemory, IsCopiedWhereItMayBeRead) {
  const Pages pages(PROT_READ | PROT_WRITE);
  std::ranges::fill(pages.memory(), std::byte{5});
  ASSERT_EQ(::mprotect(pages.memory().data(), kBytes, PROT_READ), 0);
  network.forbid(pages.memory());
  for (const OperationKind kind : {OperationKind::Put, OperationKind::PutSignal}) {
    post(operation(kind, pages.memory(), 3));
    EXPECT_TRUE(quiet());
    EXPECT_FALSE(counter.has_failed());
    EXPECT_EQ(pes[1]->memory[kDataAt + kBytes - 1], std::byte{5});
  }
  EXPECT_EQ(*pes[1]->word(kSignalAt), 3U);
  expect_next_works();
}

TEST_F(RefusedMemory, FailsAPutSignalWithoutItsSignalAndLetsTheNextOnesThrough) {
  const Pages pages(PROT_NONE);
  network.forbid(pages.memory());
  for (int i = 0; i < 3; ++i) {
    post(operation(OperationKind::PutSignal, pages.memory(), 1));
  }
  EXPECT_TRUE(quiet()) << "the target waits for a sequence that never comes";
  EXPECT_TRUE(counter.has_failed());
  EXPECT_EQ(*pes[1]->word(kSignalAt), 0U);
  expect_next_works();
}

TEST_F(RefusedMemory, FailsAnOperationInTheMiddleOfItsPieces) {
  test::SimulatedNetwork small(5, {.rma_bytes_max = 4096});
  pes = test::make_rails_pes(2, kHeapBytes, {}, [&](std::uint32_t) {
    RailsTransport::Rails rails;
    rails.push_back(small.make_rail("nic0"));
    return rails;
  });
  const Pages pages(PROT_READ | PROT_WRITE);
  const auto second_half = pages.memory().subspan(kBytes / 2);
  small.forbid(second_half);
  ASSERT_EQ(::mprotect(second_half.data(), second_half.size(), PROT_NONE), 0);
  post(operation(OperationKind::PutSignal, pages.memory(), 1));
  EXPECT_TRUE(quiet());
  EXPECT_TRUE(counter.has_failed());
  EXPECT_EQ(*pes[1]->word(kSignalAt), 0U);
  expect_next_works();
  pes.clear();
}

}  // namespace
}  // namespace weft::transport::rails
