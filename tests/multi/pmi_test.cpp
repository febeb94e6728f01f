// Jobs that a launcher with PMI-1 started: processes with PMI_FD, and a small launcher's end of it
// in this one.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/pmi_store.hpp"
#include "tests/support/paths.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using bootstrap::pmi_field;
using testing::HasSubstr;

constexpr auto kLimit = 60s;  // a hang, also on a busy machine

struct Task {
  pid_t pid = 0;
  FileDescriptor pmi;
  FileDescriptor output;
  std::string words;   // that it printed
  std::string unread;  // of the last line on PMI_FD
  bool is_in_barrier = false;
  bool is_finalized = false;
};

// A launcher as small as PMI-1 allows: one thread, which also collects what the tasks print.
class Launcher {
 public:
  Launcher(int count, const std::vector<std::string>& command) {
    for (int rank = 0; rank < count; ++rank) {
      tasks_.push_back(start(rank, count, command));
    }
  }

  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  ~Launcher() {
    for (const Task& task : tasks_) {
      ::kill(task.pid, SIGKILL);
      ::waitpid(task.pid, nullptr, 0);
    }
  }

  // Serves until every task has closed its output; false after the limit.
  bool serve() {
    const auto deadline = Clock::now() + kLimit;
    while (true) {
      std::vector<pollfd> entries;
      bool is_open = false;
      for (const Task& task : tasks_) {
        is_open = is_open || task.output.is_open();
        // poll(2) skips negative descriptors.
        entries.push_back({.fd = task.pmi.get(), .events = POLLIN, .revents = 0});
        entries.push_back({.fd = task.output.get(), .events = POLLIN, .revents = 0});
      }
      if (!is_open || Clock::now() > deadline) {
        return !is_open;
      }
      ::poll(entries.data(), entries.size(), 100);
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (entries[2 * i].revents != 0) {
          read_requests(tasks_[i]);
        }
        if (entries[2 * i + 1].revents != 0) {
          read_output(tasks_[i]);
        }
      }
    }
  }

  std::function<std::string(const std::string& line)> answer_instead;  // empty: as usual

  [[nodiscard]] const Task& task(int rank) const { return tasks_[static_cast<std::size_t>(rank)]; }

  [[nodiscard]] const std::map<std::string, std::string>& values() const { return values_; }

 private:
  static Task start(int rank, int count, const std::vector<std::string>& command) {
    std::array<int, 2> pmi{};
    std::array<int, 2> output{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pmi.data()), 0);
    EXPECT_EQ(::pipe(output.data()), 0);
    ::fcntl(pmi[0], F_SETFD, FD_CLOEXEC);
    ::fcntl(output[0], F_SETFD, FD_CLOEXEC);
    std::vector<char*> words;
    for (const std::string& word : command) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    Task task{.pid = ::fork(), .pmi = FileDescriptor(pmi[0]), .output = FileDescriptor(output[0])};
    if (task.pid == 0) {
      ::setenv("PMI_FD", std::to_string(pmi[1]).c_str(), 1);   // NOLINT(concurrency-mt-unsafe)
      ::setenv("PMI_RANK", std::to_string(rank).c_str(), 1);   // NOLINT(concurrency-mt-unsafe)
      ::setenv("PMI_SIZE", std::to_string(count).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
      ::setenv("WEFT_BOOTSTRAP_TIMEOUT", "2", 1);              // NOLINT(concurrency-mt-unsafe)
      ::dup2(output[1], STDOUT_FILENO);
      ::dup2(output[1], STDERR_FILENO);
      ::close(output[1]);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(pmi[1]);
    ::close(output[1]);
    return task;
  }

  void read_requests(Task& task) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(task.pmi.get(), bytes.data(), bytes.size());
    if (count <= 0) {
      task.pmi.reset();
      return;
    }
    task.unread.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = task.unread.find('\n')) != std::string::npos;) {
      const std::string line = task.unread.substr(0, end);
      task.unread.erase(0, end + 1);
      std::string answer = answer_instead ? answer_instead(line) : "";
      if (answer.empty()) {
        answer = answer_to(task, line);
      }
      say(task, answer);
    }
  }

  std::string answer_to(Task& task, const std::string& line) {
    const std::string command = pmi_field(line, "cmd");
    if (command == "init") {
      return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    }
    if (command == "get_maxes") {
      return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024";
    }
    if (command == "get_my_kvsname") {
      return "cmd=my_kvsname kvsname=store";
    }
    if (command == "put") {
      values_[pmi_field(line, "key")] = pmi_field(line, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get") {
      const auto found = values_.find(pmi_field(line, "key"));
      return found == values_.end() ? "cmd=get_result rc=-1 msg=unknown_key"
                                    : "cmd=get_result rc=0 msg=success value=" + found->second;
    }
    if (command == "barrier_in") {
      task.is_in_barrier = true;
      leave_barrier();
      return "";
    }
    if (command == "abort") {
      for (const Task& each : tasks_) {
        ::kill(each.pid, SIGKILL);
      }
      return "";
    }
    EXPECT_EQ(command, "finalize");
    task.is_finalized = true;
    return "cmd=finalize_ack";
  }

  void leave_barrier() {
    for (const Task& task : tasks_) {
      if (!task.is_in_barrier) {
        return;
      }
    }
    for (Task& task : tasks_) {
      task.is_in_barrier = false;
      say(task, "cmd=barrier_out");
    }
  }

  static void say(const Task& task, std::string line) {
    line += '\n';
    if (line != "\n" && task.pmi.is_open()) {
      static_cast<void>(::send(task.pmi.get(), line.data(), line.size(), MSG_NOSIGNAL));
    }
  }

  static void read_output(Task& task) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(task.output.get(), bytes.data(), bytes.size());
    if (count > 0) {
      task.words.append(bytes.data(), static_cast<std::size_t>(count));
    } else {
      task.output.reset();
    }
  }

  std::vector<Task> tasks_;
  std::map<std::string, std::string> values_;
};

