// Making, opening and replacing the file of a fabric, under a lock file beside it.
//
// Threads: any; the lock file orders processes.
#include "loom/src/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loom/src/slots.hpp"

namespace loom {
namespace {

constexpr std::array<char, 16> kMagic{'l', 'o', 'o', 'm', ' ', 'f', 'a',
                                      'b', 'r', 'i', 'c', ' ', '1'};

constexpr std::array kNicCounters{
    NicCounter{"tx_bytes", &NicCounters::tx_bytes},
    NicCounter{"tx_pkts", &NicCounters::tx_pkts},
    NicCounter{"rx_bytes", &NicCounters::rx_bytes},
    NicCounter{"rx_pkts", &NicCounters::rx_pkts},
    NicCounter{"rx_drops", &NicCounters::rx_drops},
    NicCounter{"send_bytes", &NicCounters::send_bytes},
    NicCounter{"send_wrs", &NicCounters::send_wrs},
    NicCounter{"recv_bytes", &NicCounters::recv_bytes},
    NicCounter{"recv_wrs", &NicCounters::recv_wrs},
    NicCounter{"rdma_read_bytes", &NicCounters::rdma_read_bytes},
    NicCounter{"rdma_read_wrs", &NicCounters::rdma_read_wrs},
    NicCounter{"rdma_read_wr_err", &NicCounters::rdma_read_wr_err},
    NicCounter{"rdma_read_resp_bytes", &NicCounters::rdma_read_resp_bytes},
    NicCounter{"rdma_write_bytes", &NicCounters::rdma_write_bytes},
    NicCounter{"rdma_write_wrs", &NicCounters::rdma_write_wrs},
    NicCounter{"rdma_write_wr_err", &NicCounters::rdma_write_wr_err},
    NicCounter{"rdma_write_recv_bytes", &NicCounters::rdma_write_recv_bytes},
};

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}

  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;

  ~File() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }

  [[nodiscard]] int get() const { return descriptor_; }

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

Segment& map(const File& file, const std::string& path) {
  void* memory = ::mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) {
    throw Error(fmt::format("{} cannot be mapped: {}; raise the limit of address space (ulimit -v)",
                            path, error_words(errno)));
  }
  return *static_cast<Segment*>(memory);
}

[[noreturn]] void fail_to_make(const std::string& path) {
  throw Error(fmt::format("{} cannot be made: {}; set LOOM_DIR to a folder that may be written",
                          path, error_words(errno)));
}

// Those that make, replace or remove the same fabric take turns.
File lock_beside(const std::string& path) {
  const std::string lock = path + ".lock";
  File file(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open() || ::flock(file.get(), LOCK_EX) != 0) {
    fail_to_make(lock);
  }
  return file;
}

Segment* open_if_whole(const std::string& path, std::string& why) {
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
    why = error_words(errno);
    return nullptr;
  }
  if (static_cast<std::size_t>(status.st_size) != sizeof(Segment)) {
    why = "it was made by another version of Loom";
    return nullptr;
  }
  Segment& segment = map(file, path);
  if (segment.magic != kMagic || segment.layout_bytes != sizeof(Segment)) {
    ::munmap(&segment, sizeof(Segment));
    why = "it was made by another version of Loom";
    return nullptr;
  }
  return &segment;
}

void check_sizes(const Settings& settings) {
  if (settings.node_count * settings.nics_per_node > kNicsMax) {
    throw Error(
        fmt::format("{} nodes with {} NICs each are more than the {} NICs that a fabric has",
                    settings.node_count, settings.nics_per_node, kNicsMax));
  }
}

