// weft-run as its users meet it: the built program with real processes. Statuses, signals, output,
// death and what is left after it, other hosts (through a fake ssh), and mpirun beside it.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/multi/weft_run_fixture.hpp"
#include "tests/support/paths.hpp"

namespace weft {
namespace {

using test::probe;
using test::read_file;
using test::run_path;
using test::WeftRun;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(WeftRun, StartsPesThatFindEachOther) {
  EXPECT_EQ(weft_run("-n 4 -- " + probe() + " 1000 3"), 0) << err();
  for (int pe = 0; pe < 4; ++pe) {
    EXPECT_THAT(out(), HasSubstr(fmt::format("PE {} of 4 by tcp: ok", pe)));
  }
}

TEST_F(WeftRun, TakesACommandWithoutDashes) {
  EXPECT_EQ(weft_run("-n 1 echo -n --bind"), 0);
  EXPECT_EQ(out(), "--bind");
}

TEST_F(WeftRun, TakesMpirunsSpellingOfTheNumberOfPes) {
  EXPECT_EQ(weft_run("-np 2 -- sh -c 'echo $WEFT_PE_COUNT $0' -np"), 0) << err();
  EXPECT_EQ(out(), "2 -np\n2 -np\n");
  EXPECT_EQ(weft_run("--prefix-output --bind none -np 1 echo -np 3"), 0) << err();
  EXPECT_EQ(out(), "[0] -np 3\n");
}

TEST_F(WeftRun, AsksBeforeItStartsThousandsOfPesHere) {
  EXPECT_EQ(weft_run("-n 1000000 -- touch " + file("started")), 2);
  EXPECT_THAT(err(), AllOf(HasSubstr("1000000 PEs on this machine"), HasSubstr("--oversubscribe")));
  EXPECT_FALSE(std::filesystem::exists(file("started")));
  EXPECT_EQ(weft_run("-n 2 --oversubscribe -- true"), 0) << err();
}

TEST_F(WeftRun, TellsTheOthersWhyAPeCouldNotStart) {
  const std::string program = WEFT_BINARY_DIR "/windows";
  EXPECT_NE(weft_run("-n 2 -- sh -c '[ $WEFT_PE = 1 ] && export WEFT_HEAP_SIZE=1000000G; exec " +
                     program + "'"),
            0);
  EXPECT_THAT(err(), HasSubstr("PE 1 has left the job (it could not start: WEFT_HEAP_SIZE="));
  EXPECT_THAT(err(), Not(HasSubstr("finalized")));
}

TEST_F(WeftRun, ReturnsTheStatusOfThePeThatFailedAndNamesIt) {
  EXPECT_EQ(weft_run("-n 3 -- sh -c '[ $WEFT_PE = 1 ] && exit 5; exec sleep 1000'"), 5);
  EXPECT_THAT(err(),
              testing::MatchesRegex("weft-run: PE 1 \\(pid [0-9]+\\) exited with status 5\n"));
}

TEST_F(WeftRun, NamesTheSignalThatKilledAPe) {
  EXPECT_EQ(weft_run("-n 2 -- sh -c '[ $WEFT_PE = 1 ] && kill -9 $$; exec sleep 1000'"), 137);
  EXPECT_THAT(err(), HasSubstr("was killed by signal 9 (Killed)"));
}

TEST_F(WeftRun, LetsAPeEndWellWhileOthersGoOn) {
  EXPECT_EQ(weft_run("-n 2 -- sh -c '[ $WEFT_PE = 1 ] && exit 0; sleep 0.5; echo done'"), 0);
  EXPECT_EQ(out(), "done\n");
  EXPECT_EQ(err(), "");
}

TEST_F(WeftRun, BlamesThePeThatDiedAndNotThoseThatNoticed) {
  EXPECT_EQ(weft_run("-n 3 -- " + probe() + " die 1"), 5);
  // The others say that PE 1 is lost, unless they are ended before they notice.
  EXPECT_THAT(err(), AllOf(HasSubstr("weft-run: PE 1 (pid"), Not(HasSubstr("weft-run: PE 0")),
                           Not(HasSubstr("weft-run: PE 2"))));
}

TEST_F(WeftRun, EndsAJobInWhichAPeExitedBeforeItJoined) {
  EXPECT_EQ(weft_run(fmt::format("-n 2 -- sh -c '[ $WEFT_PE = 1 ] && exit 0; exec {}'", probe())),
            3);
  EXPECT_THAT(err(), HasSubstr("PE 1 exited with status 0 before it joined"));
}

TEST_F(WeftRun, NamesThePeThatNeverJoins) {
  EXPECT_EQ(
      run(fmt::format("env WEFT_BOOTSTRAP_TIMEOUT=1 {} -n 3 -- {} hang 2", run_path(), probe())),
      3);
  EXPECT_THAT(err(), HasSubstr("PE 2 did not come within 1 s"));
}

TEST_F(WeftRun, PrefixesWholeLines) {
  const std::string talk = script("talk.sh",
                                  "i=0; while [ $i -lt 200 ]; do printf 'a%s' $WEFT_PE; "
                                  "printf 'b%s\\n' $WEFT_PE; i=$((i+1)); done; printf end");
  EXPECT_EQ(weft_run("-n 3 --prefix-output -- " + talk), 0) << err();
  std::istringstream lines(out());
  std::multiset<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    seen.insert(line);
  }
  EXPECT_EQ(seen.size(), 603U);
  EXPECT_EQ(seen.count("[0] a0b0"), 200U);
  EXPECT_EQ(seen.count("[2] a2b2"), 200U);
  EXPECT_EQ(seen.count("[1] end"), 1U);
}

TEST_F(WeftRun, KeepsTheTwoStreamsApart) {
  EXPECT_EQ(weft_run("-n 1 --prefix-output -- sh -c 'echo good; echo bad >&2'"), 0);
  EXPECT_EQ(out(), "[0] good\n");
  EXPECT_EQ(err(), "[0] bad\n");
}

TEST_F(WeftRun, GivesItsInputToPe0Only) {
  std::ofstream(file("in")) << "line\n";
  EXPECT_EQ(run(fmt::format("{} -n 2 --prefix-output -- cat < {}", run_path(), file("in"))), 0);
  EXPECT_EQ(out(), "[0] line\n");
}

TEST_F(WeftRun, SetsTheJobsVariables) {
  EXPECT_EQ(weft_run("-n 2 --node-size 1 --env WEFT_LOG=info --env HOME -- env"), 0);
  for (const char* text :
       {"WEFT_PE=1\n", "WEFT_PE_COUNT=2\n", "WEFT_NODE_SIZE=1\n", "WEFT_LOG=info\n",
        "WEFT_RENDEZVOUS=127.0.0.1:", "WEFT_JOB_ID=", "WEFT_RUN_PID=", "HOME="}) {
    EXPECT_THAT(out(), HasSubstr(text));
  }
}

TEST_F(WeftRun, ForwardsSignalsToThePes) {
  const std::string trap =
      script("trap.sh", fmt::format("trap 'echo got >>{0}/got; exit 0' USR1\necho x >{0}/up\n"
                                    "while :; do sleep 0.05; done",
                                    directory()));
  const pid_t pid = start(run_path() + " -n 1 -- " + trap);
  ASSERT_TRUE(wait_for_file("up"));
  ::kill(pid, SIGUSR1);
  EXPECT_EQ(wait_for(pid), 0) << err();
  EXPECT_TRUE(wait_for_file("got"));
}

TEST_F(WeftRun, EndsTheJobWhenItIsInterrupted) {
  const pid_t pid = start_family("--grace 0.2");
  ASSERT_TRUE(wait_for_file("up.0") && wait_for_file("up.1"));
  ::kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 130) << err();
  EXPECT_TRUE(all_gone_within(0s));
}

