// Atomics of the persona that has some (cxi): what each operation does to a word of each type, what
// is refused with which error, and that updates from several NICs add up. The other personas refuse
// them all.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "loom/src/persona.hpp"
#include "loom/tests/client.hpp"

namespace loom::test {
namespace {

bool has_atomics() {
  const Persona& persona =
      *find_persona(std::getenv("LOOM_PERSONA"));  // NOLINT(concurrency-mt-unsafe)
  return (persona.kinds.front().caps & FI_ATOMIC) != 0;
}

// A client, its peer, and words at the start of the peer's memory.
class Atomics : public ::testing::Test {
 protected:
  void SetUp() override { to_ = a_.meet(b_); }

  template <typename T>
  void set(T value) {
    std::memcpy(b_.memory().data(), &value, sizeof(T));
  }

  template <typename T>
  [[nodiscard]] T get() {
    T value{};
    std::memcpy(&value, b_.memory().data(), sizeof(T));
    return value;
  }

  int ended() { return a_.next().value_or(Ended{.error = -1}).error; }

  // The word after the operation; its old value is checked.
  template <typename T>
  T fetched(fi_datatype type, fi_op op, T old, T operand) {
    set(old);
    T result{};
    EXPECT_EQ(fi_fetch_atomic(a_.endpoint(), &operand, 1, nullptr, &result, nullptr, to_,
                              b_.remote(0), b_.key(), type, op, nullptr),
              0);
    EXPECT_EQ(ended(), 0);
    EXPECT_EQ(result, old);
    return get<T>();
  }

  template <typename T>
  T compared(fi_datatype type, fi_op op, T old, T operand, T compare) {
    set(old);
    T result{};
    EXPECT_EQ(fi_compare_atomic(a_.endpoint(), &operand, 1, nullptr, &compare, nullptr, &result,
                                nullptr, to_, b_.remote(0), b_.key(), type, op, nullptr),
              0);
    EXPECT_EQ(ended(), 0);
    EXPECT_EQ(result, old);
    return get<T>();
  }

  template <typename T>
  void expect_arithmetic(fi_datatype type) {
    EXPECT_EQ(fetched<T>(type, FI_SUM, 5, 3), T{8});
    EXPECT_EQ(fetched<T>(type, FI_MIN, 5, 3), T{3});
    EXPECT_EQ(fetched<T>(type, FI_MAX, 5, 3), T{5});
    EXPECT_EQ(fetched<T>(type, FI_ATOMIC_WRITE, 5, 3), T{3});
    EXPECT_EQ(fetched<T>(type, FI_ATOMIC_READ, 5, 3), T{5});
    EXPECT_EQ(compared<T>(type, FI_CSWAP, 5, 3, 5), T{3});
    EXPECT_EQ(compared<T>(type, FI_CSWAP, 5, 3, 4), T{5});
    EXPECT_EQ(compared<T>(type, FI_CSWAP_NE, 5, 3, 4), T{3});
    EXPECT_EQ(compared<T>(type, FI_CSWAP_LE, 5, 3, 5), T{3});
    EXPECT_EQ(compared<T>(type, FI_CSWAP_LT, 5, 3, 5), T{5});
    EXPECT_EQ(compared<T>(type, FI_CSWAP_GE, 5, 3, 4), T{5});
    EXPECT_EQ(compared<T>(type, FI_CSWAP_GT, 5, 3, 6), T{3});
    set(T{7});
    const T operand{2};
    EXPECT_EQ(fi_atomic(a_.endpoint(), &operand, 1, nullptr, to_, b_.remote(0), b_.key(), type,
                        FI_SUM, nullptr),
              0);
    EXPECT_EQ(ended(), 0);
    EXPECT_EQ(get<T>(), T{9});
  }

  template <typename T>
  void expect_bits(fi_datatype type) {
    expect_arithmetic<T>(type);
    EXPECT_EQ(fetched<T>(type, FI_BOR, 5, 3), T{7});
    EXPECT_EQ(fetched<T>(type, FI_BAND, 5, 3), T{1});
    EXPECT_EQ(fetched<T>(type, FI_BXOR, 5, 3), T{6});
    EXPECT_EQ(fetched<T>(type, FI_LOR, 5, 0), T{1});
    EXPECT_EQ(fetched<T>(type, FI_LAND, 5, 0), T{0});
    EXPECT_EQ(fetched<T>(type, FI_LXOR, 5, 3), T{0});
    EXPECT_EQ(compared<T>(type, FI_MSWAP, 0x55, 0x22, 0x0f), T{0x52});
  }

