#include "src/runtime/device/watch.hpp"

#include <weft/device/list.hpp>

#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/log.hpp"
#include "src/base/service_thread.hpp"
#include "src/base/watch_list.hpp"

namespace weft::runtime {
namespace {

using device::FailureKind;
using device::OperationName;

constexpr auto kPeriod = std::chrono::milliseconds(50);
// A normal pass of the proxy takes microseconds.
constexpr std::uint64_t kPassNsMax = 2'000'000'000;

std::string_view name_of(OperationName operation) {
  switch (operation) {
    case OperationName::None:
      return "a call";
    case OperationName::Put:
      return "put";
    case OperationName::Get:
      return "get";
    case OperationName::P:
      return "p";
    case OperationName::G:
      return "g";
    case OperationName::PutSignal:
      return "put_signal";
    case OperationName::Signal:
      return "signal";
    case OperationName::Atomic:
      return "an atomic";
    case OperationName::WaitUntil:
      return "wait_until";
    case OperationName::Fence:
      return "fence";
    case OperationName::Quiet:
      return "quiet";
    case OperationName::Sync:
      return "sync";
    case OperationName::Barrier:
      return "barrier";
    case OperationName::Alltoall:
      return "alltoall";
    case OperationName::Broadcast:
      return "broadcast";
    case OperationName::Fcollect:
      return "fcollect";
    case OperationName::Reduce:
      return "reduce";
    case OperationName::ReduceScatter:
      return "reduce_scatter";
    case OperationName::Putv:
      return "putv";
    case OperationName::PutvSignal:
      return "putv_signal";
    case OperationName::MoeDispatch:
      return "a dispatch of weft.moe";
    case OperationName::MoeCombine:
      return "a combine of weft.moe";
  }
  return "an unknown call";
}

}  // namespace

std::string describe_failure(const device::FailureRecord& record) {
  const std::string where =
      fmt::format("a kernel ended in {} (block {})",
                  name_of(static_cast<OperationName>(record.operation)), record.block);
  const auto address = reinterpret_cast<const void*>(record.address);
  switch (static_cast<FailureKind>(record.kind)) {
    case FailureKind::None:
      return {};
    case FailureKind::NotSymmetric:
      return fmt::format(
          "{}: {} bytes at {} for PE {} are not in the symmetric device heap; use memory from "
          "weft_device_malloc (host memory and other device memory are not symmetric)",
          where, record.expected, address, record.pe);
    case FailureKind::NoSuchPe:
      return fmt::format("{}: there is no PE {}", where, record.pe);
    case FailureKind::PeerLost:
      return fmt::format("{}: PE {} is lost; the kernel waited at {} for {}", where, record.pe,
                         address, record.expected);
    case FailureKind::TimedOut:
      return fmt::format("{}; WEFT_TIMEOUT_S ends such waits", describe_wait(record));
    case FailureKind::CopyFailed:
      return fmt::format(
          "{}: a copy between this GPU and host memory has failed (see the error before), so what "
          "the kernel waited for cannot come",
          where);
    case FailureKind::CommandRefused:
      return fmt::format(
          "{}: a command of this GPU has been refused (see the error before), so what the kernel "
          "waited for cannot come",
          where);
    case FailureKind::RankMissing:
      return fmt::format(
          "{}: nothing came from PE {} to call {} in time, and in a graph its exchange ends "
          "kernels "
          "then (on_timeout \"error\"); look at what that PE does, or raise the timeout",
          where, record.pe, record.expected);
    case FailureKind::NotCooperative:
      return fmt::format(
          "{}: a call of grid scope in a kernel of {} blocks that was not launched cooperatively; "
          "launch it with weft::device::launch_collective, or cudaLaunchCooperativeKernel",
          where, record.expected);
    case FailureKind::TooManyMembers:
      return fmt::format(
          "{}: the team has {} members, some of them on other nodes, too many for a reduction in a "
          "kernel; reduce on a stream, or in smaller teams",
          where, record.expected);
    case FailureKind::SegmentNotSymmetric:
      return fmt::format(
          "{}: segment {} of the list, {} bytes to {} of PE {}, is not in the symmetric device "
          "heap; "
          "use memory from weft_device_malloc",
          where, record.seen, record.expected, address, record.pe);
    case FailureKind::SegmentNotGlobal:
      return fmt::format(
          "{}: segment {} of the list, {} bytes for PE {}, on another node, lies in shared or "
          "local "
          "memory at {}; longer ones than {} bytes must be in global memory",
          where, record.seen, record.expected, record.pe, address, device::kCarriedBytesMax);
  }
  return where;
}

std::string describe_wait(const device::FailureRecord& wait) {
  const std::string pe = wait.pe < 0 ? "" : fmt::format(", for PE {}", wait.pe);
  const std::string word =
      wait.address == 0
          ? ""
          : fmt::format(": the word at {} is {}, awaited with {}",
                        reinterpret_cast<const void*>(wait.address), wait.seen, wait.expected);
  return fmt::format("a kernel has been waiting in {} (block {}{}) for {} s{}",
                     name_of(static_cast<OperationName>(wait.operation)), wait.block, pe,
                     wait.waited_ms / 1000, word);
}

DeviceWatch::DeviceWatch(KernelPage& page,
                         std::function<std::optional<Pe>()> lost_pe,
                         std::function<void()> end_job,
                         const std::uint64_t& proxy_pass_ns)
    : page_(page),
      lost_pe_(std::move(lost_pe)),
      end_job_(std::move(end_job)),
      proxy_pass_ns_(proxy_pass_ns),
      thread_(start_service_thread([this] { run(); })) {
  ::pthread_setname_np(thread_.native_handle(), "weft-watch");
}

DeviceWatch::~DeviceWatch() {
  {
    const std::unique_lock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::optional<std::string> DeviceWatch::ended_kernel() const {
  // SYNC failure-record (pairs with include/weft/device/failure.cuh): `kind` was written last.
  if (AtomicRef(page_.failure.kind).load(std::memory_order_acquire) == 0) {
    return std::nullopt;
  }
  return describe_failure(page_.failure);
}

std::optional<std::string> DeviceWatch::failure() const {
  if (auto text = ended_kernel()) {
    return text;
  }
  const std::lock_guard lock(mutex_);
  return given_up_;
}

Status DeviceWatch::failure_status() const {
  if (!failure()) {
    return Status::Ok;
  }
  switch (static_cast<FailureKind>(page_.failure.kind)) {
    case FailureKind::PeerLost:
      return Status::PeerLost;
    case FailureKind::TimedOut:
    case FailureKind::RankMissing:
      return Status::Timeout;
    default:
      return Status::InvalidArgument;
  }
}

void DeviceWatch::give_up(FailureKind kind, const std::string& why) {
  if (end_kernels(kind, -1, why)) {
    log::error("device: {}", why);
  }
}

void DeviceWatch::note_failed(Pe pe, device::CommandKind kind, Status status) {
  if (status == Status::InvalidArgument) {  // what a kernel waits for then cannot come
    give_up(FailureKind::CommandRefused,
            fmt::format("a command ({}) to PE {} failed: {}", static_cast<int>(kind), pe.value,
                        to_string(status)));
  } else if (kind == device::CommandKind::Nop) {
    log::warn("device: PE {} is lost: what kernels of this PE put to it or get from it fails",
              pe.value);
  }
}

// By the watch's thread or the proxy's; the first one counts.
bool DeviceWatch::end_kernels(FailureKind kind,
                              std::int32_t pe,
                              std::optional<std::string> given_up) {
  const std::lock_guard lock(mutex_);
  if (page_.abort.kind != 0) {
    return false;
  }
  given_up_ = std::move(given_up);
  page_.abort.pe = pe;
  // SYNC device-abort (pairs with include/weft/device/spin.cuh): a kernel that sees it reads `pe`.
  AtomicRef(page_.abort.kind).store(static_cast<std::uint32_t>(kind), std::memory_order_release);
  return true;
}

void DeviceWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    look();
    lock.lock();
    wake_.wait_for(lock, kPeriod, [this] { return stop_; });
  }
}

// A CUDA call of the proxy blocks while another thread of the process is in a synchronous copy that
// waits for a kernel. Measured on an H200; launches and copies of other threads proceed in every
// other case.
void DeviceWatch::look_at_proxy() {
  // relaxed: a number that is only compared with the clock
  const std::uint64_t pass_ns =
      AtomicRef(const_cast<std::uint64_t&>(proxy_pass_ns_)).load(std::memory_order_relaxed);
  if (pass_ns == 0 || pass_ns == said_of_pass_ns_ || now_ns() < pass_ns + kPassNsMax) {
    return;
  }
  said_of_pass_ns_ = pass_ns;
  log::warn(
      "the proxy has been blocked in a CUDA call for {} s, and blocks kernels that wait for other "
      "nodes. "
      "Probably another thread of this process is in cudaMemcpy, cudaMemset or another synchronous "
      "call that waits for such a "
      "kernel; wait for the kernel first (cudaStreamSynchronize), or use cudaMemcpyAsync",
      kPassNsMax / 1'000'000'000);
}

// A report that is being overwritten by the next one may mix the two, which then follows.
void DeviceWatch::look_at_waits() {
  // SYNC wait-record (pairs with include/weft/device/spin.cuh): `number` was written last.
  const std::uint32_t number = AtomicRef(page_.waiting.number).load(std::memory_order_acquire);
  if (number != said_of_wait_) {
    said_of_wait_ = number;
    log::warn("{}; WEFT_WAIT_REPORT sets the time of the first report",
              describe_wait(page_.waiting.wait));
  }
}

void DeviceWatch::say_of_ended(const std::string& text) {
  switch (static_cast<FailureKind>(page_.failure.kind)) {
    case FailureKind::RankMissing:  // its exchange has said so, and the program goes on
      return;
    case FailureKind::TimedOut:
      log::error("{}", text);
      end_job_();
      return;
    default:
      log::error("{}", text);
  }
}

void DeviceWatch::look() {
  look_at_proxy();
  look_at_waits();
  const auto text = ended_kernel();
  look_at_watched();  // after it: an exchange says who is missing before its kernel ends
  if (text && !has_said_) {
    has_said_ = true;
    say_of_ended(*text);
  }
  // relaxed: only whether there is anything left to do
  if (AtomicRef(page_.abort.kind).load(std::memory_order_relaxed) != 0) {
    return;
  }
  if (const auto lost = lost_pe_()) {
    end_kernels(FailureKind::PeerLost, static_cast<std::int32_t>(lost->value), std::nullopt);
  }
}

}  // namespace weft::runtime
