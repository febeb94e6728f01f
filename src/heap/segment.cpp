#include "src/heap/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::heap {
namespace {

constexpr std::size_t kHugePage = Segment::kAlignment;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void fail_map(int descriptor, std::size_t bytes, const std::string& what) {
  const int error = errno;
  ::close(descriptor);
  fail(Status::OutOfMemory,
       "mmap of {} ({}) failed: {}; lower WEFT_HEAP_SIZE or raise the address-space limit (ulimit "
       "-v)",
       what, format_bytes(bytes), errno_words(error));
}

// Reserves an address range without memory that starts at a multiple of `alignment`. Null: see
// errno.
std::byte* reserve(std::size_t bytes, std::size_t alignment) {
  std::size_t with_room = 0;
  if (__builtin_add_overflow(bytes, alignment, &with_room)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* start =
      ::mmap(nullptr, with_room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return nullptr;
  }
  auto* first = static_cast<std::byte*>(start);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(first) % alignment;
  if (before > 0) {
    ::munmap(first, before);
  }
  ::munmap(first + before + bytes, alignment - before);
  return first + before;
}

// Maps at a multiple of `alignment`, so that equal offsets are equally aligned on all PEs, or of a
// smaller power of two if the address space has no such range. Null if mapping failed: see errno.
std::byte* try_map(int descriptor, std::size_t bytes, std::size_t alignment) {
  std::byte* place = reserve(bytes, alignment);
  while (place == nullptr && alignment > Segment::kAlignment) {
    alignment /= 2;
    place = reserve(bytes, alignment);
  }
  if (place == nullptr) {
    return nullptr;
  }
  void* data = ::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    ::munmap(place, bytes);
    errno = error;
    return nullptr;
  }
  return static_cast<std::byte*>(data);
}

std::byte* map(int descriptor,
               std::size_t bytes,
               const std::string& what,
               std::size_t alignment = Segment::kAlignment) {
  std::byte* data = try_map(descriptor, bytes, alignment);
  if (data == nullptr) {
    fail_map(descriptor, bytes, what);
  }
  return data;
}

// No effect on a kernel without transparent huge pages, or if they are disabled.
void advise(std::byte* data, std::size_t bytes, Pages pages) {
  if (pages != Pages::Small) {
    static_cast<void>(::madvise(data, bytes, MADV_HUGEPAGE));
  }
}

// The mappings that more than one Segment of this process has: whoever leaves last unmaps. A thread
// that is a PE may still ring at a peer that has seen its signal, and is through.
class SharedMappings {
 public:
  static SharedMappings& of_process() {
    static auto* const mappings = new SharedMappings;  // Segments may be destroyed at exit
    return *mappings;
  }

  void join(const std::byte* data) {
    const std::lock_guard lock(mutex_);
    ++others_[data].count;
  }

  void leave(std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto found = others_.find(data); found != others_.end()) {
      Others& others = found->second;
      others.bytes = std::max(others.bytes, bytes);
      if (others.count > 0) {
        --others.count;
        return;
      }
      bytes = others.bytes;
      others_.erase(found);
    }
    ::munmap(data, bytes);
  }

 private:
  struct Others {
    std::size_t count = 0;
    std::size_t bytes = 0;  // of the whole mapping, which one that shares it does not know
  };

  std::mutex mutex_;
  std::map<const std::byte*, Others> others_;
};

}  // namespace

std::string_view memfd_hint(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "the machine or the container has no memory left";
    case EACCES:
      return "sysctl vm.memfd_noexec=2 or a security module forbids it";
    case ENOSYS:
    case EPERM:
      return "a container or sandbox forbids this system call: allow memfd_create in its seccomp "
             "profile";
    default:
      return "a sandbox or a security module may forbid it";
  }
}

namespace {

// The kernel would end the process by a signal (SIGXFSZ, setrlimit(2)).
void check_file_size(const std::string& name, std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    fail(Status::OutOfMemory,
         "{} of {} is a file in memory, and files may have {}; raise that limit (ulimit -f "
         "unlimited), or lower WEFT_HEAP_SIZE",
         name, format_bytes(bytes), format_bytes(limit.rlim_cur));
  }
}

// The heap is data. Kernels since 6.3 can be told to refuse files that do not say so
// (memfd_create(2), MFD_NOEXEC_SEAL); older ones do not know the flag.
int create_memory_file(const std::string& name) {
  constexpr unsigned kNoExecSeal = 0x0008U;
  const int descriptor = ::memfd_create(name.c_str(), MFD_CLOEXEC | kNoExecSeal);
  return descriptor < 0 && errno == EINVAL ? ::memfd_create(name.c_str(), MFD_CLOEXEC) : descriptor;
}

int create_descriptor(const std::string& name, std::size_t bytes) {
  const int descriptor = create_memory_file(name);
  if (descriptor < 0) {
    const int error = errno;
    fail("memfd_create for {} failed: {}; {}", name, errno_words(error), memfd_hint(error));
  }
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail(Status::OutOfMemory, "{} of {} does not fit: {}; lower WEFT_HEAP_SIZE", name,
         format_bytes(bytes), errno_words(error));
  }
  return descriptor;
}

