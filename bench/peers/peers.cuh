// What the peer programs share: where a process stands in its job, how an id reaches the other
// processes, the options, the sizes of a sweep, and the tables and JSON lines that rows become.
// Host code of one thread; only rank 0 prints. Nothing here knows NVSHMEM or NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace peers {
// Says what went wrong and ends the process at once: exit handlers of a library would wait for
// peers.
[[noreturn]] void fail(const std::string& what);
void check(cudaError_t result, const char* action);
// Ends the process unless the variable has this value: `why` is the reason that is printed.
void require_environment(const char* name, const char* value, const char* why);

struct Place {
  int rank = 0;
  int count = 1;
  std::string id_file;

  static Place from_environment();  // PEER_RANK, PEER_COUNT, PEER_ID_FILE
};

// Rank 0's bytes reach all ranks by the id file, which must not exist before. Waits 120 s at most.
void exchange_id(const Place& place, void* id, size_t size);

struct Options {
  size_t size_min = 0, size_max = 0;  // 0: the benchmark's own
  size_t factor = 4;
  int iterations = 1000, warm_up = 20;
  int ctas = 32, threads = 0;  // threads 0: the benchmark's own
  std::vector<std::string> only, scopes, types;
  std::string json;
  bool windows = false;  // NCCL: buffers in symmetric windows

  static Options parse(int count, char** arguments);
  bool wants(const std::string& bench) const;
  bool wants_scope(const std::string& scope) const;
  bool wants_type(const std::string& type) const;
};

struct Range {
  size_t min, max;
};

// From min by factors to max, which always is the last; -b and -e replace the benchmark's own
// limits, but never go over `room`.
std::vector<size_t> sizes_of(const Options& options, Range own, size_t room);

// Fewer iterations where one moves much, the same on every rank: `budget` bytes in all, at least 4.
int iterations_of(const Options& options, size_t bytes, size_t budget);

enum class Layout { Collective, Bandwidth, Latency };

struct Row {
  const char* bench = "";
  const char* scope = "None";
  const char* type = "8-bit";
  size_t bytes = 0, count = 0;
  double latency_us = 0;  // a round trip for ping-pongs
  double bus_factor = 0;  // bus bandwidth / algorithm bandwidth
  int iterations = 0, ctas = 1, threads = 1;
  bool verified = true;  // false: the data was wrong
};

class Report {
 public:
  Report(const Place& place, const Options& options, std::string peer, std::string version);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  void add(Layout layout, const Row& row);

  bool all_verified() const { return all_verified_; }

 private:
  void print_heading(Layout layout, const char* bench);
  void print_row(Layout layout, const Row& row) const;
  void write_json(Layout layout, const Row& row) const;

  int pes_;
  bool prints_;
  std::string peer_, version_, machine_, date_, last_bench_;
  bool windows_;
  std::FILE* json_ = nullptr;
  bool all_verified_ = true;
};
}  // namespace peers
