// Words as a shell has them: for --ssh-command, and for what ssh's shell on another host reads.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::run {

// At blanks; quotes and backslashes keep a blank, as in a shell. Nothing is expanded. Throws Error
// (InvalidArgument) for a quote that does not end.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);

// Unchanged where a shell reads the word as it is.
[[nodiscard]] std::string quote_for_shell(std::string_view word);

}  // namespace weft::run