  Client a_;
  Client b_{{.nic = 1}};
  fi_addr_t to_ = FI_ADDR_NOTAVAIL;
};

TEST_F(Atomics, AreRefusedWhereTheNicHasNone) {
  if (has_atomics()) {
    GTEST_SKIP() << "this persona has some";
  }
  const std::uint64_t one = 1;
  EXPECT_EQ(fi_atomic(a_.endpoint(), &one, 1, nullptr, to_, b_.remote(0), b_.key(), FI_UINT64,
                      FI_SUM, nullptr),
            -FI_ENOSYS);
  const Info hints = wide_hints();
  hints->caps |= FI_ATOMIC;
  EXPECT_EQ(offered(hints.get()), nullptr);
}

TEST_F(Atomics, DoWhatTheirNamesSayToEachType) {
  if (!has_atomics()) {
    GTEST_SKIP() << "no atomics";
  }
  expect_bits<std::int8_t>(FI_INT8);
  expect_bits<std::uint8_t>(FI_UINT8);
  expect_bits<std::int16_t>(FI_INT16);
  expect_bits<std::uint16_t>(FI_UINT16);
  expect_bits<std::int32_t>(FI_INT32);
  expect_bits<std::uint32_t>(FI_UINT32);
  expect_bits<std::int64_t>(FI_INT64);
  expect_bits<std::uint64_t>(FI_UINT64);
  expect_arithmetic<float>(FI_FLOAT);
  expect_arithmetic<double>(FI_DOUBLE);
  EXPECT_EQ(fetched<std::int32_t>(FI_INT32, FI_MIN, 5, -3), -3);
  EXPECT_EQ(fetched<std::uint8_t>(FI_UINT8, FI_SUM, 255, 2), 1);
}

TEST_F(Atomics, ThatTheNicDoesNotHaveAreRefused) {
  if (!has_atomics()) {
    GTEST_SKIP() << "no atomics";
  }
  const auto code = [&](fi_datatype type, fi_op op, std::size_t count) {
    const std::uint64_t word = 1;
    return fi_atomic(a_.endpoint(), &word, count, nullptr, to_, b_.remote(0), b_.key(), type, op,
                     nullptr);
  };
  EXPECT_EQ(code(FI_UINT64, FI_PROD, 1), -FI_EOPNOTSUPP);
  EXPECT_EQ(code(FI_DOUBLE, FI_BOR, 1), -FI_EOPNOTSUPP);
  EXPECT_EQ(code(FI_LONG_DOUBLE, FI_SUM, 1), -FI_EOPNOTSUPP);
  EXPECT_EQ(code(FI_UINT64, FI_CSWAP, 1), -FI_EOPNOTSUPP);
  EXPECT_EQ(code(FI_UINT64, FI_SUM, 2), -FI_EINVAL);
  std::size_t count = 0;
  EXPECT_EQ(fi_fetch_atomicvalid(a_.endpoint(), FI_INT32, FI_BXOR, &count), 0);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(fi_compare_atomicvalid(a_.endpoint(), FI_FLOAT, FI_MSWAP, &count), -FI_EOPNOTSUPP);
  fi_atomic_attr attributes{};
  EXPECT_EQ(fi_query_atomic(a_.domain(), FI_INT16, FI_SUM, &attributes, FI_FETCH_ATOMIC), 0);
  EXPECT_EQ(attributes.size, 2U);
}

TEST_F(Atomics, WithAWrongKeyAreErrorCompletionsAndTouchNothing) {
  if (!has_atomics()) {
    GTEST_SKIP() << "no atomics";
  }
  set<std::uint64_t>(5);
  const std::uint64_t one = 1;
  for (const std::uint64_t key : {b_.key() + 1, b_.key() ^ 0x10000U}) {
    ASSERT_EQ(fi_atomic(a_.endpoint(), &one, 1, nullptr, to_, b_.remote(0), key, FI_UINT64, FI_SUM,
                        nullptr),
              0);
    EXPECT_EQ(ended(), FI_EIO);
  }
  EXPECT_EQ(get<std::uint64_t>(), 5U);
}

TEST_F(Atomics, OfSeveralNicsAddUp) {
  if (!has_atomics()) {
    GTEST_SKIP() << "no atomics";
  }
  constexpr std::uint64_t kEach = 300;
  Client c{{.nic = 2}};
  const auto add = [&](Client& client, fi_addr_t to) {
    const std::uint64_t one = 1;
    for (std::uint64_t i = 0; i < kEach; ++i) {
      EXPECT_EQ(fi_atomic(client.endpoint(), &one, 1, nullptr, to, b_.remote(0), b_.key(),
                          FI_UINT64, FI_SUM, nullptr),
                0);
      EXPECT_EQ(client.next().value_or(Ended{.error = -1}).error, 0);
    }
  };
  set<std::uint64_t>(0);
  {
    const std::jthread other([&, to = c.meet(b_)] { add(c, to); });
    add(a_, to_);
  }
  EXPECT_EQ(get<std::uint64_t>(), 2 * kEach);
}

}  // namespace
}  // namespace loom::test
