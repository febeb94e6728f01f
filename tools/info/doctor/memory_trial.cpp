// The step "memory": the heap as a PE would make it, mapped by another process as a PE of its node
// would, and what limits it: memory, locked memory, descriptors, and the place of the counter
// pages.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/counters_folder.hpp"
#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/base/units.hpp"
#include "src/heap/segment.hpp"
#include "tools/info/doctor/step.hpp"
#include "tools/info/host_limits.hpp"
#include "tools/info/memory_limits.hpp"

namespace weft::info {
namespace {

constexpr std::size_t kTouchedMax = std::size_t{64} << 20U;
constexpr std::size_t kStride = 4096;
constexpr std::size_t kCounterBytes = std::size_t{256} << 10U;  // of a page with thousands of peers
constexpr std::uint64_t kOpenFilesMin = 1024;

std::byte mark_of(std::size_t offset, unsigned int round) {
  return static_cast<std::byte>((offset / kStride * 37 + round * 11 + 1) & 0xffU);
}

void mark(std::byte* memory, std::size_t bytes, unsigned int round) {
  for (std::size_t at = 0; at < bytes; at += kStride) {
    memory[at] = mark_of(at, round);
  }
}

bool is_marked(const std::byte* memory, std::size_t bytes, unsigned int round) {
  for (std::size_t at = 0; at < bytes; at += kStride) {
    if (memory[at] != mark_of(at, round)) {
      return false;
    }
  }
  return true;
}

// In a child: maps the parent's heap, looks at its marks and makes others. The exit status: 0 good,
// 1 it cannot be mapped, 2 the bytes are others.
int be_the_peer(pid_t owner, int descriptor, std::size_t bytes, std::size_t touched) {
  try {
    const heap::Segment peer = heap::Segment::open(owner, descriptor, bytes);
    if (!is_marked(peer.data(), touched, 0)) {
      return 2;
    }
    mark(peer.data(), touched, 1);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "weft-info: {}\n", error.what());
    return 1;
  }
}

void try_peer_mapping(const heap::Segment& heap, std::size_t touched, const Reporter& reporter) {
  reporter.trying("mapping the heap in another process");
  const pid_t owner = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(be_the_peer(owner, heap.descriptor(), heap.size(), touched));
  }
  int status = -1;
  const bool ended = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status);
  if (!ended || WEXITSTATUS(status) == 1) {
    reporter.problem("another process of this user cannot map the heap through /proc/PID/fd",
                     "mount /proc without hidepid (mount -o remount,hidepid=0 /proc), and run all "
                     "PEs of the node as one user in one pid namespace");
  } else if (WEXITSTATUS(status) == 2 || !is_marked(heap.data(), touched, 1)) {
    reporter.problem("two processes that map one heap see different bytes",
                     "tell the developers: this kernel's memfd memory is not shared");
  } else {
    reporter.ok("another process maps the heap and both see the same bytes");
  }
}

void try_locking(const heap::Segment& heap, const Reporter& reporter) {
  reporter.trying("locking the heap");
  // Counts all of it and reads in nothing: what registering it with a NIC asks of the limit.
  if (::mlock2(heap.data(), heap.size(), MLOCK_ONFAULT) == 0) {
    ::munlock(heap.data(), heap.size());
    reporter.ok(
        fmt::format("{} may be locked, as a NIC that pins memory asks", format_bytes(heap.size())));
    return;
  }
  const Limit limit = read_host_limits().memlock;
  reporter.note(
      fmt::format(
          "locked memory is limited to {}, less than the heap of {}; TCP locks nothing, but "
          "an RDMA NIC could not register it",
          limit.soft ? format_bytes(*limit.soft) : "nothing known", format_bytes(heap.size())),
      "ulimit -l unlimited (for all logins: '* - memlock unlimited' in /etc/security/limits.conf; "
      "for "
      "a service: LimitMEMLOCK=infinity; for a container: --ulimit memlock=-1)");
}

void check_room(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  const MemoryLimits limits = read_memory_limits();
  const std::uint64_t wanted = config.heap_size * options.pe.count;
  if (limits.available_bytes && wanted > *limits.available_bytes) {
    reporter.note(
        fmt::format("the heaps of {} PEs of this node are {}, and {} of memory are available: a "
                    "program that uses all of its heap is killed",
                    options.pe.count, format_bytes(wanted),
                    mebibytes_text(*limits.available_bytes)),
        fmt::format("WEFT_HEAP_SIZE={}M, or fewer PEs on the node",
                    *limits.available_bytes / options.pe.count >> 20U));
  }
}

void check_open_files(const Reporter& reporter) {
  const Limit limit = read_host_limits().open_files;
  if (limit.soft && *limit.soft < kOpenFilesMin) {
    reporter.note(
        fmt::format("a process may have {} files open; over TCP each pair of rails with each "
                    "peer takes one",
                    *limit.soft),
        fmt::format("ulimit -n {}",
                    limit.hard ? std::to_string(*limit.hard) : std::string("65536")));
  }
}

// Where PEs show their counters to weft-top.
std::string counters_folder() {
  const char* value = std::getenv("WEFT_COUNTERS_DIR");  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr || *value == '\0' ? std::string(kDefaultCountersFolder) : value;
}

void try_counters(const Reporter& reporter) {
  const std::string folder = counters_folder();
  reporter.trying("making a counter page in " + folder);
  const std::string path = fmt::format("{}/.weft-doctor-{}", folder, ::getpid());
  const FileDescriptor file(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  int error = file.is_open() ? ::posix_fallocate(file.get(), 0, kCounterBytes) : errno;
  if (file.is_open()) {
    ::unlink(path.c_str());
  }
  if (error == 0) {
    reporter.ok(fmt::format("counter pages fit into {}", folder));
    return;
  }
  reporter.note(
      fmt::format(
          "{} takes no {}: {}; PEs then run without counter pages, and weft-top does not see "
          "them",
          folder, format_bytes(kCounterBytes), errno_words(error)),
      fmt::format(
          "remove old files there (ls -l {0}), enlarge it (mount -o remount,size=1G {0}; for "
          "a container: --shm-size=1g), or set WEFT_COUNTERS_DIR to another folder",
          folder));
}

}  // namespace

void try_memory(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  reporter.trying(fmt::format("making a heap of {}", format_bytes(config.heap_size)));
  check_room(config, options, reporter);
  const std::uint64_t start = now_ns();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (std::max<std::size_t>(config.heap_size, 1) + page - 1) / page * page;
  const heap::Segment heap = heap::Segment::create("weft-doctor", bytes);
  const std::size_t touched = std::min(bytes, kTouchedMax);
  reporter.trying(fmt::format("writing to {} of the heap", format_bytes(touched)));
  mark(heap.data(), touched, 0);
  const double took_ms = static_cast<double>(now_ns() - start) / 1e6;
  reporter.ok(fmt::format("heap of {} made, {} of it written, in {:.1f} ms", format_bytes(bytes),
                          format_bytes(touched), took_ms),
              {{"heap_bytes", bytes}, {"written_bytes", touched}, {"took_ms", took_ms}});
  reporter.summary(fmt::format("a heap of {}", format_bytes(bytes)));
  try_peer_mapping(heap, touched, reporter);
  try_locking(heap, reporter);
  check_open_files(reporter);
  try_counters(reporter);
}

}  // namespace weft::info