TEST_F(WeftRun, LetsPesEndWellOnATerminationSignal) {
  const std::string trap = script(
      "trap.sh",
      fmt::format("trap 'exit 0' TERM\necho x >{}/up\nwhile :; do sleep 0.05; done", directory()));
  const pid_t pid = start(run_path() + " -n 1 -- " + trap);
  ASSERT_TRUE(wait_for_file("up"));
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 0) << err();
}

TEST_F(WeftRun, LeavesNoProcessWhenAPeFails) {
  const std::string failing = script(
      "fail.sh", fmt::format("[ $WEFT_PE = 1 ] || exec {}\nsetsid sleep 1000 &\nsleep 0.3; exit 9",
                             family_script()));
  EXPECT_EQ(
      weft_run(fmt::format("-n 2 --grace 0.2 --env WEFT_TEST_MARK={} -- {}", directory(), failing)),
      9);
  EXPECT_TRUE(all_gone_within(0s));
}

TEST_F(WeftRun, LeavesNoProcessWhenItIsKilled) {
  const pid_t pid = start_family("");
  ASSERT_TRUE(wait_for_file("up.0") && wait_for_file("up.1"));
  ::kill(pid, SIGKILL);
  EXPECT_EQ(wait_for(pid), 137);
  EXPECT_TRUE(all_gone_within(2s));
}

