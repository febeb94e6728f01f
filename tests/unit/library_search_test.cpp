// Which of several files is opened, and what is said of those before it.
#include "src/base/library_search.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LibrarySearchTest : public testing::Test {
 protected:
  LibrarySearchTest()
      : root_(std::filesystem::temp_directory_path() /
              fmt::format("weft-libraries-{}", ::getpid())) {}

  ~LibrarySearchTest() override { std::filesystem::remove_all(root_); }

  // Not a library, so the loader refuses it.
  void write(const std::string& name) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << "text";
  }

  [[nodiscard]] std::string at(const std::string& name) const { return (root_ / name).string(); }

 private:
  std::filesystem::path root_;
};

std::string accept_all(const OpenLibrary& /*library*/) {
  return "";
}

std::vector<std::string> files_of(const std::vector<RefusedLibrary>& refused) {
  std::vector<std::string> files;
  for (const RefusedLibrary& each : refused) {
    files.push_back(each.file);
  }
  return files;
}

TEST_F(LibrarySearchTest, TheLoadersOwnSearchComesFirst) {
  const auto search =
      search_library({.soname = "libm.so.6", .folders = {}, .named = ""}, accept_all);
  ASSERT_TRUE(search.has_found());
  EXPECT_THAT(search.file, testing::EndsWith("/libm.so.6"));
  EXPECT_TRUE(search.refused.empty());
}

TEST_F(LibrarySearchTest, FoldersAreTriedInTheirOrderAndTheHighestVersionFirst) {
  for (const char* name : {"a/libnone.so.1", "b/1.9.0/libnone.so.1", "b/1.22.0/libnone.so.1"}) {
    write(name);
  }
  const std::array<std::string, 2> patterns{at("b/*"), at("a")};
  const std::array<std::string_view, 2> folders{patterns[0], patterns[1]};
  const auto search =
      search_library({.soname = "libnone.so.1", .folders = folders, .named = ""}, accept_all);
  EXPECT_FALSE(search.has_found());
  EXPECT_THAT(files_of(search.refused),
              ElementsAre("libnone.so.1", at("b/1.22.0/libnone.so.1"), at("b/1.9.0/libnone.so.1"),
                          at("a/libnone.so.1")));
  EXPECT_THAT(search.refused[1].reason, HasSubstr("file too short"));
}

TEST_F(LibrarySearchTest, OneThatIsNotAcceptedIsNamedWithTheReasonAndTheNextIsTried) {
  const auto only_math = [](const OpenLibrary& library) {
    return std::string(library.find("cos") == nullptr ? "it has no cos" : "");
  };
  const std::filesystem::path math =
      search_library({.soname = "libm.so.6", .folders = {}, .named = ""}, accept_all).file;
  write("libc.so.6");
  std::filesystem::remove(at("libc.so.6"));
  std::filesystem::create_symlink(math, at("libc.so.6"));
  const std::string folder = at("");
  const std::array<std::string_view, 1> folders{folder};
  const auto search =
      search_library({.soname = "libc.so.6", .folders = folders, .named = ""}, only_math);
  EXPECT_TRUE(search.has_found());
  ASSERT_EQ(search.refused.size(), 1U);
  EXPECT_EQ(search.refused[0].file, "libc.so.6");
  EXPECT_THAT(refused_text(search), HasSubstr("it has no cos"));
}

TEST_F(LibrarySearchTest, AFileThatIsNamedIsTheOnlyOneTried) {
  const auto search =
      search_library({.soname = "libm.so.6", .folders = {}, .named = at("nothing.so")}, accept_all);
  EXPECT_FALSE(search.has_found());
  ASSERT_EQ(search.refused.size(), 1U);
  EXPECT_THAT(search.refused[0].reason, HasSubstr("No such file"));
}

TEST(OpenLibraryTest, AVersionOfASymbolIsNotAnother) {
  LibrarySearch search = search_library({.soname = "libc.so.6", .folders = {}, .named = ""},
                                        [](const OpenLibrary& library) {
                                          EXPECT_NE(library.find("dlopen"), nullptr);
                                          EXPECT_EQ(library.find("dlopen", "GLIBC_9.9"), nullptr);
                                          return std::string();
                                        });
  EXPECT_TRUE(search.has_found());
}

}  // namespace
}  // namespace weft
