// Finding or making the fabric, taking a slot of a process, and futexes.
//
// Threads: fabric_link() under a lock; the rest any.
#include "loom/src/fabric_link.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace loom {
namespace {

std::string job_name() {
  return variable("LOOM_JOB").value_or("default");
}

std::uint32_t node_index(const Settings& settings) {
  const auto text = variable("LOOM_NODE");
  if (!text) {
    return 0;
  }
  std::uint32_t node = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), node);
  if (error != std::errc{} || end != text->data() + text->size() || node >= settings.node_count) {
    throw Error(fmt::format("LOOM_NODE is '{}'; this fabric has nodes 0 to {}", *text,
                            settings.node_count - 1));
  }
  return node;
}

std::uint32_t number(const char* name, std::uint32_t otherwise) {
  const std::string text = variable(name).value_or("");
  std::uint32_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint32_t rank() {
  return number("RANK", kNoRank);
}

// As the runner says; a job without it is taken for a small one.
bool has_more_processes_than_cores() {
  return number("WORLD_SIZE", 1) > std::thread::hardware_concurrency();
}

// A driver with devices: then its provider is the real one.
bool has_real_device(const Persona& persona) {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::path("/sys/bus/pci/drivers") / persona.driver;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_symlink(error) &&
        entry.path().filename().string().find(':') != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::uint64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000U),
                      static_cast<long>(ns % 1'000'000'000U)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

const Persona& chosen_persona() {
  const std::string name = variable("LOOM_PERSONA").value_or("loom");
  const Persona* persona = find_persona(name);
  if (persona == nullptr) {
    throw Error(fmt::format("LOOM_PERSONA is '{}'; the personas are {}", name, persona_names()));
  }
  if (has_real_device(*persona)) {
    throw Error(
        fmt::format("this machine has a real {} device; Loom does not stand in front of it: take "
                    "libloom-fi.so out of FI_PROVIDER_PATH, or choose the persona loom",
                    persona->provider));
  }
  return *persona;
}

FabricLink::FabricLink()
    : segment_(open_or_create_segment(segment_path(default_folder(), job_name()),
                                      chosen_persona().name)),
      persona_(chosen_persona()) {
  if (persona_.name != segment_.persona.data()) {
    throw Error(fmt::format("the fabric {} was made for the persona {}, and LOOM_PERSONA is {}",
                            job_name(), segment_.persona.data(), persona_.name));
  }
  first_nic_ = static_cast<std::uint32_t>(node_index(settings()) * settings().nics_per_node);
  process_ = take_process_slot();
  is_crowded_ = has_more_processes_than_cores();
}

std::uint32_t FabricLink::take_process_slot() const {
  const auto mine = static_cast<std::uint32_t>(::getpid());
  for (std::uint32_t i = 0; i < kProcessesMax; ++i) {
    ProcessSlot& slot = segment_.processes[i];
    std::uint32_t owner =
        slot.pid.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    const bool is_free = owner == 0 || !is_alive(owner);
    // relaxed: nothing is published by it
    if (is_free && slot.pid.compare_exchange_strong(owner, mine, std::memory_order_relaxed)) {
      slot.rank.store(rank(), std::memory_order_relaxed);      // relaxed: for the command line
      slot.sleeps.store(0, std::memory_order_relaxed);         // relaxed: mine alone so far
      slot.stalled_until.store(0, std::memory_order_relaxed);  // relaxed: as above
      return i;
    }
  }
  throw Error(
      fmt::format("this fabric has {} processes already, and takes no more", kProcessesMax));
}

void FabricLink::ring(std::uint32_t process) const {
  ProcessSlot& slot = segment_.processes[process];
  // SYNC doorbell: what has arrived before the number; and the number before whether somebody
  // sleeps.
  slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (slot.sleeps.load(std::memory_order_seq_cst) == kSleeps) {
    futex_wake(slot.doorbell);
  }
}

void FabricLink::end_nap() const {
  std::uint32_t napping = kNaps;
  // SYNC doorbell: what the engine shall see before whether it naps. It looks again after it has
  // said that it does.
  process_slot().sleeps.compare_exchange_strong(napping, kSleeps, std::memory_order_seq_cst);
}

void FabricLink::wake_engine() const {
  ProcessSlot& slot = process_slot();
  // SYNC doorbell: what the engine shall see before the number; and the number before whether it
  // sleeps.
  slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (slot.sleeps.load(std::memory_order_seq_cst) != 0) {
    futex_wake(slot.doorbell);
  }
}

FabricLink* fabric_link() {
  // Never destroyed: the engine may run until the process is gone.
  static std::mutex lock;
  static FabricLink* link = nullptr;
  static pid_t owner = 0;
  static bool has_failed = false;
  const std::lock_guard guard(lock);
  if (owner != ::getpid()) {
    link = nullptr;  // the parent's, whose slot stays its own
    has_failed = false;
    owner = ::getpid();
  }
  if (link == nullptr && !has_failed) {
    try {
      link = new FabricLink;
      fmt::print(stderr,
                 "loom: emulated {} NICs, no real ones ({} of {:.6g} Gbit/s here, node {})\n",
                 link->persona().provider, link->nic_count(),
                 static_cast<double>(link->settings().rate_bits_per_s) / 1e9,
                 link->first_nic() / link->nic_count());
    } catch (const Error& error) {
      has_failed = true;
      fmt::print(stderr, "loom: {}\n", error.what());
    }
  }
  return link;
}

}  // namespace loom
