#include "tools/run/shell_words.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace weft::run {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

// What a shell's special characters are not.
bool is_plain(char c) {
  constexpr std::string_view kOthers = "@%+=:,./_-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

// Takes the characters of one quoted part, without its quotes, from behind the opening one.
std::string take_quoted(std::string_view& rest, char quote, std::string_view whole) {
  std::string part;
  while (!rest.empty() && rest.front() != quote) {
    const bool is_escape = quote == '"' && rest.front() == '\\' && rest.size() > 1 &&
                           (rest[1] == '"' || rest[1] == '\\');
    rest.remove_prefix(is_escape ? 1 : 0);
    part += rest.front();
    rest.remove_prefix(1);
  }
  if (rest.empty()) {
    fail(Status::InvalidArgument, "{}: a quote ({}) does not end", whole, quote);
  }
  rest.remove_prefix(1);
  return part;
}

std::string take_word(std::string_view& rest, std::string_view whole) {
  std::string word;
  while (!rest.empty() && !is_blank(rest.front())) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '\'' || c == '"') {
      word += take_quoted(rest, c, whole);
    } else if (c == '\\' && !rest.empty()) {
      word += rest.front();
      rest.remove_prefix(1);
    } else {
      word += c;
    }
  }
  return word;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string_view rest = text;
  while (true) {
    while (!rest.empty() && is_blank(rest.front())) {
      rest.remove_prefix(1);
    }
    if (rest.empty()) {
      return words;
    }
    words.push_back(take_word(rest, text));
  }
}

std::string quote_for_shell(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace weft::run
