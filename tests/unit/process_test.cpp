// What is read of other processes under /proc, while they end.
#include "src/base/process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stop_token>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"
#include "src/base/whole_file.hpp"
#include "tests/support/paths.hpp"
#include "tools/run/processes.hpp"

namespace weft {
namespace {

constexpr std::int64_t kNoProcess = 0x7FFFFFFF;

// A child that waits until its end of the pipe closes.
struct Child {
  Child() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    FileDescriptor read(ends[0]);
    write.reset(ends[1]);
    pid = ::fork();
    if (pid == 0) {
      write.reset();
      char byte = 0;
      ::_exit(::read(read.get(), &byte, 1) == 0 ? 0 : 1);
    }
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ~Child() { end(); }

  void let_go() { write.reset(); }

  void end() {
    let_go();
    if (pid > 0) {
      ::waitpid(pid, nullptr, 0);
    }
    pid = -1;
  }

  pid_t pid = -1;
  FileDescriptor write;
};

void fork_and_reap(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::_exit(0);
    }
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace

TEST(ProcessStat, IsReadOfALivingChild) {
  const Child child;
  const auto stat = read_process_stat(child.pid);
  const auto mine = read_process_stat(::getpid());
  ASSERT_TRUE(stat && mine);
  EXPECT_EQ(stat->parent, ::getpid());
  EXPECT_FALSE(stat->has_ended());
  EXPECT_GE(stat->start_ticks, mine->start_ticks);
}

TEST(ProcessStat, ShowsAZombieAsEnded) {
  Child child;
  child.let_go();
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT), 0);
  const auto stat = read_process_stat(child.pid);
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->has_ended());
}

TEST(ProcessStat, IsNothingForAProcessThatIsNotThere) {
  EXPECT_FALSE(read_process_stat(kNoProcess));
}

TEST(ProcessStat, IsNothingForAProcessThatGoesBetweenOpenAndRead) {
  Child child;
  const std::string path = "/proc/" + std::to_string(child.pid) + "/stat";
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.is_open());
  child.end();
  EXPECT_FALSE(read_whole(file.get()));  // read(2) says ESRCH
}

TEST(ProcessStat, TakesANameOfAnyCharacters) {
  const auto stat =
      parse_process_stat("7 (a) Z ((b) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->start_ticks, 4711U);
}

TEST(ProcessStat, IsNothingForATextThatIsCutShort) {
  const std::string whole = "7 (sh) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4";
  ASSERT_TRUE(parse_process_stat(whole));
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_FALSE(parse_process_stat(whole.substr(0, size))) << size;
  }
}

TEST(WholeFile, IsNothingForAFolderAndForWhatIsNotThere) {
  EXPECT_FALSE(read_whole_file("/proc"));
  EXPECT_FALSE(read_whole_file("/no/such/file"));
}

TEST(WholeFile, ReadsMoreThanOneChunk) {
  const auto text = read_whole_file(WEFT_SOURCE_DIR "/LICENSE");
  ASSERT_TRUE(text);
  EXPECT_GT(text->size(), 8192U);
  EXPECT_EQ(text->find('\0'), std::string::npos);
}

// weft-run's agent looks for its descendants while other processes of the machine come and go.
TEST(Processes, AreListedWhileOthersComeAndGo) {
  const Child child;
  const std::jthread forker(fork_and_reap);
  for (int look = 0; look < 500; ++look) {
    const auto found = run::descendants();
    ASSERT_NE(std::ranges::find(found, child.pid), found.end()) << "look " << look;
  }
}

}  // namespace weft
