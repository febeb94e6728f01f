// What a client of libfabric sees of an emulated NIC, for the persona in LOOM_PERSONA: what is
// offered, what is refused with which error, how data and notices arrive, and what happens when
// something breaks.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loom/src/failures.hpp"
#include "loom/tests/on_fabric.hpp"

namespace loom::test {
namespace {

void fill(Client& client, int value) {
  std::memset(client.memory().data(), value, client.memory().size());
}

bool is_filled(Client& client, std::size_t bytes, int value) {
  const std::vector<std::byte>& memory = client.memory();
  return std::all_of(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(bytes),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

class Provider : public OnFabric {};

// errors_test.cpp has the numbers.
int error_of(Cause cause) {
  return failure_of(cause, kind(), fabric().settings).error;
}

TEST_F(Provider, OffersEachFabricOnEachNicInOrderUnderItsOwnNames) {
  const Info info = offered(wide_hints().get());
  ASSERT_NE(info, nullptr);
  std::size_t count = 0;
  for (const fi_info* one = info.get(); one != nullptr; one = one->next, ++count) {
    const FabricKind& expected = persona().kinds[count / 4];
    EXPECT_EQ(one->fabric_attr->name, std::string(expected.name));
    EXPECT_EQ(one->fabric_attr->prov_name, std::string(persona().provider));
    EXPECT_EQ(one->domain_attr->name,
              nic_name(persona(), count % 4) + std::string(expected.domain_suffix));
    EXPECT_EQ(one->nic->device_attr->name, nic_name(persona(), count % 4));
    EXPECT_STREQ(one->nic->device_attr->firmware, "emulated by Loom");
    EXPECT_EQ(one->domain_attr->cq_data_size, expected.cq_data_bytes);
    EXPECT_EQ(one->tx_attr->inject_size, expected.inject_bytes);
    EXPECT_EQ(one->nic->bus_attr->bus_type, FI_BUS_PCI);
  }
  EXPECT_EQ(count, 4 * persona().kinds.size());
}

// As NIXL asks for the NICs' places: who names no capability need not offer what concerns memory
// that peers reach.
TEST_F(Provider, IsFoundByHintsThatNameOnlyIt) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = ::strdup(std::string(persona().provider).c_str());
  const bool is_offered = std::ranges::any_of(persona().kinds, [](const FabricKind& one) {
    return one.demanded_mode == 0 && (one.mr_mode & FI_MR_LOCAL) == 0;
  });
  EXPECT_EQ(offered(hints.get()) != nullptr, is_offered);
  hints->caps = FI_RMA | FI_REMOTE_WRITE;
  EXPECT_EQ(offered(hints.get()), nullptr);
}

TEST_F(Provider, LeavesOutWhatTheHintsDoNotAllow) {
  Info hints = wide_hints();
  hints->mode = 0;
  const Info without_modes = offered(hints.get());
  const bool has_free_kind = std::ranges::any_of(
      persona().kinds, [](const FabricKind& k) { return k.demanded_mode == 0; });
  EXPECT_EQ(without_modes != nullptr, has_free_kind);

  hints = wide_hints();
  hints->domain_attr->mr_mode = 0;
  EXPECT_EQ(offered(hints.get()), nullptr);

  hints = wide_hints();
  hints->caps |= FI_TAGGED;
  EXPECT_EQ(offered(hints.get()), nullptr);
}

TEST_F(Provider, CopiesOfAnInfoKeepTheNic) {
  const Info info = offered(wide_hints().get());
  const Info copy(fi_dupinfo(info.get()));
  ASSERT_NE(copy->nic, nullptr);
  EXPECT_STREQ(copy->nic->device_attr->name, info->nic->device_attr->name);
}

TEST_F(Provider, AWriteArrivesWholeAndCompletes) {
  Client a;
  Client b({.nic = 1});
  fill(a, 7);
  const fi_addr_t to = a.meet(b);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{8192}, std::size_t{100'001}, std::size_t{1} << 20U}) {
    fill(b, 0);
    ASSERT_EQ(a.write(to, b, bytes), 0);
    const auto ended = a.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->error, 0);
    EXPECT_EQ(ended->flags & (FI_WRITE | FI_RMA), FI_WRITE | FI_RMA);
    EXPECT_TRUE(is_filled(b, bytes, 7));
    EXPECT_FALSE(b.look());  // nobody tells the target
  }
}

TEST_F(Provider, ImmediateDataArrivesAfterTheBytesOrIsRefused) {
  Client a;
  Client b({.nic = 1});
  fill(a, 3);
  const fi_addr_t to = a.meet(b);
  const ssize_t code = a.write(to, b, 50'000, 0x1234);
  if (!kind().writes_carry_data) {
    EXPECT_EQ(code, -FI_EBADFLAGS);
    return;
  }
  ASSERT_EQ(code, 0);
  const auto notice = b.next(5, &a);
  ASSERT_TRUE(notice);
  EXPECT_TRUE(is_filled(b, 50'000, 3));
  EXPECT_EQ(notice->data, 0x1234U);
  EXPECT_EQ(notice->flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
}

TEST_F(Provider, InjectedWritesAreTakenOrRefusedAsTheDeviceDoes) {
  Client a;
  Client b({.nic = 1});
  fill(a, 9);
  const fi_addr_t to = a.meet(b);
  const ssize_t code = a.write(to, b, 32, {}, FI_INJECT);
  EXPECT_EQ(code, kind().injects_writes ? 0 : -FI_ENOSYS);
  if (code == 0) {
    fill(a, 1);  // the source may be reused at once
    ASSERT_TRUE(a.next());
    EXPECT_TRUE(is_filled(b, 32, 9));
  }
}

TEST_F(Provider, AskForItsLimitsAsEfaAnswersThem) {
  constexpr int kInjectMessage = 16;
  constexpr int kInjectRma = 18;
  const Client a;
  std::size_t value = 99;
  std::size_t bytes = sizeof(value);
  const int code = fi_getopt(&a.endpoint()->fid, FI_OPT_ENDPOINT, kInjectRma, &value, &bytes);
  if (kind().address_format != FI_ADDR_EFA) {
    EXPECT_EQ(code, -FI_ENOPROTOOPT);
    return;
  }
  ASSERT_EQ(code, 0);
  EXPECT_EQ(value, kind().injects_writes ? kind().inject_bytes : 0);
  ASSERT_EQ(fi_getopt(&a.endpoint()->fid, FI_OPT_ENDPOINT, kInjectMessage, &value, &bytes), 0);
  EXPECT_EQ(value, kind().inject_bytes);
}

TEST_F(Provider, LocalMemoryNeedsADescriptorWhereTheDeviceAsksForOne) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  const ssize_t code =
      fi_write(a.endpoint(), a.memory().data(), 4096, nullptr, to, b.remote(0), b.key(), nullptr);
  EXPECT_EQ(code, kind().needs_descriptors ? -FI_EINVAL : 0);
  if (code == 0) {
    EXPECT_TRUE(a.next());
  }
}

TEST_F(Provider, AMessageTakesOneBufferAndKeepsItsBytes) {
  Client a;
  Client b({.nic = 1});
  fill(a, 5);
  int tag = 0;
  const fi_addr_t to = a.meet(b);
  ASSERT_EQ(b.receive(4096, 4096, &tag), 0);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 3000, a.descriptor(), to, nullptr), 0);
  const auto got = b.next(5, &a);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->context, &tag);
  EXPECT_EQ(got->bytes, 3000U);
  EXPECT_EQ(got->flags, FI_RECV | FI_MSG);
  EXPECT_EQ(b.memory()[4096], std::byte{5});
  EXPECT_EQ(b.memory()[4096 + 2999], std::byte{5});
  EXPECT_TRUE(a.next(5, &b));
}

TEST_F(Provider, AReceiverWithoutABufferDelaysTheSender) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 100, a.descriptor(), to, nullptr), 0);
  EXPECT_FALSE(a.next(0.05, &b));
  ASSERT_EQ(b.receive(0, 4096, nullptr), 0);
  EXPECT_TRUE(b.next(5, &a));
  EXPECT_TRUE(a.next(5, &b));
  EXPECT_GT(fabric().nics[1].counters.rx_drops.load(kRelaxed), 0U);
}

