// The limit of open files: raised, counted, and named where it is too low.
#include "src/base/open_files.hpp"

#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Runs `body` in a child, whose limits are its own. True if it returns true.
template <typename Body>
bool is_true_in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

rlimit limit_now() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

TEST(OpenFiles, AreAllowedUpToTheHardLimit) {
  EXPECT_TRUE(is_true_in_child([] {
    const rlimit low{.rlim_cur = 100, .rlim_max = 500};
    ::setrlimit(RLIMIT_NOFILE, &low);
    const rlimit before = raise_open_files();
    return before.rlim_cur == 100 && limit_now().rlim_cur == 500 && limit_now().rlim_max == 500;
  }));
}

TEST(OpenFiles, AreCountedAndNamedWithTheLimitWhereTheyAreTooMany) {
  EXPECT_TRUE(is_true_in_child([] {
    const std::uint64_t before = count_open_files();
    const FileDescriptor one(::open("/dev/null", O_RDONLY));
    const rlimit low{.rlim_cur = 400, .rlim_max = 400};
    ::setrlimit(RLIMIT_NOFILE, &low);
    const std::string hint = open_files_hint(1000);
    return count_open_files() == before + 1 && has_room_for_open_files(10) &&
           !has_room_for_open_files(1000) &&
           hint.find(std::to_string(before + 1001) + " open files are needed") == 0 &&
           hint.find("the limit is 400") != std::string::npos;
  }));
}

TEST(OpenFiles, StandardStreamsThatAreClosedAreOpenedOnNothing) {
  EXPECT_TRUE(is_true_in_child([] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    open_standard_streams();
    const FileDescriptor next(::open("/dev/null", O_RDONLY));
    return ::write(STDOUT_FILENO, "x", 1) == 1 && next.get() > STDERR_FILENO;
  }));
}

}  // namespace
}  // namespace weft
