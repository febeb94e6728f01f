// A piece of memory that several processes map: RAII over memfd and mmap. Made by one PE, opened by
// the PEs of its node through /proc/PID/fd (proc(5): needs the same user, no privilege).
//
// Not thread-safe; owned by Heap, which is built at init and gone at finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::heap {

// How a segment would like its pages. What is not to be had is left out quietly.
enum class Pages : std::uint8_t {
  Small,
  Transparent,  // MADV_HUGEPAGE: where transparent_hugepage/shmem_enabled allows (madvise(2))
  Reserved,     // MFD_HUGETLB: from vm.nr_hugepages, all of them at once (memfd_create(2))
};

// For WEFT_HUGE_PAGES.
[[nodiscard]] Pages parse_pages(std::string_view setting);

class Segment {
 public:
  // Where segments start at least: a multiple of the size of a huge page.
  static constexpr std::size_t kAlignment = std::size_t{2} << 20U;

  Segment() = default;

  // New zeroed memory, a multiple of the page size. Throws Error: action, size, the system's words, a hint.
  // With Reserved pages that are to be had, and otherwise as Transparent. Starts at a multiple of
  // `alignment`, a power of two, or of the largest smaller one for which there are addresses.
  static Segment create(const std::string& name,
                        std::size_t bytes,
                        Pages pages = Pages::Small,
                        std::size_t alignment = kAlignment);

  // New memory with the bytes of `pages`, in their place: same addresses, now shared. It stays there
  // when the Segment is gone. Throws Error; `pages` are then as they were.
  static Segment put_behind(const std::string& name, std::span<std::byte> pages);

  // The memory that process `pid` has under descriptor `fd`. Throws Error.
  static Segment open(std::int64_t pid, int fd, std::size_t bytes, Pages pages = Pages::Small);

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

  // Of huge pages, the last one is mapped whole.
  [[nodiscard]] std::size_t mapped_bytes() const;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t page_bytes_ = 1;  // a mapping is a multiple of it
  int descriptor_ = -1;
  bool keeps_mapping_ = false;
};

}  // namespace weft::heap
