// One PE of a benchmark on GPUs: its symmetric device memory, agreement with the other PEs, and the
// rows. No CUDA type and no heavy header, since the files with kernels include it.
//
// Threads: the main one of each PE. What is said to be collective is called by all PEs in the same
// order. Errors: JobError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/perf/gpu/options.hpp"
#include "tools/perf/job.hpp"

namespace weft::perf {

class Report;

namespace gpu {

inline constexpr std::size_t kWordCount = 64;
inline constexpr std::size_t kLeastBufferBytes = std::size_t{1} << 20U;

// What a table's columns are.
enum class Layout : std::uint8_t { Collective, Bandwidth, Latency, Rate };

// The same keys, in JSON, as the rows of bench/peers.
struct Row {
  Layout layout = Layout::Latency;
  std::string title;
  std::string scope = "None";
  std::string type = "8-bit";
  std::size_t bytes = 0;
  std::size_t count = 0;
  double latency_us = 0;  // a round trip for ping-pongs; 0 on a PE that measured nothing
  double bus_factor = 0;  // bus bandwidth / algorithm bandwidth
  double directions = 1;  // in which the bytes move at once
  std::uint64_t iterations = 0;
  std::uint32_t ctas = 1;
  std::uint32_t threads = 1;
  // Of Rate: until the proxy has a command, until its answer is here, and an answer without a
  // proxy.
  double p50_us = 0;
  double p99_us = 0;
  double answer_p50_us = 0;
  double answer_p99_us = 0;
  double bare_answer_p50_us = 0;
  double numbered_answer_p50_us = 0;  // as bare, after an atomic of GPU memory
  bool has_spread = false;            // the table also has the shortest time of all PEs
};

// What arrived between two looks.
struct Interval {
  double milliseconds = 0;  // since the start, at its end
  std::size_t page_bytes = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

// A block of symmetric device memory. Made and freed by all PEs in the same order.
class DeviceBlock {
 public:
  explicit DeviceBlock(std::size_t bytes);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  DeviceBlock(DeviceBlock&&) = delete;
  DeviceBlock& operator=(DeviceBlock&&) = delete;

  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Session {
 public:
  Session(Job& job, const Options& options, Report& report, std::string gpu_name);

  [[nodiscard]] const Options& options() const { return options_; }

  [[nodiscard]] int me() const { return static_cast<int>(job_.me()); }

  [[nodiscard]] int pe_count() const { return static_cast<int>(job_.pe_count()); }

  // The other one of tests for two, as PE 0 sees it.
  [[nodiscard]] int partner() const { return static_cast<int>(job_.partner()); }

  // PE 0 or its partner.
  [[nodiscard]] bool is_one_of_two() const { return me() == 0 || me() == partner(); }

  // For PE 0 and its partner, each other.
  [[nodiscard]] int other() const { return me() == 0 ? partner() : 0; }

  // Symmetric, of the largest size that the options ask for.
  [[nodiscard]] void* source() const { return source_.data(); }

  [[nodiscard]] void* dest() const { return dest_.data(); }

  // kWordCount symmetric words, zero at first.
  [[nodiscard]] std::uint64_t* words() const { return static_cast<std::uint64_t*>(words_.data()); }

  // Of the host threads; also ends whatever kernels of this PE are running. Collective.
  static void barrier();

  // Collective: the longest of the PEs' times goes into the row, and one PE's wrong data is all's.
  void add(const Row& row, std::uint64_t wrong_count);

  // A line of a table over time. Not collective; PE 0 prints.
  void add_interval(const Interval& interval);

  // Throws on every PE if a row's data was wrong. Collective.
  void require_right() const;

 private:
  [[nodiscard]] bool begins_table(std::string_view title);

  Job& job_;
  const Options& options_;
  Report& report_;
  std::string gpu_name_;
  DeviceBlock source_;
  DeviceBlock dest_;
  DeviceBlock words_;
  std::string table_;
  std::uint64_t wrong_rows_ = 0;
};

// Joins the job, takes a GPU and runs the benchmark.
void run(const Options& options);

// ---- With CUDA; without it in none.cpp

// Makes the GPU of that number the current one.
void take_gpu(int index);
[[nodiscard]] std::string name_of_gpu();
// Ends kernels of this PE that are running; throws the reason if one has failed.
void wait_for_gpu();

// ---- The benchmarks, by file; without CUDA in none.cpp

void run_bandwidth(Session& session);          // point_to_point.cu
void run_put_get_latency(Session& session);    // point_to_point.cu
void run_small(Session& session);              // small.cu: p and g
void run_ping_pong(Session& session);          // ping_pong.cu
void run_atomics(Session& session);            // atomics.cu
void run_collective(Session& session);         // collectives.cu
void run_stream_transfer(Session& session);    // stream.cu: put and get
void run_stream_ping_pong(Session& session);   // stream.cu
void run_stream_collective(Session& session);  // stream.cu
void run_ring_rate(Session& session);          // ring.cu
void run_put_signal_rate(Session& session);    // put_signal_rate.cu
void run_putv_rate(Session& session);          // putv_rate.cu
void run_paged_write(Session& session);        // paged_write.cu

}  // namespace gpu
}  // namespace weft::perf
