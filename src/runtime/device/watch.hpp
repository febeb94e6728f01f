// Monitors kernels from the host: tells waiting kernels that a PE is lost, so that they abort, and reports why a
// kernel has aborted. A thread that sleeps between polls.
//
// Threads: its own, and any thread for `failure`.
#pragma once

#include <weft/device/state.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"

namespace weft::runtime {

class DeviceWatch {
 public:
  // `abort` and `record` are in memory that kernels can access. `lost_pe` returns a lost PE. `proxy_pass_ns` is the
  // time at which the proxy's thread began its current pass, 0 if there is none.
  DeviceWatch(device::AbortWord& abort,
              const device::FailureRecord& record,
              std::function<std::optional<Pe>()> lost_pe,
              const std::uint64_t& proxy_pass_ns);
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;
  ~DeviceWatch();

  [[nodiscard]] std::optional<std::string> failure() const;
  [[nodiscard]] Status failure_status() const;

 private:
  void run();
  void look();
  void look_at_proxy();

  device::AbortWord& abort_;
  const device::FailureRecord& record_;
  std::function<std::optional<Pe>()> lost_pe_;
  const std::uint64_t& proxy_pass_ns_;
  bool has_said_ = false;
  std::uint64_t said_of_pass_ns_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when everything else is constructed
};

// The record as an error message. Pure.
[[nodiscard]] std::string describe_failure(const device::FailureRecord& record);

}  // namespace weft::runtime
