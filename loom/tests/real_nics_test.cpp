// Where the real providers surprise a client: what they refuse, what they do not protect, and which
// error says what. docs/LOOM.md names the source of each.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "loom/tests/on_fabric.hpp"

namespace loom::test {
namespace {

class RealNics : public OnFabric {};

// Whether a completion queue has a descriptor, for hints with these capabilities too.
bool can_sleep(std::uint64_t caps = 0) {
  const Info hints = wide_hints();
  hints->caps |= caps;
  const Info info = offered(hints.get());
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_cq* queue = nullptr;
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  EXPECT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  fi_cq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  const int code = fi_cq_open(domain, &attributes, &queue, nullptr);
  EXPECT_TRUE(code == 0 || code == -FI_ENOSYS);
  if (code == 0) {
    fi_close(&queue->fid);
  }
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  return code == 0;
}

TEST_F(RealNics, RefuseRmaOfAnEndpointThatTheTargetDoesNotKnow) {
  settings().known_peers = 1;
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.add(b);
  a.memory()[0] = std::byte{1};
  const int refused = kind().refuses_unknown ? FI_ENOTCONN : 0;
  EXPECT_EQ(write_to(a, to, b).error, refused);
  EXPECT_EQ(b.memory()[0], kind().refuses_unknown ? std::byte{0} : std::byte{1});
  ASSERT_EQ(fi_read(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, b.remote(0), b.key(),
                    nullptr),
            0);
  EXPECT_EQ(a.next().value_or(Ended{}).error, refused);
  // Messages need no address.
  ASSERT_EQ(b.receive(0, 4096, nullptr), 0);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, nullptr), 0);
  EXPECT_EQ(b.next(5, &a).value_or(Ended{.error = 1}).error, 0);
  EXPECT_EQ(a.next(5, &b).value_or(Ended{.error = 1}).error, 0);
  const fi_addr_t back = b.add(a);
  EXPECT_EQ(write_to(a, to, b).error, 0);
  b.remove(back);
  EXPECT_EQ(write_to(a, to, b).error, refused);
}

TEST_F(RealNics, RefuseANewEndpointInThePlaceOfAKnownOne) {
  settings().known_peers = 1;
  Client b({.nic = 1});
  fi_addr_t old = FI_ADDR_NOTAVAIL;
  {
    const Client a;
    old = b.add(a);
  }
  Client c;
  const fi_addr_t to = c.add(b);
  EXPECT_EQ(write_to(c, to, b).error, kind().refuses_unknown ? FI_ENOTCONN : 0);
  static_cast<void>(b.add(c));
  b.remove(old);  // which is no longer in that place
  EXPECT_EQ(write_to(c, to, b).error, 0);
}

TEST_F(RealNics, SayThatTheirQueuesAreGuardedAlsoWhereTheyAreNot) {
  const Info info = offered(wide_hints().get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
}

// 64 immediates for a queue of 16 entries that nobody reads meanwhile: how many are read then, and
// whether it broke.
struct Flooded {
  int got = 0;
  bool is_broken = false;
};

Flooded flood(bool keeps) {
  Client a;
  Client b({.nic = 1, .queue_entries = 16});
  const fi_addr_t to = a.meet(b);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(a.write(to, b, 8, i), 0);
  }
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(a.next());
  }
  if (!keeps) {
    move_arrivals(b);
  }
  Flooded flooded;
  while (const auto ended = b.next(keeps && flooded.got < 64 ? 5 : 0.2)) {
    if (ended->error != 0) {
      flooded.is_broken = ended->error == FI_EOVERRUN;
      break;
    }
    ++flooded.got;
  }
  return flooded;
}

