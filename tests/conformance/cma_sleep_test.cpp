// Who sleeps in the cma transport, who wakes it, and what a peer's garbled description does.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "tests/conformance/cma_pes.hpp"

namespace weft::test {
namespace {

using namespace transport;

constexpr std::uint32_t kLongUs = 20'000'000;
constexpr std::uint64_t kShortNs = 10'000'000'000;

class CmaSleep : public ::testing::Test {
 protected:
  [[nodiscard]] std::uint64_t load_word() {
    return transport::load_word(reinterpret_cast<std::uint64_t*>(pes_.heap(Pe(1))));
  }

  CmaPes pes_{2, 4096, {.is_dead = {}}};
  OperationCounter counter_;
};

TEST_F(CmaSleep, AWakeEndsASleepAndOneThatComesTooEarlyIsNotLost) {
  cma::CmaTransport& me = pes_.transport(Pe(0));
  const std::uint64_t start_ns = now_ns();
  me.wake();
  EXPECT_TRUE(me.wait_for_event(kLongUs));
  EXPECT_FALSE(me.wait_for_event(1000));
  std::jthread waking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    me.wake();
  });
  me.wait_for_event(kLongUs);
  EXPECT_LT(now_ns() - start_ns, kShortNs);
}

TEST_F(CmaSleep, ACommandEndsItsTargetsSleepAndTheAnswerItsSenders) {
  const std::uint64_t start_ns = now_ns();
  std::jthread target([&] {
    while (load_word() == 0) {
      pes_.transport(Pe(1)).wait_for_event(kLongUs);
      pes_.transport(Pe(1)).progress();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(
      pes_.transport(Pe(0)).post({.kind = OperationKind::Atomic,
                                  .peer = Pe(1),
                                  .remote = {},
                                  .bytes = 8,
                                  .update = {.code = AtomicCode::Add, .word = {}, .operand = 1},
                                  .counter = &counter_}),
      Status::Ok);
  while (!counter_.is_idle()) {
    pes_.transport(Pe(0)).wait_for_event(kLongUs);
    pes_.transport(Pe(0)).progress();
  }
  EXPECT_LT(now_ns() - start_ns, kShortNs);
}

TEST(CmaConnect, AGarbledDescriptionNamesThePeThatSentIt) {
  std::vector<std::byte> heap(4096);
  cma::CmaTransport me({}, Pe(0), {{heap.data(), heap.size()}}, cma::Mailbox::create());
  const bootstrap::Blob whole = me.describe();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const bootstrap::Blob part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    try {
      me.connect({{}, {}, part}, {false, false, true});
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("PE 2"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace weft::test
