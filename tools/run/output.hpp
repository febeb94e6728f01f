// The job's output, line by line, each line marked with its PE and never cut by another PE's.
// One owner thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace weft::run {

class LinePrefixer {
 public:
  // Takes text for descriptor 1 or 2.
  using Sink = std::function<void(std::uint32_t stream, std::string_view text)>;

  explicit LinePrefixer(Sink sink) : sink_(std::move(sink)) {}

  // Passes whole lines on, keeps the rest. A line longer than 1 MiB is passed on in parts.
  void append(std::uint32_t pe, std::uint32_t stream, std::string_view text);

  // The last lines of PEs that ended without a newline.
  void flush();

 private:
  void put_line(std::uint32_t pe, std::uint32_t stream, std::string_view line);

  Sink sink_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> partial_;  // by PE and stream
};

}  // namespace weft::run
