// How weft-run ends where somebody does not do his part: readers, agents and hosts that do not
// answer, and users who ask twice. Each wait that README.md of tools/run lists has its test here.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"
#include "src/base/process.hpp"
#include "tests/multi/weft_run_fixture.hpp"

namespace weft {
namespace {

using test::probe;
using test::read_file;
using test::run_path;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WeftRunEnds : public test::WeftRun {
 protected:
  // PEs that say when they run, and that go on for ever.
  [[nodiscard]] std::string waiting_pe() const {
    return script("wait.sh", fmt::format("echo x >{}/up.$WEFT_PE\nexec sleep 1000", directory()));
  }

  [[nodiscard]] pid_t start_waiting(const std::string& options) const {
    return start(fmt::format("{} -n 2 --grace 0.2 --env WEFT_TEST_MARK={} {} -- {}", run_path(),
                             directory(), options, waiting_pe()));
  }

  [[nodiscard]] bool have_started() const { return wait_for_file("up.0") && wait_for_file("up.1"); }

  // The parents of PEs.
  [[nodiscard]] std::vector<pid_t> agents() const {
    std::vector<pid_t> found;
    for (const pid_t pe : marked()) {
      if (const auto stat = read_process_stat(pe)) {
        found.push_back(static_cast<pid_t>(stat->parent));
      }
    }
    return found;
  }

  void stop_agents() const {
    ASSERT_FALSE(agents().empty());
    for (const pid_t agent : agents()) {
      ::kill(agent, SIGSTOP);
    }
  }

  [[nodiscard]] std::string hosts() const {
    return "--hosts alpha,beta --rendezvous 127.0.0.1:0 --ssh-command " + fake_ssh();
  }
};

// ---- Requests -----------------------------------------------------------------------------------

TEST_F(WeftRunEnds, TakesSignalsInARowForOneRequest) {
  const std::string slow = script(
      "slow.sh",
      fmt::format("trap 'sleep 1; echo done >>{0}/done; exit 0' TERM\necho x >{0}/up.$WEFT_PE\n"
                  "while :; do sleep 0.05; done",
                  directory()));
  const pid_t pid = start(fmt::format("{} -n 2 --grace 50 -- {}", run_path(), slow));
  ASSERT_TRUE(have_started());
  for (int i = 0; i < 2000; ++i) {
    ::kill(pid, SIGTERM);
  }
  EXPECT_EQ(wait_for(pid), 0) << err();
  EXPECT_EQ(read_file(file("done")), "done\ndone\n");
  EXPECT_THAT(err(), Not(HasSubstr("asked twice")));
}

TEST_F(WeftRunEnds, KillsAtOnceWhenItIsAskedAgainLater) {
  const std::string deaf = script("deaf.sh", fmt::format("trap '' TERM\necho x >{}/up.$WEFT_PE\n"
                                                         "while :; do sleep 0.05; done",
                                                         directory()));
  const pid_t pid = start(fmt::format("{} -n 2 --grace 1000 -- {}", run_path(), deaf));
  ASSERT_TRUE(have_started());
  ::kill(pid, SIGTERM);
  std::this_thread::sleep_for(1s);
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 143);
  EXPECT_THAT(err(), HasSubstr("asked twice to end; killing all PEs"));
}

// ---- Output -------------------------------------------------------------------------------------

TEST_F(WeftRunEnds, ReturnsTheJobsStatusWhereItsMessagesCannotBeWritten) {
  EXPECT_EQ(run(fmt::format("sh -c '{} -n 2 -- sh -c \"exit 3\" 2>/dev/full'", run_path())), 3);
  EXPECT_EQ(run(fmt::format("sh -c '{} --what 2>/dev/full'", run_path())), 2);
  EXPECT_EQ(run(fmt::format("sh -c '{} -n 1 -- no-such-command 2>/dev/full'", run_path())), 127);
  EXPECT_EQ(
      run(fmt::format("bash -c '{} -n 2 --prefix-output -- sh -c \"echo a; echo b >&2; exit 3\" "
                      "2>&1 | true; exit ${{PIPESTATUS[0]}}'",
                      run_path())),
      141);
}

TEST_F(WeftRunEnds, EndsTheJobWhenNobodyReadsItsOutputAnyMore) {
  EXPECT_EQ(run(fmt::format("bash -c '{} -n 2 --prefix-output -- yes | head -1; "
                            "exit ${{PIPESTATUS[0]}}'",
                            run_path())),
            141);
  EXPECT_THAT(out(), testing::MatchesRegex("\\[[01]\\] y\n"));
  EXPECT_EQ(err(), "weft-run: nobody reads the job's output any more (SIGPIPE)\n");
}

TEST_F(WeftRunEnds, SaysThatOutputIsLostAndFails) {
  EXPECT_EQ(run(fmt::format("sh -c '{} -n 1 --prefix-output -- echo x >/dev/full'", run_path())),
            1);
  EXPECT_EQ(
      err(),
      "weft-run: cannot write the job's output: No space left on device; it is lost from here "
      "on\n");
}

TEST_F(WeftRunEnds, DoesNotWaitForAReaderOnceTheJobsTimeIsOver) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  const FileDescriptor reader(::open(file("fifo").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(
      run(fmt::format("sh -c 'exec {} -n 2 --prefix-output --timeout 2 --grace 0.2 -- yes >{}'",
                      run_path(), file("fifo"))),
      124);
  EXPECT_THAT(err(), HasSubstr("did not end within 2 s (--timeout)"));
}

TEST_F(WeftRunEnds, WritesAllThatAReaderTakesLate) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  const pid_t pid =
      start(fmt::format("sh -c 'exec {} -n 1 --prefix-output -- head -c 3000000 /dev/zero >{}'",
                        run_path(), file("fifo")));
  EXPECT_EQ(run(fmt::format("sh -c 'exec <{}; sleep 1; cat | wc -c'", file("fifo"))), 0);
  EXPECT_EQ(wait_for(pid), 0);
}

// ---- Agents and hosts ---------------------------------------------------------------------------

TEST_F(WeftRunEnds, EndsAJobWhoseAgentIsStopped) {
  const pid_t pid = start_waiting("--timeout 2");
  ASSERT_TRUE(have_started());
  stop_agents();
  EXPECT_EQ(wait_for(pid), 124);
  EXPECT_THAT(err(), AllOf(HasSubstr("did not end within 2 s (--timeout); PEs 0, 1 still ran"),
                           HasSubstr("the agent of this machine did not end PEs 0, 1 within 5.2 s; "
                                     "they are killed")));
  EXPECT_TRUE(all_gone_within(0s));
}

TEST_F(WeftRunEnds, EndsAJobWithStoppedAgentsOnOtherHosts) {
  const pid_t pid = start_waiting("--timeout 2 " + hosts());
  ASSERT_TRUE(have_started());
  stop_agents();
  EXPECT_EQ(wait_for(pid), 124);
  EXPECT_THAT(err(),
              AllOf(HasSubstr("PEs 0, 1 still ran"),
                    HasSubstr("'alpha' did not end PE 0 within 5.2 s; they may still run there"),
                    HasSubstr("'beta' did not end PE 1 within")));
}

TEST_F(WeftRunEnds, EndsOnASignalThoughTheAgentIsStopped) {
  const pid_t pid = start_waiting("");
  ASSERT_TRUE(have_started());
  stop_agents();
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 143);
  EXPECT_TRUE(all_gone_within(0s));
}

