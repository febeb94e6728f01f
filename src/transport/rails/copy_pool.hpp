// Buffers for copies of sources. They are parts of slabs that stay registered with every rail, so a
// copied source needs no registration where the provider requires one (FI_MR_LOCAL).
// docs/decisions/0013 explains why callers' memory is not kept registered in the same way.
//
// Guarded by RailsTransport's lock. Slabs live as long as the pool.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace weft::transport::rails {

// A buffer for one copy of a source: `capacity()` bytes of a slab.
class SourceCopy {
 public:
  SourceCopy(std::span<std::byte> memory, std::uint32_t size_class)
      : memory_(memory), size_class_(size_class) {}

  [[nodiscard]] std::byte* data() const { return memory_.data(); }

  [[nodiscard]] std::size_t capacity() const { return memory_.size(); }

  [[nodiscard]] std::uint32_t size_class() const { return size_class_; }

 private:
  std::span<std::byte> memory_;
  std::uint32_t size_class_;
};

class CopyPool {
 public:
  // A buffer of at least `bytes`: 256 bytes, or at most four times as much as asked. Allocates only
  // while the pool grows.
  [[nodiscard]] SourceCopy* take(std::size_t bytes) {
    const std::uint32_t size_class = class_of(bytes);
    std::vector<SourceCopy*>& free = free_[size_class];
    if (free.empty()) {
      grow(size_class);
    }
    SourceCopy* copy = free.back();
    free.pop_back();
    return copy;
  }

  void give(SourceCopy* copy) noexcept { free_[copy->size_class()].push_back(copy); }

  // `callback` is called for each new slab.
  void on_slab(std::function<void(std::span<std::byte>)> callback) {
    on_slab_ = std::move(callback);
  }

 private:
  static constexpr std::size_t kSmallest = 256;
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10U;
  static constexpr std::uint32_t kClasses = 24;

  // Sizes are 256 B, 1 KiB, 4 KiB, ...
  static constexpr std::size_t size_of(std::uint32_t size_class) {
    return kSmallest << (2 * size_class);
  }

  static constexpr std::uint32_t class_of(std::size_t bytes) {
    const std::size_t units = (bytes + kSmallest - 1) / kSmallest;
    return units <= 1 ? 0 : (static_cast<std::uint32_t>(std::bit_width(units - 1)) + 1) / 2;
  }

  void grow(std::uint32_t size_class) {
    const std::size_t each = size_of(size_class);
    const std::size_t count = each < kSlabBytes ? kSlabBytes / each : 1;
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(each * count));
    const std::span<std::byte> slab(slabs_.back().get(), each * count);
    if (on_slab_) {
      on_slab_(slab);
    }
    free_[size_class].reserve(all_.size() + count);  // so that give() never allocates
    for (std::size_t i = 0; i < count; ++i) {
      all_.push_back(std::make_unique<SourceCopy>(slab.subspan(i * each, each), size_class));
      free_[size_class].push_back(all_.back().get());
    }
  }

  std::function<void(std::span<std::byte>)> on_slab_;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::vector<std::unique_ptr<SourceCopy>> all_;
  std::array<std::vector<SourceCopy*>, kClasses> free_;
};

}  // namespace weft::transport::rails