pid_t parent_of(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  char state = 0;
  pid_t parent = 0;
  fields >> state >> parent;
  return parent;
}

TEST_F(WeftRun, LeavesNoProcessWhenItsAgentIsKilled) {
  const pid_t pid = start_family("");
  ASSERT_TRUE(wait_for_file("up.0") && wait_for_file("up.1"));
  for (const pid_t process : marked()) {
    const pid_t parent = parent_of(process);
    if (parent_of(parent) == pid) {
      ::kill(parent, SIGKILL);
      break;
    }
  }
  EXPECT_EQ(wait_for(pid), 1);
  EXPECT_THAT(err(), HasSubstr("the agent of this machine was killed by signal 9"));
  EXPECT_TRUE(all_gone_within(0s));
}

TEST_F(WeftRun, EndsAJobThatTakesTooLong) {
  EXPECT_EQ(weft_run("-n 2 --timeout 0.3 --grace 0.2 -- sleep 1000"), 124);
  EXPECT_THAT(err(), HasSubstr("did not end within 0.3 s (--timeout); PEs 0, 1 still ran"));
}

TEST_F(WeftRun, StartsPesOnOtherHostsThroughSsh) {
  EXPECT_EQ(
      weft_run(fmt::format("-n 3 --hosts alpha:1,beta --rendezvous 127.0.0.1:0 --ssh-command {} "
                           "--prefix-output -- {}",
                           fake_ssh(), probe())),
      0)
      << err();
  EXPECT_THAT(read_file(file("hosts")), AllOf(HasSubstr("alpha"), HasSubstr("beta")));
  EXPECT_THAT(out(), HasSubstr("[2] probe: PE 2 of 3 by tcp: ok"));
}

TEST_F(WeftRun, ReturnsTheStatusOfAPeOnAnotherHost) {
  EXPECT_EQ(
      weft_run(fmt::format("-n 2 --hosts alpha,beta --rendezvous 127.0.0.1:0 --ssh-command {} "
                           "-- {} die 1",
                           fake_ssh(), probe())),
      5)
      << err();
  EXPECT_THAT(err(), HasSubstr("weft-run: PE 1 (pid"));
}

TEST_F(WeftRun, LeavesNoProcessOnOtherHostsWhenItIsKilled) {
  const pid_t pid =
      start_family(fmt::format("--hosts alpha,beta --rendezvous 127.0.0.1:0 "
                               "--ssh-command {}",
                               fake_ssh()));
  ASSERT_TRUE(wait_for_file("up.0") && wait_for_file("up.1")) << err();
  ::kill(pid, SIGKILL);
  EXPECT_EQ(wait_for(pid), 137);
  EXPECT_TRUE(all_gone_within(2s));
}

TEST_F(WeftRun, NamesAHostThatItCannotReach) {
  const std::string broken = script("broken.sh", "echo no route to $1 >&2; exit 255");
  EXPECT_EQ(weft_run(fmt::format(
                "-n 2 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command {} -- true", broken)),
            1);
  EXPECT_THAT(err(), HasSubstr("lost the host 'alpha' (ssh exited with status 255)"));
}

TEST_F(WeftRun, KeepsTheSecretOffCommandLines) {
  const std::string look = script(
      "look.sh",
      "[ ${#WEFT_JOB_SECRET} = 64 ] || exit 7\nfor p in /proc/[0-9]*; do\n"
      "case $(tr '\\0' ' ' <$p/cmdline) in *$WEFT_JOB_SECRET*) exit 8;; esac\ndone 2>/dev/null");
  EXPECT_EQ(
      weft_run(fmt::format("-n 1 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command {} -- {}",
                           fake_ssh(), look)),
      0)
      << err();
}