// Copies memory of the program, by the kernel: AddressSanitizer leaves gaps between a program's
// globals, and neither our code nor its own pwrite may read them.
bool copy_by_kernel(int scratch, std::span<const std::byte> from, std::byte* to) {
  const auto size = static_cast<ssize_t>(from.size());
  return ::syscall(SYS_pwrite64, scratch, from.data(), from.size(), off_t{0}) == size &&
         ::pread(scratch, to, from.size(), 0) == size;
}

// Skips pages that are all zero: they need no memory.
bool write_chunk(int descriptor, std::span<const std::byte> chunk, off_t offset) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < chunk.size(); at += page) {
    const std::span<const std::byte> one = chunk.subspan(at, std::min(page, chunk.size() - at));
    const bool is_zero =
        std::ranges::all_of(one, [](std::byte value) { return value == std::byte{0}; });
    if (!is_zero && ::pwrite(descriptor, one.data(), one.size(), offset + static_cast<off_t>(at)) !=
                        static_cast<ssize_t>(one.size())) {
      return false;
    }
  }
  return true;
}

bool write_pages(int descriptor, std::span<const std::byte> pages) {
  constexpr std::size_t kChunk = std::size_t{256} << 10U;
  std::vector<std::byte> buffer(std::min(kChunk, pages.size()));
  const int scratch = create_descriptor("a copy of globals", buffer.size());
  bool is_written = true;
  for (std::size_t at = 0; at < pages.size() && is_written; at += kChunk) {
    const std::span<const std::byte> from = pages.subspan(at, std::min(kChunk, pages.size() - at));
    is_written =
        copy_by_kernel(scratch, from, buffer.data()) &&
        write_chunk(descriptor, std::span(buffer).first(from.size()), static_cast<off_t>(at));
  }
  ::close(scratch);
  return is_written;
}

}  // namespace

Pages parse_pages(std::string_view setting) {
  return setting == "on" ? Pages::Reserved : setting == "off" ? Pages::Small : Pages::Transparent;
}

Segment Segment::create(const std::string& name,
                        std::size_t bytes,
                        Pages pages,
                        std::size_t alignment) {
  check_file_size(name, bytes);
  if (pages == Pages::Reserved) {
    // The kernel reserves the pages at mmap, or reports that there are too few.
    const int descriptor = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
    const std::size_t whole = round_up(bytes, kHugePage);
    if (descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(whole)) == 0) {
      if (std::byte* data = try_map(descriptor, whole, alignment); data != nullptr) {
        return {data, bytes, descriptor, kHugePage};
      }
    }
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
  const int descriptor = create_descriptor(name, bytes);
  Segment segment(map(descriptor, bytes, name, alignment), bytes, descriptor);
  advise(segment.data_, bytes, pages);
  return segment;
}

std::size_t Segment::mapped_bytes() const {
  return round_up(bytes_, page_bytes_);
}

Segment Segment::put_behind(const std::string& name, std::span<std::byte> pages) {
  check_file_size(name, pages.size());
  const int descriptor = create_descriptor(name, pages.size());
  if (!write_pages(descriptor, pages) ||
      ::mmap(pages.data(), pages.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
             0) == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    fail(Status::OutOfMemory,
         "the {} ({}) cannot be shared: {}; WEFT_SYMMETRIC_GLOBALS=no does without", name,
         format_bytes(pages.size()), errno_words(error));
  }
  Segment segment(pages.data(), pages.size(), descriptor);
  segment.keeps_mapping_ = true;
  return segment;
}

Segment Segment::open(std::int64_t pid, int fd, std::size_t bytes, Pages pages) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    fail(
        "cannot map the heap of a PE of this node: open {} failed: {}; PEs of a node must run as "
        "one user, in one pid namespace, with /proc mounted",
        path, errno_words(errno));
  }
  // The file's own page size shows which pages its owner got.
  struct statfs file{};
  const bool is_reserved = ::fstatfs(descriptor, &file) == 0 && file.f_type == HUGETLBFS_MAGIC;
  const std::size_t page_bytes = is_reserved ? static_cast<std::size_t>(file.f_bsize) : 1;
  std::byte* data = map(descriptor, round_up(bytes, page_bytes), path);
  ::close(descriptor);  // the mapping keeps the memory alive
  advise(data, bytes, is_reserved ? Pages::Small : pages);
  return {data, bytes, -1, page_bytes};
}

Segment Segment::share(std::byte* data, std::size_t bytes) {
  SharedMappings::of_process().join(data);
  return {data, bytes, -1};
}

Segment::Segment(Segment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      page_bytes_(other.page_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      keeps_mapping_(other.keeps_mapping_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(page_bytes_, other.page_bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(keeps_mapping_, other.keeps_mapping_);
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr && !keeps_mapping_) {
    SharedMappings::of_process().leave(data_, mapped_bytes());
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

}  // namespace weft::heap
