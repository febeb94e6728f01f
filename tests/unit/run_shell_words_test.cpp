// Words as a shell has them: what is split here comes out as a shell would read it, and what is
// quoted is read back.
#include <cstdio>
#include <string>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tools/run/shell_words.hpp"

namespace weft::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ShellWords, AreSplitAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(split_words("ssh -T  -o BatchMode=yes\t"),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes"));
  EXPECT_THAT(split_words(R"('/my dir/ssh' -i "a \"b\" c" d\ e f'g'h '' )"),
              ElementsAre("/my dir/ssh", "-i", "a \"b\" c", "d e", "fgh", ""));
  EXPECT_THAT(split_words("  "), IsEmpty());
}

TEST(ShellWords, AreRefusedWhereAQuoteDoesNotEnd) {
  EXPECT_THROW(static_cast<void>(split_words("ssh 'x")), Error);
  EXPECT_THROW(static_cast<void>(split_words("ssh \"x\\\"")), Error);
}

TEST(ShellWords, OfOnePlainWordStayAsTheyAre) {
  EXPECT_EQ(quote_for_shell("/usr/bin/weft-run"), "/usr/bin/weft-run");
  EXPECT_EQ(quote_for_shell(""), "''");
}

// The shell itself is asked.
std::string read_by_shell(const std::string& word) {
  const std::string command = "printf %s " + quote_for_shell(word);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) {
    text += static_cast<char>(c);
  }
  EXPECT_EQ(pipe == nullptr ? -1 : ::pclose(pipe), 0);
  return text;
}

TEST(ShellWords, ThatAreQuotedAreReadByAShellAsTheyWere) {
  std::string all;
  for (int c = 1; c < 128; ++c) {
    all += static_cast<char>(c);
  }
  for (const std::string& word :
       {std::string("/home/a user/weft-run"), std::string("it's"),
        std::string("$(id); `id` \"x\" \\ *"), std::string("~/weft-run"), all}) {
    EXPECT_EQ(read_by_shell(word), word);
    EXPECT_THAT(split_words(quote_for_shell(word)), ElementsAre(word));
  }
}

}  // namespace
}  // namespace weft::run