struct BadInput {
  std::string arguments;
  int status;
  std::string message;
};

TEST_F(WeftRun, AnswersBadInputWithOneClearLine) {
  for (const BadInput& bad : std::vector<BadInput>{
           {"-n 0 -- true", 2, "-n 0: a job has a whole number of PEs, 1 to 2147483647"},
           {"-n -1 -- true", 2, "-n -1: a job has a whole number of PEs, 1 to 2147483647"},
           {"-n four -- true", 2, "-n four: a job has a whole number of PEs, 1 to 2147483647"},
           {"-n 1.5 -- true", 2, "-n 1.5: a job has a whole number of PEs, 1 to 2147483647"},
           {"-n '' -- true", 2, "-n '': a job has a whole number of PEs, 1 to 2147483647"},
           {"--pe-count=4294967298 -- true", 2, "-n 4294967298: a job has a whole number of PEs"},
           {"-n 2 --ppn -1 -- true", 2, "--ppn -1: a host has a whole number of PEs, 0 to"},
           {"-n 2 --node-size x -- true", 2,
            "--node-size x: a node has a whole number of PEs, 0 to"},
           {"-n 2", 2, "no command"},
           {"-n 2 -- no-such-command", 127, "cannot run 'no-such-command': no such command"},
           {"-n 2 -- /etc/passwd", 126, "cannot run '/etc/passwd': Permission denied"},
           {"-n 2 --lab no-such-lab -- true", 2, "there is no lab 'no-such-lab'"},
           {"-n 2 --hosts a:0 -- true", 2, "'a:0' is not a host"},
           {"-n 5 --hosts a:2,b:2 -- true", 2, "take only 4 PEs"},
           {"-n 2 --hostfile /no/such/file -- true", 2, "cannot read the hostfile /no/such/file"},
           {"-n 2 --hosts no-such-host.invalid -- true", 2,
            "'no-such-host.invalid' does not resolve"},
           {"-n 2 --bind cores -- true", 2, "--bind"},
           {"-n 2 --env NO_SUCH_VARIABLE -- true", 2, "NO_SUCH_VARIABLE: it is not set"},
           {"-n 2000 --oversubscribe --bind core -- true", 1, "--bind core: 2000 PEs"},
           {"--what -- true", 2, "--what"},
       }) {
    const int status = weft_run(bad.arguments);
    EXPECT_EQ(status, bad.status) << bad.arguments;
    EXPECT_THAT(err(), AllOf(testing::StartsWith("weft-run: "), HasSubstr(bad.message)));
    EXPECT_EQ(std::ranges::count(err(), '\n'), 1) << err();
  }
}

TEST_F(WeftRun, NamesAnUnknownWeftVariable) {
  EXPECT_EQ(run(fmt::format("env WEFT_HEEP_SIZE=1G {} -n 1 -- true", run_path())), 2);
  EXPECT_THAT(err(), HasSubstr("did you mean WEFT_HEAP_SIZE"));
}

TEST_F(WeftRun, SaysWhatToDoWhenTheRendezvousPortIsInUse) {
  const pid_t first =
      start(fmt::format("{} -n 1 --rendezvous 127.0.0.1:0 --env WEFT_TEST_MARK={} -- sh -c "
                        "'echo $WEFT_RENDEZVOUS >{}; exec sleep 1000'",
                        run_path(), directory(), file("address")));
  ASSERT_TRUE(wait_for_file("address"));
  std::string address = read_file(file("address"));
  address.pop_back();
  EXPECT_EQ(weft_run("-n 1 --rendezvous " + address + " -- true"), 1);
  EXPECT_THAT(err(), AllOf(HasSubstr("cannot listen on " + address), HasSubstr("choose another")));
  ::kill(first, SIGTERM);
  EXPECT_EQ(wait_for(first), 143);
}

