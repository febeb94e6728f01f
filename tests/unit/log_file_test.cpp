// WEFT_LOG_FILE: what goes to the file, and what still goes to stderr.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"

namespace weft::log {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogFile : public testing::Test {
 protected:
  void TearDown() override {
    set_file("");
    set_level(Level::Warn);
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] static std::string contents(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("weft-log-" + std::to_string(::getpid()));
};

TEST_F(LogFile, GetsEverythingAndErrorsGoToStderrToo) {
  std::filesystem::create_directory(folder_);
  const std::filesystem::path path = folder_ / ("of-" + std::to_string(::getpid()) + ".txt");
  set_level(Level::Info);
  testing::internal::CaptureStderr();
  set_file((folder_ / "of-%p.txt").string());
  write(Level::Info, "a word for the file");
  write(Level::Error, "a word for both");
  std::fflush(stderr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(contents(path), HasSubstr("info: a word for the file"));
  EXPECT_THAT(contents(path), HasSubstr("error: a word for both"));
  EXPECT_THAT(said, HasSubstr("a word for both"));
  EXPECT_THAT(said, Not(HasSubstr("a word for the file")));
  set_file(path.string());
  write(Level::Info, "more");
  EXPECT_THAT(contents(path), HasSubstr("a word for the file"));  // behind what it held
  EXPECT_THAT(contents(path), HasSubstr("more"));
}

TEST_F(LogFile, ThatCannotBeWrittenIsNamed) {
  try {
    set_file("/proc/no-such-folder/log");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("WEFT_LOG_FILE=/proc/no-such-folder/log: "));
    EXPECT_THAT(error.what(), HasSubstr("name a file that can be written"));
  }
}

}  // namespace
}  // namespace weft::log
