// The library's log: one line to stderr, prefixed with the PE. Control path and rare events only;
// the data path uses counters instead (base/counters.hpp). Any thread may call.
//
// WEFT_LOG selects the level: error, warn (default), info, debug. Nothing is logged twice: the
// first function that decides what an error means logs it; its callers do not.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weft::log {

enum class Level { Error, Warn, Info, Debug };

// Throws Error for a name that is not a level.
[[nodiscard]] Level parse_level(std::string_view name);

void set_level(Level level);
// From now on everything goes to this file, behind what it holds, and errors to stderr too; %h and
// %p in the name stand for host and process. Empty: to stderr alone. Throws Error if the file
// cannot be written.
void set_file(const std::string& name);
// Prefix of this process's lines, for example "PE 3". Empty before init.
void set_prefix(std::string_view prefix);
[[nodiscard]] bool enabled(Level level);
void write(Level level, std::string_view message);

template <typename... Values>
void at(Level level, fmt::format_string<Values...> format, Values&&... values) {
  if (enabled(level)) {
    write(level, fmt::format(format, std::forward<Values>(values)...));
  }
}

template <typename... Values>
void error(fmt::format_string<Values...> format, Values&&... values) {
  at(Level::Error, format, std::forward<Values>(values)...);
}

template <typename... Values>
void warn(fmt::format_string<Values...> format, Values&&... values) {
  at(Level::Warn, format, std::forward<Values>(values)...);
}

template <typename... Values>
void info(fmt::format_string<Values...> format, Values&&... values) {
  at(Level::Info, format, std::forward<Values>(values)...);
}

template <typename... Values>
void debug(fmt::format_string<Values...> format, Values&&... values) {
  at(Level::Debug, format, std::forward<Values>(values)...);
}

}  // namespace weft::log