TEST_F(WeftRun, BindsEachPeToItsShareOfTheCores) {
  if (std::thread::hardware_concurrency() < 2) {
    GTEST_SKIP() << "one core";
  }
  const std::string cores = "grep Cpus_allowed_list /proc/self/status";
  EXPECT_EQ(weft_run("-n 1 --bind none -- " + cores), 0);
  const std::string all = out();
  EXPECT_EQ(weft_run("-n 2 --bind core -- sh -c '" + cores + " >" + file("cores") + ".$WEFT_PE'"),
            0)
      << err();
  EXPECT_NE(read_file(file("cores.0")), read_file(file("cores.1")));
  EXPECT_NE(read_file(file("cores.0")), all);
}

// The lab's state as weft-lab writes it, with this process' own network namespace as every host.
TEST_F(WeftRun, PlacesPesInBlocksOnTheHostsOfALab) {
  std::istringstream stat(read_file(fmt::format("/proc/{}/stat", ::getpid())));
  std::string field;
  for (int i = 1; i <= 22; ++i) {
    stat >> field;  // the test's name has no blank
  }
  std::ofstream(file("tiny.json")) << fmt::format(
      R"({{"version":1,"name":"tiny","holder_pid":{0},"holder_start_time":{1},"user_namespace":null,)"
      R"("hosts":[{{"index":0,"name":"h0","net_namespace":"/proc/{0}/ns/net","nics":[]}},)"
      R"({{"index":1,"name":"h1","net_namespace":"/proc/{0}/task/{0}/ns/net","nics":[]}}]}})",
      ::getpid(), field);
  const int status =
      run(fmt::format("env WEFT_LAB_DIR={} {} -n 4 --lab tiny -- sh -c 'echo "
                      "$WEFT_NODE_SIZE $WEFT_RENDEZVOUS; exec {}'",
                      directory(), run_path(), probe()));
  if (err().find("cannot enter the lab's namespace") != std::string::npos) {
    GTEST_SKIP() << "setns needs root: " << err();
  }
  EXPECT_EQ(status, 0) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("2 unix:/"), HasSubstr("PE 3 of 4 by tcp: ok")));
}

TEST_F(WeftRun, SaysThatALabIsGone) {
  std::ofstream(file("old.json"))
      << R"({"version":1,"name":"old","holder_pid":1,"holder_start_time":1,)"
         R"("user_namespace":null,"hosts":[]})";
  EXPECT_EQ(
      run(fmt::format("env WEFT_LAB_DIR={} {} -n 1 --lab old -- true", directory(), run_path())),
      2);
  EXPECT_THAT(err(), HasSubstr("the lab 'old' is gone"));
}

class Mpirun : public WeftRun {
 protected:
  void SetUp() override {
    WeftRun::SetUp();
    if (run("sh -c 'command -v mpirun'") != 0) {
      GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
    }
    if (run("mpirun --allow-run-as-root --oversubscribe -n 1 sh -c '[ -n \"$PMIX_RANK\" ]'") != 0) {
      GTEST_SKIP() << "mpirun offers no PMIx: " << err();
    }
  }

  [[nodiscard]] int mpirun(const std::string& arguments) const {
    return run("mpirun --allow-run-as-root --oversubscribe " + arguments);
  }
};

TEST_F(Mpirun, PesFindEachOtherByPmix) {
  EXPECT_EQ(mpirun(fmt::format("-n 4 {} 1000 3", probe())), 0) << err();
  if (out().find("by single") != std::string::npos) {
    GTEST_SKIP() << "built without PMIx";
  }
  EXPECT_THAT(out(), AllOf(HasSubstr("PE 3 of 4 by pmix: ok"), Not(HasSubstr("WRONG"))));
}

TEST_F(Mpirun, CarriesLargeAndEmptyBlobsByPmix) {
  EXPECT_EQ(mpirun(fmt::format("-n 3 {} 1000000 2", probe())), 0) << err();
  EXPECT_EQ(mpirun(fmt::format("-n 3 {} 0 2", probe())), 0) << err();
}

TEST_F(Mpirun, NamesThePeThatDoesNotCome) {
  EXPECT_NE(mpirun(fmt::format("-n 3 -x WEFT_BOOTSTRAP_TIMEOUT=1 {} hang 1", probe())), 0);
  if (out().find("by single") == std::string::npos) {
    EXPECT_THAT(err(), HasSubstr("PE 1 did not come within 1 s"));
  }
}

}  // namespace
}  // namespace weft