// The path names a fabric once that is whole, so nobody opens a part of one.
Segment& create_locked(const std::string& path,
                       std::string_view persona,
                       const Settings& settings,
                       std::uint32_t owner) {
  check_sizes(settings);
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const File file(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open() || ::ftruncate(file.get(), sizeof(Segment)) != 0) {
    fail_to_make(path);
  }
  Segment& segment = map(file, path);
  segment.layout_bytes = sizeof(Segment);
  std::memcpy(segment.persona.data(), persona.data(),
              std::min(persona.size(), segment.persona.size() - 1));
  segment.settings = settings;
  segment.owner.store(owner, std::memory_order_relaxed);  // relaxed: under the lock
  for (Nic& nic : segment.nics) {
    nic.rate_permille.store(1000, std::memory_order_relaxed);  // relaxed: under the lock
  }
  segment.magic = kMagic;
  if (::rename(unfinished.c_str(), path.c_str()) != 0) {
    fail_to_make(path);
  }
  return segment;
}

std::string make_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    fail_to_make(folder);
  }
  return folder;
}

}  // namespace

std::span<const NicCounter> nic_counters() {
  return kNicCounters;
}

bool is_alive(std::uint32_t pid) {
  return pid != 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

bool is_used(Segment& segment) {
  // relaxed: a snapshot
  if (is_alive(segment.owner.load(std::memory_order_relaxed))) {
    return true;
  }
  return std::ranges::any_of(segment.processes, [](const ProcessSlot& slot) {
    return is_alive(slot.pid.load(std::memory_order_relaxed));
  });
}

const KeySlot* find_key(const Segment& segment, std::uint64_t key) {
  const KeySlot& slot = segment.keys[key % kKeysMax];
  const std::uint32_t generation =
      slot.generation.load(std::memory_order_relaxed);  // relaxed: is_open looks again
  const bool is_same = (key >> 16U) == (generation & 0xffffU);
  return is_same && is_open(slot, generation) ? &slot : nullptr;
}

std::string default_folder() {
  if (const auto folder = variable("LOOM_DIR")) {
    return *folder;
  }
  if (::geteuid() == 0) {
    return "/run/loom";
  }
  if (const auto runtime = variable("XDG_RUNTIME_DIR")) {
    return *runtime + "/loom";
  }
  return fmt::format("/tmp/loom-{}", ::geteuid());
}

std::string segment_path(const std::string& folder, const std::string& job) {
  return folder + "/" + job + ".fabric";
}

Segment& open_segment(const std::string& path) {
  std::string why;
  Segment* segment = open_if_whole(path, why);
  if (segment == nullptr) {
    throw Error(fmt::format("there is no fabric at {} ({}); `loom run` makes one", path, why));
  }
  return *segment;
}

void close_segment(Segment& segment) {
  ::munmap(&segment, sizeof(Segment));
}

void remove_fabric(const std::string& path) {
  constexpr std::string_view kEnd = ".fabric";
  ::unlink(path.c_str());
  ::unlink((path + ".lock").c_str());
  std::error_code ignored;
  std::filesystem::remove_all(path.substr(0, path.size() - kEnd.size()) + ".sys", ignored);
}

Segment& create_segment(const std::string& path,
                        std::string_view persona,
                        const Settings& settings,
                        std::uint32_t owner) {
  make_folder(path);
  const File lock = lock_beside(path);
  std::string why;
  if (Segment* old = open_if_whole(path, why); old != nullptr && is_used(*old)) {
    throw Error(
        fmt::format("the fabric at {} is in use (by process {}); give this one another name with "
                    "--job",
                    path, old->owner.load(std::memory_order_relaxed)));  // relaxed: for the message
  }
  return create_locked(path, persona, settings, owner);
}

Segment& open_or_create_segment(const std::string& path, std::string_view persona) {
  make_folder(path);
  const File lock = lock_beside(path);
  std::string why;
  if (Segment* segment = open_if_whole(path, why); segment != nullptr && is_used(*segment)) {
    return *segment;
  }
  // Owned by this process, so that those who start with it do not take it for an abandoned one.
  return create_locked(path, persona, settings_from_environment(),
                       static_cast<std::uint32_t>(::getpid()));
}

}  // namespace loom