TEST_F(RealNics, BreakLoseOrKeepWhatAFullQueueHasNoRoomFor) {
  if (!kind().writes_carry_data) {
    GTEST_SKIP() << "no immediate data with writes";
  }
  for (const Overrun overrun : {Overrun::Delays, Overrun::Breaks, Overrun::Loses}) {
    settings().strict_queues = static_cast<std::uint64_t>(overrun);
    const bool keeps = kind().guards_queues || overrun == Overrun::Delays;
    const Flooded flooded = flood(keeps);
    EXPECT_EQ(flooded.is_broken, !keeps && overrun == Overrun::Breaks);
    if (!flooded.is_broken) {
      EXPECT_EQ(flooded.got, keeps ? 64 : 16);
    }
  }
}

TEST_F(RealNics, TakeAPostedReceiveForImmediateDataWhereItIsNotUnsolicited) {
  if (!kind().data_may_take_receives) {
    GTEST_SKIP() << "the provider has receives of its own, or no immediate data";
  }
  const ScopedVariable off("FI_EFA_USE_UNSOLICITED_WRITE_RECV", "0");
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  int context = 0;
  ASSERT_EQ(b.receive(4096, 4096, &context), 0);
  ASSERT_EQ(a.write(to, b, 64, 0x77), 0);
  EXPECT_EQ(a.next().value_or(Ended{.error = -1}).error, 0);
  const auto told = b.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->context, &context);
  EXPECT_EQ(told->data, 0x77U);
  EXPECT_EQ(told->flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  // Without one the sender tries again without an end.
  ASSERT_EQ(a.write(to, b, 64, 0x78), 0);
  EXPECT_FALSE(a.next(0.1, &b));
  EXPECT_GT(fabric().nics[1].counters.rx_drops.load(kRelaxed), 0U);
  ASSERT_EQ(b.receive(4096, 4096, nullptr), 0);
  EXPECT_EQ(a.next(5, &b).value_or(Ended{.error = -1}).error, 0);
  EXPECT_EQ(b.next().value_or(Ended{}).data, 0x78U);
}

TEST_F(RealNics, HoldUpImmediateDataThatTheProviderOfItsTargetDoesNotRead) {
  if (kind().connection_receives == 0) {
    GTEST_SKIP() << "no connections";
  }
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  constexpr int kAll = 200;
  for (int i = 0; i < kAll; ++i) {
    ASSERT_EQ(a.write(to, b, 8, i), 0);
  }
  int ended = 0;
  for (; ended < static_cast<int>(kind().connection_receives); ++ended) {
    ASSERT_TRUE(a.next());
  }
  EXPECT_FALSE(a.next(0.2));
  for (int i = 0; i < kAll; ++i) {
    ASSERT_TRUE(b.next(5, &a));
  }
  for (; ended < kAll; ++ended) {
    ASSERT_TRUE(a.next(5, &b));
  }
}

TEST_F(RealNics, CarryDataByFiWritedataWhereThatIsAskedFor) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  const auto post = [&] {
    return fi_writedata(a.endpoint(), a.memory().data(), 64, a.descriptor(), 0x1122, to,
                        b.remote(0), b.key(), &a);
  };
  if (!kind().writes_carry_data) {
    EXPECT_EQ(post(), -FI_ENOSYS);
  }
  const ScopedVariable on("FI_CXI_ENABLE_WRITEDATA", "1");
  ASSERT_EQ(post(), 0);
  EXPECT_EQ(a.next(5, &b).value_or(Ended{.error = -1}).context, &a);
  const auto told = b.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->data, 0x1122U);
  EXPECT_EQ(told->context, nullptr);
  // The other call refuses it all the same.
  EXPECT_EQ(a.write(to, b, 64, 0x1122), kind().writes_carry_data ? 0 : -FI_EBADFLAGS);
}