TEST_F(WeftRunEnds, NamesTheHostsThatDoNotStartTheirPes) {
  const std::string silent = script("silent.sh", "exec sleep 1000");
  const std::string where = "--hosts alpha,beta --rendezvous 127.0.0.1:0 --ssh-command " + silent;
  EXPECT_EQ(weft_run(fmt::format("-n 3 --timeout 1 --grace 0 {} -- true", where)), 124);
  EXPECT_THAT(err(), HasSubstr("did not end within 1 s (--timeout); 'alpha' has not started PEs 0, "
                               "1; 'beta' has not started PE 2"));
  EXPECT_EQ(run(fmt::format("env WEFT_BOOTSTRAP_TIMEOUT=1 {} -n 2 --grace 0 {} -- true", run_path(),
                            where)),
            1);
  EXPECT_THAT(err(), HasSubstr("'alpha' has not started PE 0; 'beta' has not started PE 1 within "
                               "WEFT_BOOTSTRAP_TIMEOUT"));
}

// As ssh does whose control connection stays.
TEST_F(WeftRunEnds, DoesNotWaitForARemoteShellThatStaysWhenItsAgentHasEnded) {
  const std::string stays = script("stays.sh", "shift\n\"$@\"\nexec <&- >&- 2>&-\nexec sleep 1000");
  EXPECT_EQ(
      weft_run(fmt::format("-n 2 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command {} -- {}",
                           stays, probe())),
      0)
      << err();
}

TEST_F(WeftRunEnds, HasWordsOfTheRemoteShellQuotedAsInAShell) {
  const std::string folder = file("a folder's $HOME");
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(run_path(), folder + "/weft-run");
  // As ssh: the words behind the host, joined for a shell.
  const std::string like_ssh = script("like ssh.sh", "shift\nexec sh -c \"$*\"");
  EXPECT_EQ(run(fmt::format("{0} -n 1 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command "
                            "\"'{1}'\" --agent-path \"{2}/a folder's \\$HOME/weft-run\" -- {3}",
                            run_path(), like_ssh, directory(), probe())),
            0)
      << err();
  EXPECT_EQ(weft_run("-n 1 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command \"'x\" -- true"),
            2);
  EXPECT_THAT(err(), HasSubstr("'x: a quote (') does not end"));
  EXPECT_EQ(weft_run("-n 1 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command ' ' -- true"), 2);
  EXPECT_THAT(err(), HasSubstr("--ssh-command ' ': it names no program"));
}

// srun gives the words on as they are.
TEST_F(WeftRunEnds, QuotesNothingForSrun) {
  const std::string folder = file("a folder");
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(run_path(), folder + "/weft-run");
  const std::string srun = script("srun", "shift\nexec \"$@\"");
  EXPECT_EQ(weft_run(fmt::format("-n 1 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command {} "
                                 "--agent-path '{}/weft-run' -- {}",
                                 srun, folder, probe())),
            0)
      << err();
}

}  // namespace
}  // namespace weft
