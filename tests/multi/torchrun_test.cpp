// Jobs of processes that torchrun would have started: nobody but the PEs themselves ends the
// others.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/whole_file.hpp"
#include "src/bootstrap/socket.hpp"
#include "tests/support/paths.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kLimit = 60s;  // a hang, also under a sanitizer on a busy machine
constexpr int kPeCount = 3;
constexpr int kStillRunning = -1;

class Torchrun : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "weft-torchrun-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }

  void TearDown() override {
    for (const pid_t pid : pids_) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
    }
    std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }

  [[nodiscard]] std::string errors(int pe) const {
    return read_whole_file(file(fmt::format("err.{}", pe))).value_or("");
  }

  void start(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& more = {}) {
    std::vector<std::string> words{WEFT_BINARY_DIR "/torchrun_pe", file("job")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    start_program(words, more);
  }

  // All PEs of a job on this host, as torchrun would start them. `more` overrules.
  void start_program(const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& more = {}) {
    // A port that was free a moment ago; the kernel does not hand it out again soon.
    const auto port =
        bootstrap::listen_on({.host = "127.0.0.1", .port = 0, .path = {}}).address.port;
    for (int pe = 0; pe < kPeCount; ++pe) {
      std::map<std::string, std::string> variables{
          {"RANK", std::to_string(pe)},
          {"LOCAL_RANK", std::to_string(pe)},
          {"WORLD_SIZE", std::to_string(kPeCount)},
          {"LOCAL_WORLD_SIZE", std::to_string(kPeCount)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port - 1)},
          {"TORCHELASTIC_RUN_ID", fmt::format("test-{}", ::getpid())},
          {"WEFT_HEAP_SIZE", "8M"}};
      for (const auto& [name, value] : more) {
        variables[name] = value;
      }
      pids_.push_back(start_pe(pe, words, variables));
    }
  }

  // Until every PE has met the others.
  [[nodiscard]] bool are_up() const {
    const auto deadline = Clock::now() + kLimit;
    for (int pe = 0; pe < kPeCount; ++pe) {
      while (read_whole_file(file(fmt::format("job.{}", pe))) != "up\n") {
        if (Clock::now() > deadline) {
          return false;
        }
        std::this_thread::sleep_for(10ms);
      }
    }
    return true;
  }

  void kill_pe(int pe) { ::kill(pids_[pe], SIGKILL); }

  // The status, 128 + signal, or kStillRunning after the limit.
  int wait_for(int pe) {
    const auto deadline = Clock::now() + kLimit;
    int status = 0;
    while (::waitpid(pids_[pe], &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        return kStillRunning;
      }
      std::this_thread::sleep_for(10ms);
    }
    pids_[pe] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t start_pe(int pe,
                 std::vector<std::string> words,
                 const std::map<std::string, std::string>& variables) {
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const std::string output = file(fmt::format("err.{}", pe));
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const auto& [name, value] : variables) {
        ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
      }
      const int descriptor = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(descriptor, STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    return pid;
  }

  std::string directory_;
  std::vector<pid_t> pids_;
};

TEST_F(Torchrun, APeThatIsKilledEndsTheOthersThoughTheyCallNothing) {
  start({"compute"});
  ASSERT_TRUE(are_up());
  kill_pe(1);
  EXPECT_EQ(wait_for(1), 128 + SIGKILL);
  for (const int pe : {0, 2}) {
    EXPECT_EQ(wait_for(pe), 1);
    EXPECT_THAT(errors(pe), HasSubstr(fmt::format("PE {} ends, because its job cannot go on: PE 1 "
                                                  "is lost",
                                                  pe)));
  }
}

TEST_F(Torchrun, TheHostOfTheRendezvousThatIsKilledEndsTheOthers) {
  start({"compute"});
  ASSERT_TRUE(are_up());
  kill_pe(0);
  EXPECT_EQ(wait_for(0), 128 + SIGKILL);
  for (const int pe : {1, 2}) {
    EXPECT_EQ(wait_for(pe), 1);
    EXPECT_THAT(errors(pe), HasSubstr("has closed the connection; its host has ended"));
  }
}

TEST_F(Torchrun, GlobalExitEndsAllWithItsStatusAndWithoutAWordFromTheOthers) {
  for (const int status : {0, 7}) {
    start({"exit", std::to_string(status)});
    for (int pe = 0; pe < kPeCount; ++pe) {
      EXPECT_EQ(wait_for(pe), status);
      if (pe != 1) {
        EXPECT_EQ(errors(pe), "");
      }
    }
    TearDown();
    SetUp();
  }
}

TEST_F(Torchrun, APeThatEndsWithoutFinalizeEndsTheOthers) {
  start({"quit"});
  EXPECT_EQ(wait_for(1), 0);
  for (const int pe : {0, 2}) {
    EXPECT_EQ(wait_for(pe), 1);
    EXPECT_THAT(errors(pe), HasSubstr("PE 1 is lost"));
  }
}

TEST_F(Torchrun, PesThatFinalizeEndWell) {
  start({"finalize"});
  for (int pe = 0; pe < kPeCount; ++pe) {
    EXPECT_EQ(wait_for(pe), 0) << errors(pe);
    EXPECT_EQ(errors(pe), "");
  }
}

TEST_F(Torchrun, ProgramsMayFinalizeAndInitializeAgain) {
  const std::vector<std::vector<std::string>> programs{
      {WEFT_BINARY_DIR "/openshmem_init_again", "again"}, {WEFT_BINARY_DIR "/again", "3"}};
  for (const std::vector<std::string>& program : programs) {
    for (const char* local_count : {"3", "1"}) {  // they meet at a socket of the host, and over TCP
      start_program(program, {{"LOCAL_WORLD_SIZE", local_count}, {"WEFT_JOB_SECRET", "s"}});
      for (int pe = 0; pe < kPeCount; ++pe) {
        EXPECT_EQ(wait_for(pe), 0) << errors(pe);
      }
      TearDown();
      SetUp();
    }
  }
}

TEST_F(Torchrun, PesOverTcpHearOfItAsWell) {
  start({"compute"}, {{"LOCAL_WORLD_SIZE", "1"}, {"WEFT_JOB_SECRET", "s"}});
  ASSERT_TRUE(are_up());
  kill_pe(2);
  EXPECT_EQ(wait_for(2), 128 + SIGKILL);
  for (const int pe : {0, 1}) {
    EXPECT_EQ(wait_for(pe), 1);
    EXPECT_THAT(errors(pe), HasSubstr("PE 2 is lost"));
  }
}

TEST_F(Torchrun, AJobOfSeveralHostsAsksForASecret) {
  start({"compute"}, {{"LOCAL_WORLD_SIZE", "1"}, {"MASTER_ADDR", "192.0.2.1"}});
  for (int pe = 0; pe < kPeCount; ++pe) {
    EXPECT_NE(wait_for(pe), 0);
    EXPECT_THAT(errors(pe), HasSubstr("set WEFT_JOB_SECRET to the same random text on every host"));
  }
}

}  // namespace
}  // namespace weft
