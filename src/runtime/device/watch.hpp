// Monitors kernels from the host: tells waiting kernels that a PE is lost, so that they abort, and
// reports why a kernel has aborted. A thread that sleeps between polls; it also looks at what other
// layers have it watch (base/watch_list.hpp).
//
// Threads: its own, and any thread for `failure`.
#pragma once

#include <weft/device/command.hpp>
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

// What kernels and the host tell each other; in memory that both access.
struct KernelPage {
  device::AbortWord abort;
  alignas(64) device::FailureRecord failure;
  alignas(64) device::WaitRecord waiting;
};

class DeviceWatch {
 public:
  // `lost_pe` returns a lost PE. `end_job` is called after a wait that took longer than
  // WEFT_TIMEOUT_S. `proxy_pass_ns` is the time at which the proxy's thread began its current pass,
  // 0 if there is none.
  DeviceWatch(KernelPage& page,
              std::function<std::optional<Pe>()> lost_pe,
              std::function<void()> end_job,
              const std::uint64_t& proxy_pass_ns);
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;
  ~DeviceWatch();

  // Why a kernel ended, or why the library gave up what a kernel had asked for, even if none waited
  // for it.
  [[nodiscard]] std::optional<std::string> failure() const;
  [[nodiscard]] Status failure_status() const;

  // Logs `why`, and has kernels that wait abort, as `kind`: what they wait for cannot come. Once.
  // Any thread.
  void give_up(device::FailureKind kind, const std::string& why);

  // A command of a kernel could not be done: see proxy::FailureHook. Of a lost peer it tells once,
  // however many commands were for it.
  void note_failed(Pe pe, device::CommandKind kind, Status status);

 private:
  void run();
  void look();
  void look_at_proxy();
  void look_at_waits();
  void say_of_ended(const std::string& text);
  [[nodiscard]] std::optional<std::string> ended_kernel() const;
  // False: they were told to end before. `given_up` is what failure() says from then on, if no
  // kernel ends.
  bool end_kernels(device::FailureKind kind, std::int32_t pe, std::optional<std::string> given_up);

  KernelPage& page_;
  std::function<std::optional<Pe>()> lost_pe_;
  std::function<void()> end_job_;
  const std::uint64_t& proxy_pass_ns_;
  bool has_said_ = false;
  std::uint64_t said_of_pass_ns_ = 0;
  std::uint32_t said_of_wait_ = 0;       // the number of the last report
  std::optional<std::string> given_up_;  // under the mutex
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when everything else is constructed
};

// The record as an error message. Pure.
[[nodiscard]] std::string describe_failure(const device::FailureRecord& record);
// The same of a thread that has been waiting for long.
[[nodiscard]] std::string describe_wait(const device::FailureRecord& wait);

}  // namespace weft::runtime
