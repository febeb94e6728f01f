// The key-value store of a launcher that speaks PMI-1 on the descriptor PMI_FD: `srun --mpi=pmi2`,
// and MPICH's Hydra and what descends from it. No library is needed: requests and answers are lines
// of "name=value" words (MPICH's "PMI v1 wire protocol").
//
// One thread at a time. Every wait has the deadline given at construction, counted from the
// request.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace weft::bootstrap {

class PmiStore {
 public:
  // `socket` belongs to the launcher and is not closed. Throws Error: InvalidArgument if it is not
  // a socket or does not speak PMI-1, otherwise as the other calls: Timeout, or PeerLost if the
  // launcher has closed it.
  PmiStore(int socket, std::chrono::milliseconds timeout);
  PmiStore(const PmiStore&) = delete;
  PmiStore& operator=(const PmiStore&) = delete;
  // As finish(0).
  ~PmiStore();

  // Tells the launcher how this process ends: with 0 well, else so that the launcher shall end the
  // others, too. The first call counts; after it the store is closed. Never blocks long, never
  // throws.
  void finish(int status);

  // A value is text without blanks and line ends, of at most value_bytes_max() bytes.
  void put(std::string_view key, std::string_view value);
  // What other processes have put before it can be read after it.
  void barrier();
  [[nodiscard]] std::string get(std::string_view key);

  [[nodiscard]] std::size_t value_bytes_max() const { return value_bytes_max_; }

 private:
  void send_line(std::string_view line);
  // Sends a line and returns the answer, which must be the command `awaited` without a failure
  // code.
  std::string request(std::string_view line, std::string_view awaited);
  [[nodiscard]] std::string read_line(std::string_view awaited);

  int socket_;
  std::chrono::milliseconds timeout_;
  std::string unread_;
  std::string store_name_;
  std::size_t value_bytes_max_ = 0;
  bool is_finished_ = false;
};

// The word after "name=" in a line of the protocol; empty if it is not there. Pure.
[[nodiscard]] std::string pmi_field(std::string_view line, std::string_view name);

}  // namespace weft::bootstrap
