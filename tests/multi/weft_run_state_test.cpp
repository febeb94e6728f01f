// What a process inherits, in a state that a user did not choose: signal dispositions and masks,
// limits, descriptors, umask, namespaces, environment. weft-run does its work all the same, and PEs
// get what weft-run was given.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/multi/weft_run_fixture.hpp"
#include "tests/support/paths.hpp"

namespace weft {
namespace {

using test::probe;
using test::read_file;
using test::run_path;
using namespace std::chrono_literals;
using testing::HasSubstr;

class WeftRunState : public test::WeftRun {
 protected:
  // `prepare` changes the state of the shell that then becomes weft-run.
  [[nodiscard]] int run_in(const std::string& prepare, const std::string& arguments) const {
    const std::string text = fmt::format("{}\nexec {} {}", prepare, run_path(), arguments);
    return run(script("state.sh", text));
  }

  // What one PE prints in that state, and what the command prints without weft-run.
  void expect_passed_on(const std::string& prepare, const std::string& command) const {
    EXPECT_EQ(run(script("plain.sh", fmt::format("{}\nexec {}", prepare, command))), 0) << err();
    const std::string plain = out();
    EXPECT_EQ(run_in(prepare, "-n 1 --bind none -- " + command), 0) << err();
    EXPECT_EQ(out(), plain) << prepare;
    EXPECT_EQ(run_in(prepare, fmt::format("-n 1 --bind none --prefix-output -- {}", command)), 0);
  }

