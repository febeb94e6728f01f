#include "tools/info/heap_report.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/units.hpp"
#include "src/heap/segment.hpp"

namespace weft::info {
namespace {

// CAP_IPC_LOCK of capabilities(7).
constexpr unsigned int kLockCapability = 14;

std::string line(std::string_view name, std::string_view value) {
  return fmt::format("  {:<20} {}\n", name, value);
}

std::string room_text(const HeapReport& report) {
  const std::uint64_t wanted = report.heap_bytes * report.pe_count;
  std::string text =
      fmt::format("{} for each PE (WEFT_HEAP_SIZE)", format_bytes(report.heap_bytes));
  if (report.pe_count > 1) {
    text += fmt::format(", {} for {} PEs", format_bytes(wanted), report.pe_count);
  }
  if (const auto& available = report.memory.available_bytes) {
    text += fmt::format("; {} of memory are available{}{}", mebibytes_text(*available),
                        report.memory.group_bytes ? " in this control group" : "",
                        wanted > *available ? ": too few if programs use all of it" : "");
  }
  return text;
}

std::string pages_text(const MemoryLimits& memory) {
  return fmt::format("transparent for shared memory: {}; reserved: {} free of {}",
                     memory.transparent_shared.empty() ? "not known" : memory.transparent_shared,
                     memory.huge_page_free, format_bytes(memory.huge_page_bytes));
}

// Of memory like the heap's, as the kernel says it after it has been touched (proc(5), smaps).
std::string pages_got(heap::Pages wanted) {
  const heap::Segment segment =
      heap::Segment::create("weft-info", 2 * heap::Segment::kAlignment, wanted);
  std::memset(segment.data(), 1, segment.size());
  const auto start = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(segment.data()));
  std::ifstream file("/proc/self/smaps");
  bool is_here = false;
  for (std::string text; std::getline(file, text);) {
    is_here = text.starts_with(start) || (is_here && text.find('-') > text.find(':'));
    if (is_here && text.starts_with("KernelPageSize:") && !text.ends_with(" 4 kB")) {
      return "reserved huge pages";
    }
    if (is_here && text.starts_with("ShmemPmdMapped:") && !text.ends_with(" 0 kB")) {
      return "transparent huge pages";
    }
  }
  return "small pages";
}

nlohmann::ordered_json or_null(const std::optional<std::uint64_t>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

bool may_lock(const Limit& memlock, std::uint64_t bytes, bool is_privileged) {
  return is_privileged || !memlock.soft || *memlock.soft >= bytes;
}

bool ignores_memlock(const std::string& status) {
  std::ifstream file(status);
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("CapEff:")) {
      return (std::strtoull(text.c_str() + 7, nullptr, 16) >> kLockCapability & 1U) != 0;
    }
  }
  return false;
}

HeapReport make_heap_report(const Config& config, std::uint32_t pe_count, const Limit& memlock) {
  return {.heap_bytes = config.heap_size,
          .device_heap_bytes = config.device_heap_size,
          .device_memory = config.device_memory,
          .pe_count = pe_count,
          .huge_pages = config.huge_pages,
          .pages_got = pages_got(heap::parse_pages(config.huge_pages)),
          .may_lock = may_lock(memlock, config.heap_size, ignores_memlock()),
          .memory = read_memory_limits()};
}

std::string heap_text(const HeapReport& report) {
  const MemoryLimits& memory = report.memory;
  std::string text = "\nheaps\n" + line("host", room_text(report));
  text += line("registering it", report.may_lock
                                     ? "the limit of locked memory allows it"
                                     : "an RDMA NIC could not: raise the limit of locked memory "
                                       "(ulimit -l); TCP locks nothing");
  text += line("on each GPU",
               fmt::format("{} (WEFT_DEVICE_HEAP_SIZE), by {} (WEFT_DEVICE_MEMORY)",
                           format_bytes(report.device_heap_bytes), report.device_memory));
  text += line("huge pages", fmt::format("{}; the heap gets {} (WEFT_HUGE_PAGES={})",
                                         pages_text(memory), report.pages_got, report.huge_pages));
  if (memory.address_space) {
    text += line("address space", fmt::format("{} (ulimit -v); the heaps of all PEs of a node are "
                                              "mapped in each",
                                              format_bytes(*memory.address_space)));
  }
  return text;
}

nlohmann::ordered_json heap_json(const HeapReport& report) {
  const MemoryLimits& memory = report.memory;
  return {{"heap_bytes", report.heap_bytes},
          {"pe_count", report.pe_count},
          {"device_heap_bytes", report.device_heap_bytes},
          {"device_memory", report.device_memory},
          {"may_be_registered", report.may_lock},
          {"available_bytes", or_null(memory.available_bytes)},
          {"control_group_bytes", or_null(memory.group_bytes)},
          {"address_space_bytes", or_null(memory.address_space)},
          {"huge_pages", report.huge_pages},
          {"pages", report.pages_got},
          {"huge_page_bytes", memory.huge_page_bytes},
          {"huge_page_free", memory.huge_page_free},
          {"transparent_huge_shared", memory.transparent_shared.empty()
                                          ? nlohmann::ordered_json(nullptr)
                                          : nlohmann::ordered_json(memory.transparent_shared)}};
}

}  // namespace weft::info
