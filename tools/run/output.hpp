// What weft-run writes: the output of PEs that it passes on, each line marked with its PE on
// request and never cut by another PE's, and its own messages.
//
// One owner thread, which never waits here for a reader that does not read: what is not taken stays
// in a queue.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>

#include "src/base/clock.hpp"

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

// One of weft-run's own streams.
class OutputStream {
 public:
  explicit OutputStream(int fd) : fd_(fd) {}

  void append(std::string_view text);
  // Writes what the stream takes without waiting.
  void write();

  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] std::size_t pending() const { return pending_.size() - written_; }

  // The errno with which a write failed; from then on everything is dropped. 0: none has.
  [[nodiscard]] int error() const { return error_; }

 private:
  int fd_;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
  int error_ = 0;
};

class JobOutput {
 public:
  explicit JobOutput(bool prefixes);
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  // Bytes that a PE wrote to its stream 1 or 2.
  void append(std::uint32_t pe, std::uint32_t stream, std::string_view bytes);
  // A line of weft-run's own, on standard error.
  void say(std::string_view text);

  void write();

  // What to wait for before the next write(): a descriptor is -1 where nothing is pending.
  [[nodiscard]] std::array<pollfd, 2> interest() const;

  // The readers are behind: no more should be taken from PEs.
  [[nodiscard]] bool is_full() const;

  // Why standard output takes nothing any more, as an errno; 0 while it does.
  [[nodiscard]] int error() const { return out_.error(); }

  // Writes everything, also unfinished lines. Gives up at `deadline`.
  void finish(Clock::time_point deadline);

 private:
  [[nodiscard]] OutputStream& stream_of(std::uint32_t stream) { return stream == 2 ? err_ : out_; }

  OutputStream out_;
  OutputStream err_;
  bool prefixes_;
  LinePrefixer prefixer_;
};

// For a process that has no JobOutput (yet): one line on standard error, if that can be written.
void say_now(std::string_view text) noexcept;

}  // namespace weft::run