  void expect_to_run(const std::string& prepare) const {
    EXPECT_EQ(run_in(prepare, "-n 2 -- " + probe()), 0) << prepare << err();
    EXPECT_EQ(
        run_in(prepare, fmt::format("-n 2 --hosts alpha --rendezvous 127.0.0.1:0 --ssh-command {} "
                                    "-- {}",
                                    fake_ssh(), probe())),
        0)
        << prepare << err();
    EXPECT_EQ(run_in(prepare, "-n 2 -- sh -c '[ $WEFT_PE = 1 ] && exit 5; exec sleep 1000'"), 5)
        << prepare << err();
  }
};

// `env` of coreutils, which then becomes the shell of the script's rest.
std::string with_signals(const std::string& options) {
  return fmt::format("[ -n \"$AGAIN\" ] || AGAIN=1 exec env {} \"$0\"", options);
}

TEST_F(WeftRunState, ChildrenAreHeardOfThoughTheirSignalWasIgnored) {
  expect_to_run(with_signals("--ignore-signal=CHLD"));
}

TEST_F(WeftRunState, SignalsMayBeBlockedOrIgnored) {
  expect_to_run(with_signals("--block-signal"));
  expect_to_run(with_signals("--ignore-signal=PIPE,HUP,INT,TTOU,TTIN,ALRM"));
}

TEST_F(WeftRunState, DispositionsAndMaskOfSignalsAreThosePesGet) {
  expect_passed_on(":", fmt::format("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
  expect_passed_on(with_signals("--ignore-signal=CHLD,PIPE,USR1 --block-signal=USR2,TERM,CHLD"),
                   fmt::format("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
}

TEST_F(WeftRunState, LimitOfOpenFilesIsRaisedForWeftRunAndNotForPes) {
  expect_passed_on("ulimit -Sn 100", "sh -c 'ulimit -Sn; ulimit -Hn'");
  // More PEs than the soft limit has descriptors, and two pipes for each.
  EXPECT_EQ(run_in("ulimit -Sn 40", "-n 30 --prefix-output -- " + probe()), 0) << err();
}

TEST_F(WeftRunState, LimitOfOpenFilesThatIsTooLowIsNamedWithTheNumberThatIsNeeded) {
  EXPECT_EQ(run_in("ulimit -n 50", "-n 100 -- " + probe()), 1);
  EXPECT_THAT(err(), testing::MatchesRegex(
                         "weft-run: the rendezvous of 100 PEs needs a connection to each: "
                         "1[0-9][0-9] open files are needed, and the limit is 50: .*"));
}

TEST_F(WeftRunState, OtherLimitsAreThosePesGet) {
  expect_passed_on("ulimit -c 0; ulimit -s 4096; ulimit -t 1000",
                   "sh -c 'ulimit -c; ulimit -s; ulimit -t'");
}

TEST_F(WeftRunState, FilesThatMayNotBeLargeAreNamedWhereTheHeapIsOne) {
  EXPECT_NE(run_in("ulimit -f 100", fmt::format("-n 1 -- {}/api_tour", WEFT_BINARY_DIR)), 0);
  EXPECT_THAT(err(), HasSubstr("ulimit -f"));
}

TEST_F(WeftRunState, StandardStreamsMayBeClosed) {
  EXPECT_EQ(run_in("exec <&- >&- 2>&-", "-n 2 -- " + probe()), 0);
  EXPECT_EQ(run_in("exec <&- >&- 2>&-", "-n 2 --prefix-output -- " + probe()), 0);
  EXPECT_EQ(run_in("exec <&-", "-n 2 -- cat"), 0);
  EXPECT_EQ(run_in("exec >&- 2>&-", "-n 2 -- sh -c 'exit 4'"), 4);
}

// Its connections must not become the program's standard output.
TEST_F(WeftRunState, StandardStreamsOfAPeMayBeClosed) {
  const std::string pe =
      script("pe.sh", fmt::format("exec {}/api_tour <&- >&- 2>&-", WEFT_BINARY_DIR));
  EXPECT_EQ(weft_run("-n 2 -- " + pe), 0) << err();
  EXPECT_EQ(run(fmt::format("env WEFT_PROVIDER=tcp WEFT_NICS=127.0.0.1 {} -n 2 --node-size 1 -- {}",
                            run_path(), pe)),
            0)
      << err();
}

TEST_F(WeftRunState, OtherDescriptorsAreThosePesGet) {
  expect_passed_on(fmt::format("exec 9>{}", file("nine")), "readlink /proc/self/fd/9");
}

TEST_F(WeftRunState, UmaskIsThatOfPes) {
  expect_passed_on("umask 027", "sh -c umask");
  expect_to_run("umask 077");
}

TEST_F(WeftRunState, EnvironmentMayBeEmpty) {
  EXPECT_EQ(run(fmt::format("env -i {} -n 2 -- {}", run_path(), probe())), 0) << err();
}

TEST_F(WeftRunState, EnvironmentIsThatOfPes) {
  expect_passed_on("export ODD='a\nb' EMPTY=", "sh -c 'echo \"$ODD$EMPTY\"'");
}

TEST_F(WeftRunState, WorkingDirectoryMayBeGone) {
  EXPECT_EQ(run_in(fmt::format("mkdir {0}/gone; cd {0}/gone; rmdir {0}/gone", directory()),
                   "-n 2 -- " + probe()),
            0)
      << err();
}

TEST_F(WeftRunState, PrioritiesAndCoresAreThosePesGet) {
  expect_passed_on(":", "nice");
  expect_passed_on("[ -n \"$AGAIN\" ] || AGAIN=1 exec nice -n 3 \"$0\"", "nice");
  expect_passed_on("[ -n \"$AGAIN\" ] || AGAIN=1 exec taskset -c 0 \"$0\"",
                   "grep Cpus_allowed_list /proc/self/status");
}

class InNamespace : public WeftRunState, public testing::WithParamInterface<const char*> {};

TEST_P(InNamespace, JobsRunAndLeaveNoProcess) {
  if (run(fmt::format("unshare {} true", GetParam())) != 0) {
    GTEST_SKIP() << "unshare " << GetParam() << ": " << err();
  }
  const std::string again =
      fmt::format("[ -n \"$AGAIN\" ] || AGAIN=1 exec unshare {} \"$0\"", GetParam());
  expect_to_run(again);
  const std::string daemon = script("daemon.sh", "setsid sleep 1000 &\nexit 0");
  EXPECT_EQ(run_in(again, fmt::format("-n 2 --env WEFT_TEST_MARK={} -- {}", directory(), daemon)),
            0)
      << err();
  EXPECT_TRUE(all_gone_within(1s));
}

// A pid namespace of its own, and /proc of the outer one; and one in which weft-run is process 1.
INSTANTIATE_TEST_SUITE_P(All,
                         InNamespace,
                         testing::Values("--pid --fork",
                                         "--pid --fork --mount-proc",
                                         "--user",
                                         "--user --map-root-user",
                                         "--uts --ipc",
                                         "--cgroup"));

}  // namespace
}  // namespace weft