TEST_F(RealNics, GiveUpUnsolicitedReceivesOnlyForClientsThatHaveBuffersInstead) {
  constexpr int kUseUnsolicited = -(0xefa << 16) + 8;
  const Client a;
  const bool off = false;
  const int code =
      fi_setopt(&a.endpoint()->fid, FI_OPT_ENDPOINT, kUseUnsolicited, &off, sizeof(off));
  const bool knows = kind().address_format == FI_ADDR_EFA;
  EXPECT_EQ(code, !knows ? -FI_ENOPROTOOPT : kind().data_may_take_receives ? -FI_EOPNOTSUPP : 0);
  // Nor is the fabric offered for RMA where the device has no such receives.
  settings().unsolicited = 0;
  const Info hints = wide_hints();
  const Info without = offered(hints.get());
  EXPECT_EQ(without != nullptr && without->fabric_attr->name == kind().name,
            !kind().data_may_take_receives);
  hints->mode |= FI_RX_CQ_DATA;
  const Info with = offered(hints.get());
  ASSERT_NE(with, nullptr);
  EXPECT_EQ(with->fabric_attr->name, kind().name);
  EXPECT_EQ((with->mode & FI_RX_CQ_DATA) != 0, kind().data_may_take_receives);
}

TEST_F(RealNics, CloseNothingBeforeWhatBelongsToIt) {
  Client a;
  const bool has_bound_regions = (kind().mr_mode & FI_MR_ENDPOINT) != 0;
  for (fid* object : {&a.queue()->fid, &a.vector()->fid, &a.domain()->fid, &a.fabric()->fid}) {
    EXPECT_EQ(fi_close(object), -FI_EBUSY);
  }
  if (has_bound_regions) {
    EXPECT_EQ(fi_close(&a.endpoint()->fid), -FI_EBUSY);
  }
  for (fid* object : a.in_closing_order()) {
    EXPECT_EQ(fi_close(object), 0);
  }
  a.forget();
}

TEST_F(RealNics, HaveOrderAndShmOnlyAsAskedFor) {
  const Info hints = wide_hints();
  Info info = offered(hints.get());
  EXPECT_EQ(info->tx_attr->msg_order, kind().orders_unasked ? kind().message_order : 0);
  hints->tx_attr->msg_order = kind().message_order & FI_ORDER_SAS;
  info = offered(hints.get());
  EXPECT_EQ(info->tx_attr->msg_order & FI_ORDER_SAS, kind().message_order & FI_ORDER_SAS);

  EXPECT_EQ(can_sleep(), !kind().has_protocol);
  {
    const ScopedVariable off("FI_EFA_ENABLE_SHM_TRANSFER", "0");
    EXPECT_TRUE(can_sleep());
    settings().libfabric = version_of(2, 2);
    EXPECT_EQ(can_sleep(), kind().address_format != FI_ADDR_EFA);
    settings().libfabric = version_of(2, 6);
  }
  EXPECT_TRUE(can_sleep(FI_REMOTE_COMM));
  EXPECT_EQ(can_sleep(FI_REMOTE_COMM | FI_LOCAL_COMM), !kind().has_protocol);
}

TEST_F(RealNics, MayLackEfaDirectOnANodeAndThenDoNotUnderstandIt) {
  if (persona().kinds.size() == 1) {
    GTEST_SKIP() << "one fabric only";
  }
  settings().timeout_ns = 50'000'000;
  Client direct;
  settings().direct_nodes = 0;
  const Info info = offered(wide_hints().get());
  for (const fi_info* one = info.get(); one != nullptr; one = one->next) {
    EXPECT_STREQ(one->fabric_attr->name, "efa");
    EXPECT_STREQ(one->fabric_attr->prov_name, "efa");
  }
  Client other({.nic = 1});
  const fi_addr_t to = direct.meet(other);
  const fi_addr_t back = other.add(direct);
  // What the device acknowledges, the protocol drops.
  ASSERT_EQ(other.receive(0, 4096, nullptr), 0);
  ASSERT_EQ(
      fi_send(direct.endpoint(), direct.memory().data(), 64, direct.descriptor(), to, nullptr), 0);
  EXPECT_EQ(direct.next(5, &other).value_or(Ended{.error = -1}).error, 0);
  EXPECT_FALSE(other.next(0.05));
  // A handshake that nobody answers.
  EXPECT_EQ(write_to(other, back, direct).error, FI_EHOSTUNREACH);
}

