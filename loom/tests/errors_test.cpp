// Which error an operation ends with, by its cause (docs/LOOM.md has the table).
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <optional>

#include "loom/src/failures.hpp"
#include "loom/tests/on_fabric.hpp"

namespace loom::test {
namespace {

// What the persona says, of the three kinds of NICs.
struct Expected {
  Failure efa;
  Failure cxi;
  Failure verbs;

  [[nodiscard]] const Failure& mine() const {
    switch (kind().address_format) {
      case FI_ADDR_EFA:
        return efa;
      case FI_ADDR_CXI:
        return cxi;
      default:
        return verbs;
    }
  }
};

void expect_failure(const std::optional<Ended>& ended, const Expected& expected) {
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error, expected.mine().error);
  EXPECT_EQ(ended->provider_error, expected.mine().status);
}

constexpr Expected kBadKey{.efa = {FI_EINVAL, 7}, .cxi = {FI_EIO, FI_EIO}, .verbs = {FI_EIO, 10}};
constexpr Expected kUnreachable{.efa = {FI_EHOSTUNREACH, 15},
                                .cxi = {FI_EHOSTUNREACH, FI_EHOSTUNREACH},
                                .verbs = {FI_EHOSTUNREACH, FI_EHOSTUNREACH}};
constexpr Expected kSilent{
    .efa = {FI_ECONNABORTED, 13}, .cxi = {FI_EHOSTUNREACH, FI_EHOSTUNREACH}, .verbs = {FI_EIO, 12}};
constexpr Expected kGone{.efa = {FI_ENOTCONN, 9}, .cxi = {FI_EIO, FI_EIO}, .verbs = {FI_EIO, 12}};
constexpr Expected kNoReceive{
    .efa = {FI_ENORX, 10}, .cxi = {FI_EIO, FI_EIO}, .verbs = {FI_EIO, 13}};

class Errors : public OnFabric {
 protected:
  void SetUp() override { settings().timeout_ns = 50'000'000; }
};

TEST_F(Errors, OfAWrongKey) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, b.remote(0),
                     b.key() + 1, nullptr),
            0);
  expect_failure(a.next(), kBadKey);
}

TEST_F(Errors, OfANicThatNeverAnsweredAndOfOneThatNoLongerDoes) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  fabric().nics[1].state.store(NicState::Cut, kRelaxed);
  ASSERT_EQ(a.write(to, b, 64), 0);
  expect_failure(a.next(), kUnreachable);
  fabric().nics[1].state.store(NicState::Up, kRelaxed);
  EXPECT_EQ(write_to(a, to, b).error, 0);
  fabric().nics[1].state.store(NicState::Cut, kRelaxed);
  ASSERT_EQ(a.write(to, b, 64), 0);
  expect_failure(a.next(), kSilent);
}

TEST_F(Errors, OfAnEndpointThatHasGoneComeAtOnce) {
  settings().timeout_ns = 3'600'000'000'000;
  Client a;
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  {
    Client b({.nic = 1});
    to = a.meet(b);
    address = b.remote(0);
    key = b.key();
  }
  ASSERT_EQ(
      fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, address, key, nullptr), 0);
  expect_failure(a.next(), kGone);
}

TEST_F(Errors, OfAReceiverThatNeverHasABuffer) {
  settings().receiver_retries = 2;
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, nullptr), 0);
  expect_failure(a.next(5, &b), kNoReceive);
}

}  // namespace
}  // namespace loom::test
