// The TCP rendezvous with its clients as threads: joining, gathering, strangers, the late, the
// dead.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/rendezvous_thread.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"

namespace weft::bootstrap {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kTimeout =
    20s;  // for waits that must succeed, also under a sanitizer on a busy host

RendezvousServer::Options server_options(std::uint32_t pe_count) {
  return {.pe_count = pe_count, .secret = "secret", .timeout = kTimeout};
}

Address any_port() {
  return {.host = "127.0.0.1", .port = 0, .path = {}};
}

TcpBootstrap::Options client(const RendezvousThread& server,
                             std::uint32_t pe,
                             std::uint32_t count) {
  return {.address = server.address(),
          .secret = "secret",
          .pe = Pe(pe),
          .pe_count = count,
          .timeout = kTimeout};
}

Blob blob_of(std::size_t size, std::uint32_t value) {
  return Blob(size, static_cast<std::byte>(value));
}

// The error that `function` throws; fails the test if it throws none.
template <typename Function>
Error error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error("no error");
}

// Runs one thread for each PE.
template <typename Function>
void run_pes(std::uint32_t count, Function function) {
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < count; ++pe) {
    threads.emplace_back([pe, &function] { function(pe); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// The server is driven by hand where a test looks inside it.
template <typename Condition>
void serve_until(RendezvousServer& server, Condition condition) {
  const auto deadline = Clock::now() + kTimeout;
  while (!condition()) {
    ASSERT_LT(Clock::now(), deadline);
    server.serve(20ms);
  }
}

void gather_in_rounds(const RendezvousThread& server, std::uint32_t pe, std::uint32_t count) {
  TcpBootstrap job(client(server, pe, count));
  EXPECT_EQ(job.pe(), Pe(pe));
  for (std::uint32_t round = 0; round < 5; ++round) {
    const auto all = job.allgather(blob_of(pe * 100 + round, pe));
    ASSERT_EQ(all.size(), count);
    for (std::uint32_t other = 0; other < count; ++other) {
      EXPECT_EQ(all[other], blob_of(other * 100 + round, other));
    }
  }
  job.barrier();
}

TEST(Rendezvous, GivesEveryPeTheBlobsOfAllOverTcp) {
  const RendezvousThread server(any_port(), server_options(8));
  run_pes(8, [&](std::uint32_t pe) { gather_in_rounds(server, pe, 8); });
}

TEST(Rendezvous, WorksOverAUnixSocketToo) {
  const std::string path = testing::TempDir() + "weft-rendezvous-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  {
    const RendezvousThread server({.host = {}, .port = 0, .path = path}, server_options(3));
    run_pes(3, [&](std::uint32_t pe) { gather_in_rounds(server, pe, 3); });
  }
  ::unlink(path.c_str());
}

TEST(Rendezvous, CarriesBlobsLargerThanASocketBuffer) {
  const RendezvousThread server(any_port(), server_options(2));
  run_pes(2, [&](std::uint32_t pe) {
    TcpBootstrap job(client(server, pe, 2));
    const auto all = job.allgather(blob_of(std::size_t{5} << 20U, pe));
    EXPECT_EQ(all[1 - pe], blob_of(std::size_t{5} << 20U, 1 - pe));
  });
}

TEST(Rendezvous, NamesThePesThatDoNotCome) {
  auto options = server_options(4);
  options.timeout = 1s;  // so that the others come in time on a busy machine
  const RendezvousThread server(any_port(), options);
  run_pes(2, [&](std::uint32_t pe) {
    const Error error = error_of([&] { TcpBootstrap(client(server, pe * 2, 4)); });
    EXPECT_EQ(error.status(), Status::Timeout);
    EXPECT_THAT(error.what(), HasSubstr("PEs 1, 3 did not come within 1 s"));
  });
}

TEST(Rendezvous, NamesThePeThatDoesNotComeToALaterRound) {
  auto options = server_options(2);
  options.timeout = 1s;
  const RendezvousThread server(any_port(), options);
  std::promise<void> failed;
  std::future<void> has_failed = failed.get_future();
  run_pes(2, [&](std::uint32_t pe) {
    TcpBootstrap job(client(server, pe, 2));
    if (pe == 1) {
      has_failed.wait();  // then it comes, too late
    }
    const Error error = error_of([&] { job.barrier(); });
    if (pe == 0) {
      failed.set_value();
    }
    EXPECT_THAT(error.what(), HasSubstr("PE 1 did not come within 1 s"));
    // It stays so: the PEs no longer agree on the round.
    EXPECT_THAT(error_of([&] { job.barrier(); }).what(), HasSubstr("PE 1 did not come"));
  });
}

// Serves while a PE, in a thread of its own, does `function`; returns its error, or "no error".
template <typename Function>
std::future<std::string> start_pe(const Function& function) {
  return std::async(std::launch::async, [function]() -> std::string {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  });
}

std::string serve_to_the_end(RendezvousServer& server, std::future<std::string>& pe) {
  serve_until(server, [&] { return pe.wait_for(0s) == std::future_status::ready; });
  return pe.get();
}

std::future<std::string> start_barrier(const RendezvousServer& server, Pe pe, std::uint32_t count) {
  return start_pe([address = server.address(), pe, count] {
    TcpBootstrap({.address = address, .secret = "secret", .pe = pe, .pe_count = count}).barrier();
  });
}

// A PE that joins and dies without a word.
void join_and_die(RendezvousServer& server) {
  FileDescriptor socket = dial(server.address(), Clock::now() + kTimeout);
  Connection connection(std::move(socket), kGatheredBytesMax);
  std::optional<BootstrapFrame> challenge;
  serve_until(server, [&] {
    static_cast<void>(connection.receive());
    challenge = connection.next_frame();
    return challenge.has_value();
  });
  Handshake handshake{.server_nonce = {}, .client_nonce = {}, .pe = Pe(1), .pe_count = 2};
  std::ranges::copy(challenge->payload, handshake.server_nonce.begin());
  FieldWriter hello;
  hello.u32(1).u32(2).raw(handshake.client_nonce).raw(client_proof("secret", handshake));
  connection.send(share_frame(static_cast<std::uint16_t>(Message::Hello), hello.bytes()));
  serve_until(server, [&] {
    static_cast<void>(connection.receive());
    return connection.next_frame().has_value();
  });
}

TEST(Rendezvous, TellsTheOthersWhichPeDied) {
  RendezvousServer server(any_port(), server_options(2));
  auto other = start_barrier(server, Pe(0), 2);
  join_and_die(server);
  EXPECT_THAT(serve_to_the_end(server, other), HasSubstr("PE 1 is lost"));
  EXPECT_EQ(server.job().first_lost(), Pe(1));
  EXPECT_EQ(server.job().failure()->status(), Status::PeerLost);
}

TEST(Rendezvous, TellsThatAPeLeftBeforeARound) {
  const RendezvousThread server(any_port(), server_options(2));
  run_pes(2, [&](std::uint32_t pe) {
    TcpBootstrap job(client(server, pe, 2));
    if (pe == 0) {
      const Error error = error_of([&] { job.barrier(); });
      EXPECT_EQ(error.status(), Status::PeerLost);
      EXPECT_THAT(error.what(), HasSubstr("PE 1 has left the job"));
    }
  });
}

TEST(Rendezvous, TellsThatAPesProcessEndedBeforeItJoined) {
  RendezvousServer server(any_port(), server_options(3));
  auto other = start_barrier(server, Pe(0), 3);
  server.job().note_exit(Pe(2), "exited with status 0");
  EXPECT_THAT(serve_to_the_end(server, other),
              HasSubstr("PE 2 exited with status 0 before it joined"));
}

TEST(Rendezvous, RefusesASecondProcessWithTheSameNumberAndGoesOn) {
  RendezvousServer server(any_port(), server_options(2));
  std::array twins{start_barrier(server, Pe(0), 2), start_barrier(server, Pe(0), 2)};
  const auto is_ready = [](const std::future<std::string>& pe) {
    return pe.wait_for(0s) == std::future_status::ready;
  };
  serve_until(server, [&] { return is_ready(twins[0]) || is_ready(twins[1]); });
  const std::size_t refused = is_ready(twins[0]) ? 0 : 1;  // whichever came second
  EXPECT_THAT(twins[refused].get(), HasSubstr("another process has joined as PE 0 already"));
  auto second = start_barrier(server, Pe(1), 2);
  EXPECT_EQ(serve_to_the_end(server, second), "no error");
  EXPECT_EQ(serve_to_the_end(server, twins[1 - refused]), "no error");
  EXPECT_FALSE(server.job().failure());
}

TEST(Rendezvous, RefusesAPeOfAnotherSizeOfJob) {
  const RendezvousThread server(any_port(), server_options(2));
  const Error error = error_of([&] { TcpBootstrap(client(server, 0, 3)); });
  EXPECT_EQ(error.status(), Status::InvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("a job of 3 PEs, but this job has 2"));
}

TEST(Rendezvous, RefusesAPeBeyondTheJob) {
  const RendezvousThread server(any_port(), server_options(2));
  EXPECT_THAT(error_of([&] { TcpBootstrap(client(server, 5, 2)); }).what(),
              HasSubstr("PEs are 0 to 1"));
}

TEST(Rendezvous, TurnsAWrongSecretAway) {
  const RendezvousThread server(any_port(), server_options(1));
  auto options = client(server, 0, 1);
  options.secret = "guess";
  EXPECT_THAT(error_of([&] { TcpBootstrap{options}; }).what(), HasSubstr("wrong job secret"));
  TcpBootstrap(client(server, 0, 1)).barrier();
}

TEST(Rendezvous, TurnsStrangersAwayWithoutDisturbingTheJob) {
  auto options = server_options(1);
  options.handshake_timeout = 100ms;
  RendezvousServer server(any_port(), options);
  const auto deadline = Clock::now() + kTimeout;
  dial(server.address(), deadline).reset();                         // a port probe
  const FileDescriptor silent = dial(server.address(), deadline);   // says nothing
  const FileDescriptor garbage = dial(server.address(), deadline);  // another protocol
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(garbage.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  const FileDescriptor large = dial(server.address(), deadline);  // claims 4 GiB
  Blob header = encode_frame(static_cast<std::uint16_t>(Message::Hello), {});
  std::fill(header.begin() + 8, header.end(), std::byte{0xff});
  ASSERT_EQ(::send(large.get(), header.data(), header.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(header.size()));
  auto pe = start_barrier(server, Pe(0), 1);
  EXPECT_EQ(serve_to_the_end(server, pe), "no error");
  serve_until(server, [&] { return server.stranger_count() == 4; });
  EXPECT_FALSE(server.job().failure());
}

TEST(Rendezvous, KeepsAPlaceForThePesHoweverManyStrangersCome) {
  RendezvousServer server(any_port(), server_options(1));
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(dial(server.address(), Clock::now() + kTimeout));
    server.serve(0ms);
  }
  EXPECT_LE(server.connection_count(), 65U);
  auto pe = start_barrier(server, Pe(0), 1);
  EXPECT_EQ(serve_to_the_end(server, pe), "no error");
}

// Lowers the limit, and takes every descriptor that is left below it.
class NoFreeFiles {
 public:
  NoFreeFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{.rlim_cur = std::min<rlim_t>(512, before_.rlim_cur),
                     .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
    do {
      taken_.emplace_back(::dup(STDERR_FILENO));
    } while (taken_.back().is_open());
  }

  NoFreeFiles(const NoFreeFiles&) = delete;
  NoFreeFiles& operator=(const NoFreeFiles&) = delete;

  ~NoFreeFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> taken_;
};

TEST(Rendezvous, KeepsConnectionsThatWaitWhereDescriptorsAreUsedUp) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens a pipe to look at memory, and there is no free descriptor";
#endif
  RendezvousServer server(any_port(), server_options(1));
  const FileDescriptor first = dial(server.address(), Clock::now() + kTimeout);
  serve_until(server, [&] { return server.connection_count() == 1; });
  const FileDescriptor second = dial(server.address(), Clock::now() + kTimeout);
  {
    const NoFreeFiles none;
    for (int i = 0; i < 10; ++i) {
      server.serve(20ms);
    }
    EXPECT_EQ(server.connection_count(), 1U);
    EXPECT_EQ(server.stranger_count(), 0U);
  }
  serve_until(server, [&] { return server.connection_count() == 2; });
  auto pe = start_barrier(server, Pe(0), 1);
  EXPECT_EQ(serve_to_the_end(server, pe), "no error");
}

TEST(Rendezvous, SaysHowManyOpenFilesAJobNeedsThatIsTooLargeForTheLimit) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{.rlim_cur = 512, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  const Error error = error_of([&] { RendezvousServer(any_port(), server_options(1000)); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(error.what(), testing::MatchesRegex(
                                "the rendezvous of 1000 PEs needs a connection to each: 10[0-9]+ "
                                "open files are needed, and the limit is 512: .*"));
}

TEST(Rendezvous, DoesNotTrustAHostThatDoesNotKnowTheSecret) {
  // It answers as a rendezvous would, without the proof.
  const Listener listener = listen_on(any_port());
  std::thread host([&] {
    ASSERT_TRUE(wait_ready(listener.socket.get(), POLLIN, Clock::now() + kTimeout));
    Connection connection(accept_from(listener), kHandshakeBytesMax);
    connection.send(share_frame(static_cast<std::uint16_t>(Message::Challenge), Digest{}));
    ASSERT_TRUE(wait_ready(connection.input(), POLLIN, Clock::now() + kTimeout));
    connection.send(share_frame(static_cast<std::uint16_t>(Message::Welcome), Digest{}));
    // Stays until the PE has gone, which may be before the host looks.
    while (wait_ready(connection.input(), POLLIN, Clock::now() + kTimeout) &&
           connection.receive()) {
    }
  });
  const Error error = error_of([&] {
    TcpBootstrap({.address = listener.address, .secret = "secret", .pe = Pe(0), .pe_count = 1});
  });
  host.join();
  EXPECT_THAT(error.what(), HasSubstr("does not know the job's secret"));
}

TEST(Rendezvous, SaysWhatToDoWhenThePortIsInUse) {
  const Listener first = listen_on(any_port());
  const Error error = error_of([&] { RendezvousServer(first.address, server_options(1)); });
  EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("cannot listen on 127.0.0.1:"),
                                           HasSubstr("choose another")));
}

TEST(Rendezvous, SaysThatNobodyListens) {
  Address gone;
  {
    gone = listen_on(any_port()).address;
  }
  const Error error = error_of([&] {
    TcpBootstrap(
        {.address = gone, .secret = "secret", .pe = Pe(0), .pe_count = 1, .timeout = 100ms});
  });
  EXPECT_EQ(error.status(), Status::Timeout);
  EXPECT_THAT(error.what(), HasSubstr("cannot reach the rendezvous at 127.0.0.1:"));
}

}  // namespace
}  // namespace weft::bootstrap
