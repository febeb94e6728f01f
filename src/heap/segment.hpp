// A piece of memory that several processes map: RAII over memfd and mmap. One PE creates it; the
// PEs of its node open it through /proc/PID/fd (proc(5): requires the same user, no privilege).
//
// Not thread-safe; owned by Heap, which is built at init and destroyed at finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::heap {

// The preferred page type of a segment. If it is not available, the segment falls back silently.
enum class Pages : std::uint8_t {
  Small,
  Transparent,  // MADV_HUGEPAGE: where transparent_hugepage/shmem_enabled allows (madvise(2))
  Reserved,     // MFD_HUGETLB: from vm.nr_hugepages, all of them at once (memfd_create(2))
};

// Parses WEFT_HUGE_PAGES.
[[nodiscard]] Pages parse_pages(std::string_view setting);

// What to do about memfd_create that failed with this error number.
[[nodiscard]] std::string_view memfd_hint(int error);

class Segment {
 public:
  // The minimum alignment of segments: a multiple of the huge page size.
  static constexpr std::size_t kAlignment = std::size_t{2} << 20U;

  Segment() = default;

  // New zeroed memory, a multiple of the page size. Starts at a multiple of `alignment`, a power of
  // two, or of the largest smaller one for which addresses are available. With Reserved, uses
  // reserved pages if available, otherwise as Transparent. Throws Error with the action, the size,
  // the system's error and a hint.
  static Segment create(const std::string& name,
                        std::size_t bytes,
                        Pages pages = Pages::Small,
                        std::size_t alignment = kAlignment);

  // New memory with the contents of `pages`, mapped in their place: same addresses, now shared. The
  // mapping stays when the Segment is destroyed. Throws Error; `pages` are then unchanged.
  static Segment put_behind(const std::string& name, std::span<std::byte> pages);

  // The memory behind descriptor `fd` of process `pid`. Throws Error.
  static Segment open(std::int64_t pid, int fd, std::size_t bytes, Pages pages = Pages::Small);

  // The mapping at `data` of a Segment of this process, which stays until the last Segment that has
  // it is destroyed. For PEs that are threads of one process.
  static Segment share(std::byte* data, std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] std::byte* data() const { return data_; }

  [[nodiscard]] std::size_t size() const { return bytes_; }

  // The descriptor that peers open; -1 for an opened segment.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  Segment(std::byte* data, std::size_t bytes, int descriptor, std::size_t page_bytes = 1)
      : data_(data), bytes_(bytes), page_bytes_(page_bytes), descriptor_(descriptor) {}

  // With huge pages, the last one is mapped completely.
  [[nodiscard]] std::size_t mapped_bytes() const;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t page_bytes_ = 1;  // the mapping is a multiple of it
  int descriptor_ = -1;
  bool keeps_mapping_ = false;
};

}  // namespace weft::heap
