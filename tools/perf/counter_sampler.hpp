// Looks at the bytes of this host's network devices again and again while something is measured, from a
// thread of its own. Files stay open; a look is one read of /proc/self/net/dev and two of each RDMA device.
//
// The main thread calls begin and end; between them the samples are the thread's, otherwise the main
// thread's. The thread sleeps between looks. Where a look takes long (drivers may ask their device) the
// interval is stretched, so that looking never takes more than a twentieth of the time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/perf/intervals.hpp"

namespace weft::perf {

// Pure: fills the bytes of the interfaces named, in the order of `names`, from the text of /proc/net/dev.
// What is not there stays as it is.
void read_net_dev(std::string_view text,
                  const std::vector<std::string>& names,
                  std::vector<NicSample>& samples);

// The devices of this process's namespace, with their files open. One thread at a time.
class DeviceFiles {
 public:
  DeviceFiles();
  ~DeviceFiles();
  DeviceFiles(const DeviceFiles&) = delete;
  DeviceFiles& operator=(const DeviceFiles&) = delete;
  DeviceFiles(DeviceFiles&&) = delete;
  DeviceFiles& operator=(DeviceFiles&&) = delete;

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // In the order of names().
  [[nodiscard]] std::vector<NicSample> read();

 private:
  struct RdmaFile {
    std::size_t device = 0;
    int descriptor = -1;
    std::uint64_t factor = 1;
    std::uint64_t NicSample::* direction = nullptr;
  };

  void open_rdma(const std::string& name);
  [[nodiscard]] std::string_view read_text(int descriptor);

  std::vector<std::string> names_;
  int net_dev_ = -1;
  std::vector<RdmaFile> rdma_;
  std::string buffer_;
};

class CounterSampler {
 public:
  explicit CounterSampler(std::chrono::milliseconds interval);
  ~CounterSampler();
  CounterSampler(const CounterSampler&) = delete;
  CounterSampler& operator=(const CounterSampler&) = delete;
  CounterSampler(CounterSampler&&) = delete;
  CounterSampler& operator=(CounterSampler&&) = delete;

  // A measured part begins, ends. The first sample is that of begin.
  void begin();
  void end();

  // Not between begin and end.
  [[nodiscard]] const std::vector<CounterSample>& samples() const { return samples_; }

  [[nodiscard]] const std::vector<std::string>& names() const { return files_.names(); }

  // As chosen, or longer where a look takes long.
  [[nodiscard]] std::chrono::nanoseconds interval() const { return interval_; }

  // The mean time of a look.
  [[nodiscard]] double look_s() const;

 private:
  void run();
  void look(bool begins);

  DeviceFiles files_;
  std::chrono::nanoseconds interval_;
  std::vector<CounterSample> samples_;
  std::chrono::nanoseconds looked_for_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_running_ = false;
  std::thread thread_;
};

}  // namespace weft::perf