// What a queue has that was opened for so many.
std::size_t queue_entries(const Client& client, std::size_t asked) {
  fi_cq_attr attributes{};
  attributes.size = asked;
  fid_cq* queue = nullptr;
  EXPECT_EQ(fi_cq_open(client.domain(), &attributes, &queue, nullptr), 0);
  fi_close(&queue->fid);
  return attributes.size;
}

TEST_F(RealNics, HaveTheSizesOfTheirQueues) {
  const Client a;
  const bool is_efa_rdm = kind().has_protocol;
  EXPECT_EQ(queue_entries(a, 100), is_efa_rdm ? 8192U : 100U);
  EXPECT_EQ(queue_entries(a, 20'000), 20'000U);
  settings().queue_entries = 0;
  EXPECT_EQ(queue_entries(a, 0), kind().address_format == FI_ADDR_CXI ? 131'072U
                                 : is_efa_rdm                         ? 8192U
                                 : kind().orders_unasked              ? 65'536U
                                                                      : 12'288U);
  settings().queue_entries = 500;
  EXPECT_EQ(queue_entries(a, 0), 500U);
}

TEST_F(RealNics, KnowTheOptionsForGpuMemoryThatTheyKnow) {
  constexpr int kCudaApiPermitted = 10;
  const Client a;
  const auto set = [&](int name, auto value) {
    return fi_setopt(&a.endpoint()->fid, FI_OPT_ENDPOINT, name, &value, sizeof(value));
  };
  const bool is_efa = kind().address_format == FI_ADDR_EFA;
  EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, int{FI_HMEM_P2P_REQUIRED}), is_efa ? 0 : -FI_ENOPROTOOPT);
  EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, int{FI_HMEM_P2P_DISABLED}), !is_efa ? -FI_ENOPROTOOPT
                                                                : kind().has_protocol
                                                                    ? 0
                                                                    : -FI_EOPNOTSUPP);
  EXPECT_EQ(set(kCudaApiPermitted, false), is_efa ? 0 : -FI_EOPNOTSUPP);
}

TEST_F(RealNics, RefuseAnInjectedWriteWithTheErrorOfTheirVersion) {
  settings().libfabric = version_of(2, 7);
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  EXPECT_EQ(a.write(to, b, 32, {}, FI_INJECT), kind().injects_writes ? 0 : -FI_EINVAL);
}

// ---- fork() on an old kernel

// The status of a child that opens a NIC, and forks; the grandchild reads registered memory if it
// `reads`.
int status_of_forking_child(bool reads) {
  const pid_t child = ::fork();
  if (child == 0) {
    Client mine({.nic = 1});
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      const volatile std::byte* byte = &mine.memory()[mine.memory().size() / 2];
      ::_exit(reads && *byte != std::byte{} ? 1 : 0);
    }
    int status = -1;
    ::waitpid(grandchild, &status, 0);
    ::_exit(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(RealNics, EndAProcessThatForksWithoutForkSupport) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a process with threads";
#endif
  const bool is_efa = kind().address_format == FI_ADDR_EFA;
  EXPECT_EQ(status_of_forking_child(true), 0);
  settings().old_kernel = 1;
  // Not by the signal: other providers of libfabric catch it.
  EXPECT_EQ(status_of_forking_child(true) != 0, is_efa);
  const ScopedVariable efa("FI_EFA_FORK_SAFE", "1");
  const ScopedVariable verbs("RDMAV_FORK_SAFE", "1");
  const ScopedVariable cxi("CXI_FORK_SAFE", "1");
  EXPECT_EQ(status_of_forking_child(false), 0);
  // Registered memory is not there in the child.
  EXPECT_NE(status_of_forking_child(true), 0);
}

}  // namespace
}  // namespace loom::test