TEST_F(Provider, TooLongAMessageIsRefused) {
  Client a({.buffer_bytes = std::size_t{1} << 20U});
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  if (kind().message_bytes_max < a.memory().size()) {
    EXPECT_EQ(fi_send(a.endpoint(), a.memory().data(), kind().message_bytes_max + 1, a.descriptor(),
                      to, nullptr),
              -FI_EMSGSIZE);
  }
}

TEST_F(Provider, AReadFetchesThePeersBytes) {
  Client a;
  Client b({.nic = 1});
  fill(b, 11);
  const fi_addr_t from = a.meet(b);
  ASSERT_EQ(fi_read(a.endpoint(), a.memory().data(), 70'000, a.descriptor(), from, b.remote(100),
                    b.key(), nullptr),
            0);
  const auto ended = a.next();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error, 0);
  EXPECT_TRUE(is_filled(a, 70'000, 11));
}

TEST_F(Provider, AKeyThatWasNeverGivenIsAnErrorCompletion) {
  Client a;
  Client b({.nic = 1});
  fill(b, 1);
  fill(a, 2);
  const fi_addr_t to = a.meet(b);

  struct Wrong {
    std::uint64_t address;
    std::uint64_t key;
  };

  for (const Wrong& wrong :
       {Wrong{b.remote(0), b.key() + 1}, Wrong{b.remote(0), b.key() ^ 0x10000U},
        Wrong{b.remote(b.memory().size() - 10), b.key()}, Wrong{b.remote(0) - 8, b.key()}}) {
    ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, wrong.address,
                       wrong.key, &a),
              0);
    const auto ended = a.next();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->error, error_of(Cause::BadKey));
    EXPECT_EQ(ended->context, &a);
  }
  EXPECT_TRUE(is_filled(b, b.memory().size(), 1));
}

