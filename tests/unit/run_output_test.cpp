// What weft-run writes, to readers that are slow, that do not read, and that have gone.
#include <array>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"
#include "tools/run/output.hpp"

namespace weft::run {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }

  FileDescriptor read;
  FileDescriptor write;
};

std::string take(int fd, std::size_t bytes) {
  std::string text(bytes, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(fd, text.data(), bytes), 0)));
  return text;
}

TEST(OutputStream, KeepsWhatAReaderDoesNotTakeAndNeverWaits) {
  const Pipe pipe;
  OutputStream stream(pipe.write.get());
  const std::string text(300'000, 'x');
  stream.append(text);
  stream.write();  // the pipe holds less
  EXPECT_GT(stream.pending(), 0U);
  std::string read;
  while (read.size() < text.size()) {
    read += take(pipe.read.get(), 65536);
    stream.write();
  }
  EXPECT_EQ(read, text);
  EXPECT_EQ(stream.pending(), 0U);
  EXPECT_EQ(stream.error(), 0);
  EXPECT_EQ(::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(OutputStream, KnowsThatItsReaderHasGone) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  OutputStream stream(pipe.write.get());
  pipe.read.reset();
  stream.append("text");
  stream.write();
  EXPECT_EQ(stream.error(), EPIPE);
  stream.append("more");
  EXPECT_EQ(stream.pending(), 0U);
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(OutputStream, KnowsThatNothingCanBeWritten) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  OutputStream stream(full.get());
  stream.append("text");
  stream.write();
  EXPECT_EQ(stream.error(), ENOSPC);
}

}  // namespace
}  // namespace weft::run