std::string probe() {
  return WEFT_BINARY_DIR "/bootstrap_probe";
}

TEST(Pmi, TasksOfALauncherAreOneJob) {
  Launcher launcher(4, {probe(), "100", "3"});
  ASSERT_TRUE(launcher.serve());
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(launcher.task(rank).words, HasSubstr(fmt::format("PE {} of 4 by pmi: ok", rank)));
    EXPECT_TRUE(launcher.task(rank).is_finalized);
  }
  EXPECT_EQ(launcher.values().size(), 1U);
}

TEST(Pmi, AProcessMayFinalizeAndInitializeAgain) {
  Launcher launcher(3, {WEFT_BINARY_DIR "/again", "3"});
  ASSERT_TRUE(launcher.serve());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(launcher.task(rank).words, fmt::format("PE {} of 3, 3 times\n", rank));
    EXPECT_TRUE(launcher.task(rank).is_finalized);
  }
  EXPECT_EQ(launcher.values().size(), 1U) << "it joined once";
}

TEST(Pmi, APeThatDiesOrLeavesIsNamed) {
  for (const char* how : {"die", "leave"}) {
    Launcher launcher(3, {probe(), how, "1"});
    ASSERT_TRUE(launcher.serve());
    for (const int rank : {0, 2}) {
      EXPECT_THAT(launcher.task(rank).words, HasSubstr("PE 1")) << how;
    }
  }
}

TEST(Pmi, GlobalExitIsNoCrashForTheLauncher) {
  const std::string file = testing::TempDir() + fmt::format("weft-pmi-{}", ::getpid());
  Launcher launcher(3, {WEFT_BINARY_DIR "/torchrun_pe", file, "exit", "7"});
  EXPECT_TRUE(launcher.serve());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(launcher.task(rank).is_finalized);
    std::filesystem::remove(fmt::format("{}.{}", file, rank));
  }
}

TEST(Pmi, ALauncherWhoseBarrierNeverEndsIsGivenUp) {
  Launcher launcher(2, {probe(), "hang", "1"});
  EXPECT_TRUE(launcher.serve());  // PE 0 asks the launcher to end PE 1
  EXPECT_THAT(launcher.task(0).words,
              HasSubstr("PE 0 is here, and not all of the 2 PEs came to the launcher's barrier"));
}

TEST(Pmi, WhatTheLauncherAnswersWronglyIsShown) {
  Launcher launcher(2, {probe()});
  launcher.answer_instead = [](const std::string& line) -> std::string {
    return line.starts_with("cmd=init") ? "cmd=response_to_init rc=-1 pmi_version=2" : "";
  };
  EXPECT_TRUE(launcher.serve());
  EXPECT_THAT(launcher.task(0).words,
              HasSubstr("the launcher answers 'cmd=response_to_init rc=-1"));
}

TEST(Pmi, ADescriptorThatIsNoSocketIsLeftAlone) {
  const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const FileDescriptor owner(file);
  try {
    const bootstrap::PmiStore store(file, 1s);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is not the launcher's socket"));
  }
}

}  // namespace
}  // namespace weft
