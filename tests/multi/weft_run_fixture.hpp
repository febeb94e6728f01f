// A test of weft-run: a directory of its own, commands whose output is kept there, and what is left
// of their processes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/whole_file.hpp"
#include "tests/support/paths.hpp"

namespace weft::test {

using namespace std::chrono_literals;

inline std::string run_path() {
  return WEFT_BINARY_DIR "/weft-run";
}

inline std::string probe() {
  return WEFT_BINARY_DIR "/bootstrap_probe";
}

inline constexpr auto kLimit = 60s;  // a hang, also under a sanitizer on a busy machine

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In the child only.
inline void redirect(int fd, const std::string& path, int flags) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, fd) < 0) {
    ::_exit(126);
  }
  ::close(opened);
}

// A directory of the test's own, with what its processes write.
class WeftRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "weft-run-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string directory() const { return directory_.string(); }

  [[nodiscard]] std::string file(const std::string& name) const { return directory_ / name; }

  // Starts a shell command whose standard streams are files.
  [[nodiscard]] pid_t start(const std::string& command) const {
    const pid_t pid = ::fork();
    if (pid == 0) {
      redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
      redirect(STDOUT_FILENO, file("out"), O_WRONLY | O_CREAT | O_TRUNC);
      redirect(STDERR_FILENO, file("err"), O_WRONLY | O_CREAT | O_TRUNC);
      ::unsetenv("WEFT_LAB");  // NOLINT(concurrency-mt-unsafe): the child has one thread
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }

  // The exit status as a shell has it; kills it and returns -1 after kLimit.
  [[nodiscard]] static int wait_for(pid_t pid) {
    const auto deadline = Clock::now() + kLimit;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
        return -1;
      }
      std::this_thread::sleep_for(2ms);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  [[nodiscard]] int run(const std::string& command) const { return wait_for(start(command)); }

  [[nodiscard]] int weft_run(const std::string& arguments) const {
    return run(run_path() + " " + arguments);
  }

  [[nodiscard]] std::string out() const { return read_file(file("out")); }

  [[nodiscard]] std::string err() const { return read_file(file("err")); }

  [[nodiscard]] bool wait_for_file(const std::string& name) const {
    const auto deadline = Clock::now() + kLimit;
    while (!std::filesystem::exists(file(name)) || read_file(file(name)).empty()) {
      if (Clock::now() > deadline) {
        return false;
      }
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }

  // A script that PEs run.
  [[nodiscard]] std::string script(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(file(name), std::filesystem::perms::owner_all);
    return file(name);
  }

  // Processes that carry this test's mark in their environment, which all of a job's do.
  [[nodiscard]] std::vector<pid_t> marked() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) {
        continue;
      }
      // Nothing for a process that ends meanwhile.
      const auto environment = read_whole_file((entry.path() / "environ").string());
      if (environment && environment->find("WEFT_TEST_MARK=" + directory()) != std::string::npos) {
        found.push_back(std::stoi(name));
      }
    }
    return found;
  }

  [[nodiscard]] bool all_gone_within(std::chrono::milliseconds limit) const {
    const auto deadline = Clock::now() + limit;
    while (!marked().empty()) {
      if (Clock::now() > deadline) {
        return false;
      }
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  // Every PE has a background grandchild, and one that left its session.
  [[nodiscard]] std::string family_script() const {
    return script("family.sh",
                  fmt::format("sleep 1000 &\nsetsid sleep 1000 &\necho x >{0}/up.$WEFT_PE\n"
                              "trap '' TERM\nwhile :; do sleep 0.1; done",
                              directory()));
  }

  [[nodiscard]] pid_t start_family(const std::string& options) const {
    return start(fmt::format("{} -n 2 {} --env WEFT_TEST_MARK={} -- {}", run_path(), options,
                             directory(), family_script()));
  }

  // Stands for ssh: runs the command on this machine, with the words that ssh would get.
  [[nodiscard]] std::string fake_ssh() const {
    return script("ssh.sh", fmt::format("echo \"$1\" >>{}/hosts\nshift\nexec \"$@\"", directory()));
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace weft::test