TEST_F(Provider, AClosedKeyIsAnErrorAlsoWhenItsSlotIsTakenAgain) {
  Client a;
  std::uint64_t old_key = 0;
  std::uint64_t old_address = 0;
  {
    const Client b({.nic = 1});
    old_key = b.key();
    old_address = b.remote(0);
  }
  Client c({.nic = 1});
  fill(c, 4);
  const fi_addr_t to = a.meet(c);
  ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, old_address, old_key,
                     nullptr),
            0);
  const auto ended = a.next();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error, error_of(Cause::BadKey));
  EXPECT_TRUE(is_filled(c, c.memory().size(), 4));
}

TEST_F(Provider, AnEndpointThatHasGoneIsAnError) {
  Client a;
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  {
    const Client b({.nic = 1});
    to = a.add(b);
    address = b.remote(0);
    key = b.key();
  }
  ASSERT_EQ(
      fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, address, key, nullptr), 0);
  const auto ended = a.next();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error, error_of(Cause::NoEndpoint));
}

TEST_F(Provider, AHandleThatWasNeverGivenIsRefused) {
  Client a;
  const Client b({.nic = 1});
  static_cast<void>(a.add(b));
  for (const fi_addr_t never : {fi_addr_t{77}, FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC}) {
    EXPECT_EQ(a.write(never, b, 64), -FI_EINVAL);
  }
  EXPECT_FALSE(a.next(0.02));
}

TEST_F(Provider, IsNotOfferedToAClientThatIsNewerThanLibfabric) {
  fi_info* info = nullptr;
  EXPECT_EQ(fi_getinfo(FI_VERSION(99, 0), nullptr, nullptr, 0, nullptr, &info), -FI_ENOSYS);
}

TEST_F(Provider, BytesThatAreNoAddressAreNotInserted) {
  const Client a;
  fi_av_attr attributes{};
  fid_av* vector = nullptr;
  ASSERT_EQ(fi_av_open(a.domain(), &attributes, &vector, nullptr), 0);
  const std::array<std::byte, 32> nonsense{};
  fi_addr_t address = 0;
  EXPECT_EQ(fi_av_insert(vector, nonsense.data(), 1, &address, 0, nullptr), 0);
  EXPECT_EQ(address, FI_ADDR_NOTAVAIL);
  fi_close(&vector->fid);
}

TEST_F(Provider, ANicCarriesItsRateAndNoMore) {
  // 1 MiB sixteen times at 8 Gbit/s takes 16.8 ms and the headers of its packets.
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  fabric().nics[0].rate_permille.store(80, kRelaxed);  // of 100 Gbit/s
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(a.write(to, b, std::size_t{1} << 20U), 0);
  }
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(a.next());
  }
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(ms, 16.7);
}

