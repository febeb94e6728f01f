#include "src/transport/counters_page.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <new>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/counters_folder.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/process.hpp"
#include "src/base/units.hpp"
#include "weft/weft.h"

namespace weft::transport {
namespace {

constexpr mode_t kMode = 0644;
// A larger table of peers stays private: the folder is in memory, and a container may have only 64
// MiB of it.
constexpr std::size_t kPeerTableBytesMax = std::size_t{4} << 20U;

// Ends with a NUL unless it fills its place, as docs/COUNTERS.md says. Truncates before a character
// that does not fit completely.
template <std::size_t kSize>
void copy_text(std::array<char, kSize>& to, std::string_view from) {
  std::size_t size = std::min(from.size(), kSize);
  while (size < from.size() && size > 0 &&
         (static_cast<unsigned char>(from[size]) & 0xC0U) == 0x80U) {
    --size;
  }
  std::ranges::copy(from.substr(0, size), to.begin());
}

std::uint64_t network_namespace() {
  struct stat status{};

  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

std::uint64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::size_t peer_entries(const PageDescription& description) {
  return std::size_t{description.pe_count} * description.peer_rail_stride;
}

PageHeader header_of(const PageDescription& description) {
  PageHeader header{.rail_count = static_cast<std::uint32_t>(description.rails.size()),
                    .peer_rail_stride = description.peer_rail_stride,
                    .pe = description.pe.value,
                    .pe_count = description.pe_count,
                    .pid = ::getpid(),
                    .process_start_ticks = process_start_ticks(::getpid()),
                    .network_namespace = network_namespace(),
                    .started_ns = realtime_ns(),
                    .uid = ::geteuid(),
                    .node = description.node};
  copy_text(header.job, description.job);
  copy_text(header.policy, description.policy);
  copy_text(header.host, description.host);
  copy_text(header.version_text, fmt::format("{}.{}", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR));
  const std::size_t rails_end = sizeof(PageHeader) + header.rail_count * sizeof(RailCounters);
  const std::size_t table_bytes = peer_entries(description) * sizeof(PeerRailCounters);
  const bool has_table = table_bytes > 0 && table_bytes <= kPeerTableBytesMax;
  header.peers_offset = has_table ? rails_end : 0;
  header.file_bytes = rails_end + (has_table ? table_bytes : 0);
  return header;
}

// Removes the temporary file unless the page was renamed to its final name.
class Unfinished {
 public:
  Unfinished(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}

  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  ~Unfinished() {
    if (is_made_) {
      ::unlinkat(folder_, name_.c_str(), 0);
    }
  }

  // A file that already has the name belongs to somebody else: it is neither opened nor followed.
  [[nodiscard]] FileDescriptor make() {
    FileDescriptor file(::openat(folder_, name_.c_str(),
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!file.is_open()) {
      fail("creating {} failed: {}", name_, errno_words(errno));
    }
    is_made_ = true;
    return file;
  }

  void finish(const std::string& name) {
    if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) {
      fail("renaming {} failed: {}", name_, errno_words(errno));
    }
    is_made_ = false;
  }

 private:
  int folder_;
  std::string name_;
  bool is_made_ = false;
};

FileDescriptor open_folder(const std::string& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) {
    fail("{}", errno_words(errno));
  }
  return folder;
}

// Allocates every page of the file, so that a full folder is an error here, not a SIGBUS later.
void reserve(int file, std::size_t bytes) {
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  }
  if (error != 0) {
    fail(Status::OutOfMemory, "{} do not fit: {}", format_bytes(bytes), errno_words(error));
  }
}

// Maps the file, or private memory without a file.
std::byte* map(int file, std::size_t bytes) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED) {
    fail(Status::OutOfMemory, "mmap of {} for counters failed: {}", format_bytes(bytes),
         errno_words(errno));
  }
  return static_cast<std::byte*>(memory);
}

void fill(std::byte* memory, const PageHeader& header, const std::vector<RailDescription>& rails) {
  std::byte* end = memory + header.rails_offset;
  for (const RailDescription& rail : rails) {
    auto* block = new (end) RailCounters{.rate_bits_per_s = rail.rate_bits_per_s};
    copy_text(block->nic, rail.nic);
    copy_text(block->address, rail.address);
    copy_text(block->provider, rail.provider);
    end += sizeof(RailCounters);
  }
  new (memory) PageHeader(header);
}

}  // namespace

CountersPage::CountersPage(const PageDescription& description) {
  const PageHeader header = header_of(description);
  bytes_ = header.file_bytes;
  if (description.folder != kNoCountersFolder) {
    publish(description, header);
  }
  if (memory_ == nullptr) {
    memory_ = map(-1, bytes_);
    fill(memory_, header, description.rails);
  }
  if (header.peers_offset == 0) {
    unpublished_peers_.resize(peer_entries(description));
  }
}

void CountersPage::publish(const PageDescription& description, const PageHeader& header) {
  try {
    const FileDescriptor folder = open_folder(description.folder);
    remove_dead_pages(folder.get());
    const std::string name = page_file_name(
        {.uid = header.uid, .job = description.job, .pe = description.pe, .pid = header.pid});
    Unfinished unfinished(folder.get(), unfinished_file_name(name));
    FileDescriptor file = unfinished.make();
    static_cast<void>(::fchmod(file.get(), kMode));  // regardless of the umask
    static_cast<void>(::flock(file.get(), LOCK_EX | LOCK_NB));
    reserve(file.get(), bytes_);
    memory_ = map(file.get(), bytes_);
    fill(memory_, header, description.rails);
    unfinished.finish(name);
    file_ = std::move(file);
    std::error_code ignored;
    path_ = std::filesystem::absolute(description.folder, ignored) / name;
    log::info("counters are in {}", path_);
  } catch (const Error& error) {
    if (memory_ != nullptr) {
      ::munmap(std::exchange(memory_, nullptr), bytes_);
    }
    // All PEs of the machine see the same problem with the folder, so only one reports it. Each
    // reports a full folder.
    const bool speaks = description.is_first_on_machine || error.status() == Status::OutOfMemory;
    log::at(speaks ? log::Level::Warn : log::Level::Info,
            "no counters in {}: {}; the job goes on, but no other program sees its traffic. "
            "WEFT_COUNTERS_DIR names another folder, or off",
            description.folder, error.what());
  }
}

CountersPage::~CountersPage() {
  struct stat mine{};
  struct stat there{};

  // Not in a forked child of the PE, and not a file that has taken the name since.
  const bool is_mine = !path_.empty() && header().pid == ::getpid() &&
                       ::fstat(file_.get(), &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
                       mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
  if (is_mine) {
    ::unlink(path_.c_str());
  }
  ::munmap(memory_, bytes_);
}

const PageHeader& CountersPage::header() const {
  return *reinterpret_cast<const PageHeader*>(memory_);
}

CounterBlocks CountersPage::blocks() {
  const PageHeader& page = header();
  const std::size_t entries = std::size_t{page.pe_count} * page.peer_rail_stride;
  auto* published = reinterpret_cast<PeerRailCounters*>(memory_ + page.peers_offset);
  return {.rails = {reinterpret_cast<RailCounters*>(memory_ + page.rails_offset), page.rail_count},
          .peers = {page.peers_offset == 0 ? unpublished_peers_.data() : published, entries},
          .peer_rail_stride = page.peer_rail_stride};
}

}  // namespace weft::transport
