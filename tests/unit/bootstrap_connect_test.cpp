// Which bootstrap an environment leads to, torchrun's variables, and the job of threads.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/connect.hpp"
#include "src/bootstrap/in_process.hpp"
#include "src/bootstrap/pmix_bootstrap.hpp"
#include "src/bootstrap/slurm.hpp"
#include "src/bootstrap/torchrun.hpp"

namespace weft::bootstrap {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Lookup from(const Variables& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Variables torchrun_variables() {
  return {{"RANK", "1"},
          {"WORLD_SIZE", "4"},
          {"MASTER_ADDR", "head"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "none"}};
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

Method chosen(const Variables& variables) {
  return choose_method(load_config(from(variables)), from(variables));
}

std::string connect_message(const Variables& variables) {
  return message_of(
      [&] { static_cast<void>(connect(load_config(from(variables)), from(variables))); });
}

TEST(Connect, TakesWhatTheEnvironmentOffers) {
  Variables everything = torchrun_variables();
  EXPECT_EQ(chosen({}), Method::Single);
  EXPECT_EQ(chosen(everything), Method::Torchrun);
  everything["WEFT_RENDEZVOUS"] = "127.0.0.1:1";
  EXPECT_EQ(chosen(everything), Method::Tcp);
}

Variables joined(Variables first, const Variables& more) {
  first.insert(more.begin(), more.end());
  return first;
}

const Variables kPmix{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}};
const Variables kPmi{{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
const Variables kStep{{"SLURM_PROCID", "1"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_STEP_NODELIST", "h[1-2]"},
                      {"SLURM_JOB_ID", "7"},
                      {"SLURM_STEP_ID", "0"}};

// Torchrun inside srun --mpi=pmix: all workers of a node inherit its PMIX_RANK.
TEST(Connect, TakesTheInnerOfTwoLaunchers) {
  EXPECT_EQ(chosen(joined(joined(torchrun_variables(), kPmix), kStep)), Method::Torchrun);
  EXPECT_EQ(chosen(joined(joined(torchrun_variables(), kPmi), kStep)), Method::Torchrun);
  EXPECT_EQ(chosen(joined(kPmi, kStep)), Method::Pmi);
  if (pmix_is_built()) {
    EXPECT_EQ(chosen(joined(joined(kPmix, kPmi), kStep)), Method::Pmix);
  }
}

TEST(Connect, TakesTorchrunsVariablesThatWereSetByHandLast) {
  Variables by_hand = torchrun_variables();
  by_hand.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(chosen(by_hand), Method::Torchrun);
  EXPECT_EQ(chosen(joined(by_hand, kPmi)), Method::Pmi);
  EXPECT_EQ(chosen(joined(by_hand, kStep)), Method::Slurm);
}

TEST(Connect, NeverMakesSeveralJobsOfTheTasksOfOneLauncher) {
  EXPECT_EQ(chosen(kStep), Method::Slurm);
  for (const Variables& started : std::vector<Variables>{{{"OMPI_COMM_WORLD_SIZE", "4"}},
                                                         {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
                                                         {{"FLUX_JOB_SIZE", "4"}}}) {
    EXPECT_THAT(connect_message(started), HasSubstr("WEFT_BOOTSTRAP=single"));
    EXPECT_THAT(connect_message(joined(started, kStep)), HasSubstr("WEFT_BOOTSTRAP=single"));
    EXPECT_EQ(chosen(joined(started, {{"WEFT_BOOTSTRAP", "single"}})), Method::Single);
  }
}

TEST(Connect, AloneUnderALauncherIsAJobOfOne) {
  EXPECT_EQ(chosen({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), Method::Single);
  // A batch script has the job's variables, but is no task of a step.
  EXPECT_EQ(chosen({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), Method::Single);
  EXPECT_EQ(chosen({{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), Method::Single);
  EXPECT_EQ(chosen({{"OMPI_COMM_WORLD_SIZE", "1"}}), Method::Single);
}

TEST(Connect, IsOverruledByWeftBootstrap) {
  Variables variables = torchrun_variables();
  variables["WEFT_RENDEZVOUS"] = "127.0.0.1:1";
  variables["WEFT_BOOTSTRAP"] = "torchrun";
  EXPECT_EQ(chosen(variables), Method::Torchrun);
  variables["WEFT_BOOTSTRAP"] = "single";
  EXPECT_EQ(chosen(variables), Method::Single);
}

TEST(Connect, NamesTheVariablesThatTheChosenMethodLacks) {
  EXPECT_THAT(connect_message({{"WEFT_BOOTSTRAP", "tcp"}}),
              HasSubstr("WEFT_RENDEZVOUS is missing"));
  EXPECT_THAT(
      connect_message({{"WEFT_RENDEZVOUS", "h:1"}, {"WEFT_PE", "0"}, {"WEFT_PE_COUNT", "2"}}),
      HasSubstr("WEFT_JOB_SECRET is missing"));
  EXPECT_THAT(connect_message({{"WEFT_BOOTSTRAP", "torchrun"}}), HasSubstr("RANK is not set"));
  EXPECT_THAT(connect_message({{"WEFT_BOOTSTRAP", "pmix"}}), HasSubstr("WEFT_BOOTSTRAP=pmix"));
}

TEST(Connect, RefusesNumbersThatMakeNoSense) {
  const Variables good{{"WEFT_RENDEZVOUS", "127.0.0.1:1"},
                       {"WEFT_PE", "2"},
                       {"WEFT_PE_COUNT", "2"},
                       {"WEFT_JOB_SECRET", "s"}};
  EXPECT_THAT(connect_message(good), HasSubstr("WEFT_PE=2 is not below WEFT_PE_COUNT=2"));
  Variables no_time = good;
  no_time["WEFT_BOOTSTRAP_TIMEOUT"] = "0";
  EXPECT_THAT(connect_message(no_time), HasSubstr("WEFT_BOOTSTRAP_TIMEOUT=0"));
}

TEST(Connect, RefusesACountThatIsNoneAndANumberBelow0) {
  const Variables rest{{"WEFT_RENDEZVOUS", "127.0.0.1:1"}, {"WEFT_JOB_SECRET", "s"}};
  EXPECT_THAT(connect_message(joined({{"WEFT_PE", "0"}, {"WEFT_PE_COUNT", "0"}}, rest)),
              HasSubstr("WEFT_PE_COUNT=0: a job has 1 to 2147483647 PEs"));
  EXPECT_THAT(connect_message(joined({{"WEFT_PE", "0"}, {"WEFT_PE_COUNT", "3000000000"}}, rest)),
              HasSubstr("WEFT_PE_COUNT=3000000000: a job has 1 to 2147483647 PEs"));
  EXPECT_THAT(connect_message(joined({{"WEFT_PE", "-2"}, {"WEFT_PE_COUNT", "2"}}, rest)),
              HasSubstr("WEFT_PE=-2: PEs are numbered from 0"));
}

TEST(Connect, NeverMakesAJobOfOneOfAPeThatHasNowhereToMeetTheOthers) {
  EXPECT_THAT(connect_message({{"WEFT_PE", "5"}, {"WEFT_PE_COUNT", "2"}}),
              HasSubstr("WEFT_PE=5 is not below WEFT_PE_COUNT=2"));
  EXPECT_THAT(connect_message({{"WEFT_PE", "1"}, {"WEFT_PE_COUNT", "2"}}),
              HasSubstr("WEFT_PE=1 and WEFT_PE_COUNT=2 are set and WEFT_RENDEZVOUS"));
  EXPECT_THAT(connect_message({{"WEFT_PE", "0"}}),
              HasSubstr("WEFT_PE=0 is set and WEFT_PE_COUNT is not"));
  EXPECT_THAT(connect_message({{"WEFT_PE_COUNT", "4"}}),
              HasSubstr("WEFT_PE_COUNT=4 is set and WEFT_PE is not"));
  EXPECT_THAT(connect_message({{"WEFT_PE", "0"}, {"WEFT_PE_COUNT", "0"}}),
              HasSubstr("WEFT_PE_COUNT=0: a job has 1 to"));
  const Variables half{{"WEFT_PE", "5"}};
  EXPECT_EQ(chosen(joined({{"WEFT_BOOTSTRAP", "single"}}, half)), Method::Single);
  EXPECT_EQ(chosen(joined(kStep, half)), Method::Slurm);
  EXPECT_EQ(chosen({{"WEFT_PE", "0"}, {"WEFT_PE_COUNT", "1"}}), Method::Single);
}

TEST(Connect, AloneIsAJobOfOne) {
  const auto job = connect(load_config(from({})), from({}));
  EXPECT_EQ(job->pe_count(), 1U);
  EXPECT_EQ(job->name(), "single");
  const Blob blob(3, std::byte{7});
  EXPECT_EQ(job->allgather(blob), std::vector<Blob>{blob});
}

HostedJob slurm_job(const Variables& more) {
  const Variables variables = joined(more, kStep);
  return parse_slurm_job(load_config(from(variables)), from(variables));
}

TEST(Slurm, MeetsOnTheFirstHostOfTheStep) {
  const HostedJob job = slurm_job({{"WEFT_JOB_SECRET", "mine"}});
  EXPECT_EQ(job.pe, Pe(1));
  EXPECT_EQ(job.pe_count, 4U);
  EXPECT_EQ(job.rendezvous.host, "h1");
  EXPECT_EQ(job.secret, "mine");
  EXPECT_EQ(to_string(job.rendezvous),
            to_string(slurm_job({{"WEFT_JOB_SECRET", "mine"}, {"SLURM_PROCID", "3"}}).rendezvous));
  EXPECT_EQ(
      slurm_job({{"WEFT_JOB_SECRET", "mine"}, {"WEFT_RENDEZVOUS", "other:1234"}}).rendezvous.host,
      "other");
}

TEST(Slurm, TakesAPortOfItsOwnForEachStep) {
  std::set<std::uint16_t> ports;
  for (const char* number : {"1", "2", "3", "4294967290"}) {
    for (const char* step : {"0", "1", "2", "3"}) {
      const HostedJob job = slurm_job(
          {{"WEFT_JOB_SECRET", "mine"}, {"SLURM_JOB_ID", number}, {"SLURM_STEP_ID", step}});
      EXPECT_GE(job.rendezvous.port, 16'384);
      EXPECT_LT(job.rendezvous.port, 32'768);
      ports.insert(job.rendezvous.port);
    }
  }
  EXPECT_EQ(ports.size(), 16U);
}

TEST(Slurm, MeetsAtASocketOfThisUserOnOneHost) {
  const HostedJob job = slurm_job({{"SLURM_STEP_NODELIST", "h7"}});
  EXPECT_THAT(job.rendezvous.path, testing::StartsWith(fmt::format("@weft-{}-", ::geteuid())));
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}) {
    const HostedJob other = slurm_job({{"SLURM_STEP_NODELIST", "h7"}, {name, "1000"}});
    EXPECT_NE(other.rendezvous.path, job.rendezvous.path);
    EXPECT_NE(other.secret, job.secret);
  }
}

TEST(Slurm, AsksForASecretWhereStrangersReachTheRendezvous) {
  EXPECT_THAT(message_of([] { static_cast<void>(slurm_job({})); }),
              testing::AllOf(HasSubstr("export WEFT_JOB_SECRET="), HasSubstr("srun --mpi=pmi2")));
}

TEST(Slurm, RefusesVariablesThatMakeNoSense) {
  for (const auto& [name, value] :
       std::multimap<std::string, std::string>{{"SLURM_PROCID", "4"},
                                               {"SLURM_PROCID", "x"},
                                               {"SLURM_STEP_NUM_TASKS", ""},
                                               {"SLURM_JOB_ID", "-1"},
                                               {"SLURM_STEP_NODELIST", ""}}) {
    EXPECT_THAT(message_of([&] { static_cast<void>(slurm_job({{name, value}})); }),
                HasSubstr(name));
  }
}

HostedJob torchrun_job(const Variables& more) {
  Variables variables = torchrun_variables();
  for (const auto& [name, value] : more) {
    variables[name] = value;
  }
  return parse_torchrun_job(load_config(from(variables)), from(variables));
}

TEST(Torchrun, TakesThePortBehindTheStoresOwnOnSeveralHosts) {
  for (const Variables& more :
       std::vector<Variables>{{},
                              {{"LOCAL_WORLD_SIZE", "2"}},
                              {{"MASTER_ADDR", "128.0.0.1"}},
                              {{"MASTER_ADDR", "127.0.0.1"}, {"LOCAL_WORLD_SIZE", "2"}}}) {
    Variables variables = more;
    variables["WEFT_JOB_SECRET"] = "mine";
    const HostedJob job = torchrun_job(variables);
    EXPECT_EQ(job.pe, Pe(1));
    EXPECT_EQ(job.pe_count, 4U);
    EXPECT_EQ(job.rendezvous.port, 29501);
    EXPECT_FALSE(job.rendezvous.is_unix());
    EXPECT_EQ(job.secret, "mine");
  }
}

TEST(Torchrun, MeetsAtASocketOfThisUserOnOneHost) {
  for (const Variables& more :
       std::vector<Variables>{{{"LOCAL_WORLD_SIZE", "4"}},
                              {{"MASTER_ADDR", "127.0.0.1"}},
                              {{"MASTER_ADDR", "localhost"}},
                              {{"MASTER_ADDR", "::1"}},
                              // emulated nodes
                              {{"MASTER_ADDR", "127.0.0.1"}, {"LOCAL_WORLD_SIZE", "2"}}}) {
    const HostedJob job = torchrun_job(more);
    EXPECT_THAT(job.rendezvous.path, testing::StartsWith(fmt::format("@weft-{}-", ::geteuid())));
    EXPECT_FALSE(job.secret.empty());
  }
}

TEST(Torchrun, TakesTheRendezvousThatTheUserNames) {
  const HostedJob job =
      torchrun_job({{"WEFT_RENDEZVOUS", "other:1234"}, {"WEFT_JOB_SECRET", "mine"}});
  EXPECT_EQ(to_string(job.rendezvous), "other:1234");
}

// Whatever torchrun sets is known to everybody who can reach the store.
TEST(Torchrun, TakesNoSecretOfPublicVariablesWhereStrangersReachTheRendezvous) {
  for (const Variables& more :
       std::vector<Variables>{{},
                              {{"LOCAL_WORLD_SIZE", "3"}},
                              {{"LOCAL_WORLD_SIZE", "4"}, {"WEFT_RENDEZVOUS", "h:1234"}}}) {
    EXPECT_THAT(message_of([&] { static_cast<void>(torchrun_job(more)); }),
                HasSubstr("set WEFT_JOB_SECRET to the same random text on every host"));
  }
}

TEST(Torchrun, KeepsJobsAndAttemptsOfOneUserApart) {
  const auto job = [](const std::string& name, const std::string& value) {
    return torchrun_job({{"LOCAL_WORLD_SIZE", "4"}, {name, value}});
  };
  EXPECT_EQ(job("RANK", "0").rendezvous.path, job("RANK", "3").rendezvous.path);
  EXPECT_EQ(job("RANK", "0").secret, job("RANK", "3").secret);
  for (const std::string name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    EXPECT_NE(job(name, "0").rendezvous.path, job(name, "1").rendezvous.path);
    EXPECT_NE(job(name, "0").secret, job(name, "1").secret);
  }
  EXPECT_EQ(job("WEFT_JOB_SECRET", "mine").secret, "mine");
}

// Runs `body` as another user, in a process of its own; what it returns.
int as_another_user(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    ::_exit(::setuid(kNobody) == 0 ? body() : 99);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(UnixSocket, IsForOneUserOnly) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const Address address{.host = {}, .port = 0, .path = fmt::format("@weft-test-{}", ::getpid())};
  const Listener listener = listen_on(address);
  EXPECT_EQ(as_another_user([&] {
              const std::string why =
                  message_of([&] { static_cast<void>(dial(address, Clock::now() + 5s)); });
              return why.find("belongs to user 0") == std::string::npos ? 1 : 0;
            }),
            0);
  EXPECT_FALSE(accept_from(listener).is_open());
  EXPECT_EQ(errno, ECONNABORTED);
  const FileDescriptor mine = dial(address, Clock::now() + 5s);
  EXPECT_TRUE(accept_from(listener).is_open());
}

TEST(UnixSocket, WithANameOfNoFileIsGoneWithItsOwner) {
  const Address address{.host = {}, .port = 0, .path = fmt::format("@weft-test-{}", ::getpid())};
  static_cast<void>(listen_on(address));
  EXPECT_TRUE(listen_on(address).socket.is_open());
}

TEST(Torchrun, RefusesVariablesThatMakeNoSense) {
  for (const auto& [name, value] : Variables{{"RANK", "4"},
                                             {"RANK", "-1"},
                                             {"WORLD_SIZE", "x"},
                                             {"MASTER_PORT", "65535"},
                                             {"MASTER_ADDR", ""}}) {
    Variables variables = torchrun_variables();
    variables[name] = value;
    variables["LOCAL_WORLD_SIZE"] = "4";
    EXPECT_THAT(message_of([&] {
                  static_cast<void>(parse_torchrun_job(load_config(from({})), from(variables)));
                }),
                HasSubstr(name));
  }
}

TEST(Torchrun, Pe0HostsTheRendezvousForAll) {
  // A port that was free a moment ago; the kernel does not hand it out again soon.
  const std::uint16_t port = listen_on({.host = "127.0.0.1", .port = 0, .path = {}}).address.port;
  std::vector<std::thread> threads;
  for (int pe = 2; pe >= 0; --pe) {
    threads.emplace_back([pe, port] {
      const Variables variables{{"RANK", std::to_string(pe)},
                                {"WORLD_SIZE", "3"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", std::to_string(port - 1)}};
      const auto job = connect(load_config(from(variables)), from(variables));
      EXPECT_EQ(job->name(), "torchrun");
      const auto all = job->allgather(Blob(1, static_cast<std::byte>(pe)));
      ASSERT_EQ(all.size(), 3U);
      EXPECT_EQ(all[2], Blob(1, std::byte{2}));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(InProcess, GivesEveryThreadTheBlobsOfAll) {
  InProcessGroup group(6);
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < 6; ++pe) {
    threads.emplace_back([pe, job = group.take(Pe(pe))] {
      for (std::uint32_t round = 0; round < 50; ++round) {
        const auto all = job->allgather(Blob(pe + 1, static_cast<std::byte>(round)));
        ASSERT_EQ(all.size(), 6U);
        EXPECT_EQ(all[5], Blob(6, static_cast<std::byte>(round)));
      }
      job->barrier();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(InProcess, FailsTheOthersWhenAThreadThrows) {
  InProcessGroup group(3);
  std::vector<std::thread> threads;
  for (std::uint32_t pe = 0; pe < 3; ++pe) {
    threads.emplace_back([pe, job = group.take(Pe(pe))]() mutable {
      job->barrier();
      if (pe == 1) {
        job.reset();  // what unwinding does
        return;
      }
      EXPECT_THAT(message_of([&] { job->barrier(); }), HasSubstr("PE 1 has left the job"));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(InProcess, NamesThePeThatDoesNotCome) {
  InProcessGroup group(2, 50ms);
  const auto job = group.take(Pe(0));
  const auto other = group.take(Pe(1));
  EXPECT_THAT(message_of([&] { job->barrier(); }), HasSubstr("PE 1 did not come within 0.05 s"));
  EXPECT_THAT(message_of([&] { other->barrier(); }), HasSubstr("PE 1 did not come"));
}

}  // namespace
}  // namespace weft::bootstrap