TEST_F(Provider, OperationsOnACutNicFailAndAHealedOneCarriesAgain) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  fabric().nics[1].state.store(NicState::Cut, kRelaxed);
  ASSERT_EQ(a.write(to, b, 1000), 0);
  const auto failed = a.next();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error, error_of(Cause::Unreachable));
  fabric().nics[1].state.store(NicState::Up, kRelaxed);
  ASSERT_EQ(a.write(to, b, 1000), 0);
  const auto ended = a.next();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->error, 0);
}

TEST_F(Provider, ANicWithErrorsFailsThatPartOfItsOperations) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  fabric().nics[0].error_per_million.store(500'000, kRelaxed);
  int errors = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(a.write(to, b, 64), 0);
    errors += a.next().value_or(Ended{}).error == error_of(Cause::Chance) ? 1 : 0;
  }
  EXPECT_GT(errors, 50);
  EXPECT_LT(errors, 150);
}

TEST_F(Provider, AFullEndpointSaysTryAgain) {
  settings().timeout_ns = 3'600'000'000'000;  // no operation ends while others are posted
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  fabric().nics[0].state.store(NicState::Cut, kRelaxed);
  ssize_t code = 0;
  std::size_t posted = 0;
  while (code == 0 && posted < 100'000) {
    code = a.write(to, b, 64);
    posted += code == 0 ? 1 : 0;
  }
  EXPECT_EQ(code, -FI_EAGAIN);
  EXPECT_EQ(posted, a.info().tx_attr->size);
}

TEST_F(Provider, AQueueThatNobodyReadsBreaksOrHoldsUpAsTheDeviceDoes) {
  if (!kind().writes_carry_data) {
    GTEST_SKIP() << "no immediate data with writes";
  }
  Client a;
  Client b({.nic = 1, .queue_entries = 16});
  const fi_addr_t to = a.meet(b);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(a.write(to, b, 8, i), 0);
  }
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(a.next());
  }
  if (!kind().guards_queues) {
    move_arrivals(b);
  }
  int got = 0;
  int broken = 0;
  for (int i = 0; i < 64; ++i) {
    const auto ended = b.next();
    got += ended && ended->error == 0 ? 1 : 0;
    broken += ended && ended->error == FI_EOVERRUN ? 1 : 0;
    if (broken > 0) {
      break;
    }
  }
  if (kind().guards_queues) {
    EXPECT_EQ(got, 64);
  } else {
    EXPECT_EQ(broken, 1);
  }
}

TEST_F(Provider, AClientMaySleepUntilSomethingArrives) {
  const ScopedVariable without_shm("FI_EFA_ENABLE_SHM_TRANSFER", "0");
  Client a;
  Client b({.nic = 1, .wait = FI_WAIT_FD});
  int descriptor = -1;
  ASSERT_EQ(fi_control(&b.queue()->fid, FI_GETWAIT, &descriptor), 0);
  fid* object = &b.queue()->fid;
  ASSERT_EQ(b.receive(0, 4096, nullptr), 0);
  ASSERT_EQ(fi_trywait(b.fabric(), &object, 1), 0);
  const fi_addr_t to = a.meet(b);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, nullptr), 0);
  ASSERT_TRUE(a.next());
  pollfd waited{descriptor, POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 5000), 1);
  EXPECT_TRUE(b.next());
}

// Over a pipe between a process and its child.
template <typename T>
void tell(int pipe, const T& value) {
  ASSERT_EQ(::write(pipe, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
}

template <typename T>
T hear(int pipe) {
  T value{};
  EXPECT_EQ(::read(pipe, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  return value;
}

TEST_F(Provider, AChildHasAnEndpointOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a process with threads";
#endif
  Client a;
  fill(a, 0);
  std::array<int, 2> names{};
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(names.data()), 0);
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Client mine({.nic = 1});
    fill(mine, 6);
    tell(names[1], mine.name());
    static_cast<void>(hear<char>(go[0]));
    const fi_addr_t to = mine.add(a);
    const bool is_right =
        mine.write(to, a, 5000) == 0 && mine.next().value_or(Ended{.error = 1}).error == 0;
    ::_exit(is_right ? 0 : 1);
  }
  static_cast<void>(a.add(hear<Name>(names[0])));
  tell(go[1], 'g');
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_filled(a, 5000, 6));
}

}  // namespace
}  // namespace loom::test
