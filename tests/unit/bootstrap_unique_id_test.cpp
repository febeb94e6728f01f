// Jobs whose PEs know who they are and share an id: here as threads, of which the first to come
// hosts.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/hosted.hpp"
#include "src/bootstrap/socket.hpp"
#include "src/bootstrap/unique_id.hpp"

namespace weft::bootstrap {
namespace {

using testing::HasSubstr;

Config config_of(std::int64_t timeout_s) {
  Config config;
  config.bootstrap_timeout_s = timeout_s;
  return config;
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(UniqueId, BringsItsPesTogether) {
  const std::string id = make_unique_id(Config{});
  EXPECT_LE(id.size(), kUniqueIdBytesMax);
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    threads.emplace_back([pe, id] {
      const auto job = connect_with(config_of(60), {.pe = Pe(pe), .pe_count = 4, .id = id});
      EXPECT_EQ(job->pe(), Pe(pe));
      const auto all = job->allgather(Blob(1, static_cast<std::byte>(pe)));
      ASSERT_EQ(all.size(), 4U);
      EXPECT_EQ(all[3], Blob(1, std::byte{3}));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(UniqueId, NamesTheInterfacesThatTheSettingsAllow) {
  Config loopback = config_of(60);
  loopback.bootstrap_interfaces = "=lo";
  loopback.bootstrap_family = "ipv4";
  EXPECT_THAT(make_unique_id(loopback), HasSubstr(";127.0.0.1:"));
  Config none = config_of(60);
  none.bootstrap_interfaces = "=no-such-interface";
  none.bootstrap_family = "any";
  EXPECT_THAT(message_of([&] { static_cast<void>(make_unique_id(none)); }),
              HasSubstr("WEFT_BOOTSTRAP_INTERFACES==no-such-interface and "
                        "WEFT_BOOTSTRAP_FAMILY=any leave no address of this host"));
}

TEST(InterfaceChoice, TakesBeginningsExactNamesAndExceptions) {
  const InterfaceChoice all("");
  EXPECT_TRUE(all.contains("eth0"));
  const InterfaceChoice beginnings("eth,ib");
  EXPECT_TRUE(beginnings.contains("ib0"));
  EXPECT_FALSE(beginnings.contains("docker0"));
  const InterfaceChoice exact("=eth0,ens5");
  EXPECT_TRUE(exact.contains("ens5"));
  EXPECT_FALSE(exact.contains("eth01"));
  const InterfaceChoice exceptions("^docker,=lo");
  EXPECT_FALSE(exceptions.contains("docker0"));
  EXPECT_TRUE(exceptions.contains("eth0"));
  const InterfaceChoice all_but_one("^=lo");
  EXPECT_FALSE(all_but_one.contains("lo"));
  EXPECT_TRUE(all_but_one.contains("lo1"));
}

TEST(UniqueId, OfFewBytesNamesFewerAddressesAndBringsItsPesTogether) {
  const std::string id = make_unique_id(Config{}, 123);
  EXPECT_LE(id.size(), 123U);
  std::thread other([id] {
    EXPECT_EQ(connect_with(config_of(60), {.pe = Pe(1), .pe_count = 2, .id = id})->pe(), Pe(1));
  });
  EXPECT_EQ(connect_with(config_of(60), {.pe = Pe(0), .pe_count = 2, .id = id})->pe(), Pe(0));
  other.join();
  EXPECT_THAT(message_of([] { static_cast<void>(make_unique_id(Config{}, 42)); }),
              HasSubstr("an id of 42 bytes has no room for an address of this host"));
}

TEST(UniqueId, IsAnotherEachTime) {
  EXPECT_NE(make_unique_id(Config{}), make_unique_id(Config{}));
}

TEST(UniqueId, NamesThePesThatNeverCome) {
  const std::string id = make_unique_id(Config{});
  EXPECT_THAT(
      message_of([&] {
        static_cast<void>(connect_with(config_of(1), {.pe = Pe(1), .pe_count = 3, .id = id}));
      }),
      HasSubstr("PEs 0, 2 did not come within 1 s"));
}

TEST(UniqueId, OfAProcessThatForksBelongsToTheOneThatMadeIt) {
  const std::string id = make_unique_id(Config{});
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_right = message_of([&] {
                            const auto job =
                                connect_with(config_of(20), {.pe = Pe(0), .pe_count = 2, .id = id});
                            job->barrier();
                          }) == "no error";
    ::_exit(is_right ? 0 : 1);
  }
  const auto job = connect_with(config_of(20), {.pe = Pe(1), .pe_count = 2, .id = id});
  job->barrier();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(UniqueId, IsRefusedIfItIsNone) {
  for (const std::string id : {"", "something else", "weft-id-1;", "weft-id-1;secret",
                               "weft-id-1;secret;nowhere", "weft-id-1;secret;h:x"}) {
    EXPECT_NE(
        message_of([&] {
          static_cast<void>(connect_with(config_of(1), {.pe = Pe(0), .pe_count = 1, .id = id}));
        }),
        "no error")
        << id;
  }
}

TEST(Invitation, NamesAsManyAddressesAsFit) {
  HostedJob job;
  job.secret = "secret";
  job.rendezvous.port = 1234;
  EXPECT_EQ(encode_invitation(job, own_hosts(Config{}), 6), "secret");
  HostedJob read;
  decode_invitation(encode_invitation(job, own_hosts(Config{}), 255), read);
  EXPECT_EQ(read.secret, "secret");
  EXPECT_EQ(read.rendezvous.port, 1234);
  decode_invitation("s;10.0.0.1:7;[fd00::1]:7", read);
  EXPECT_EQ(read.rendezvous.host, "10.0.0.1");
  ASSERT_EQ(read.alternatives.size(), 1U);
  EXPECT_EQ(read.alternatives[0].host, "fd00::1");
}

}  // namespace
}  // namespace weft::bootstrap
