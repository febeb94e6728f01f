#include "src/heap/regions.hpp"

#include <algorithm>
#include <string_view>

#include "src/base/error.hpp"

namespace weft::heap {
namespace {

constexpr std::string_view kWindow = "a window";

}  // namespace

void Regions::add(std::string name, Segment segment, std::vector<std::byte*> mapped) {
  regions_.push_back({.name = std::move(name),
                      .base = segment.data(),
                      .bytes = segment.size(),
                      .mapped = std::move(mapped)});
  segments_.push_back(std::move(segment));
}

RegionIndex Regions::add_window(std::byte* base, std::uint64_t bytes) {
  Region window{.name = std::string(kWindow),
                .base = base,
                .bytes = bytes,
                .mapped = std::vector<std::byte*>(pe_count_, nullptr)};
  window.mapped[me_.value] = base;
  const auto index = next_window();
  WEFT_CHECK(index.has_value(), "{} regions", regions_.size());
  if (index->value > regions_.size()) {
    regions_.emplace_back();
  }
  regions_[index->value - 1] = std::move(window);
  return *index;
}

std::optional<RegionIndex> Regions::next_window() const {
  const auto free = std::ranges::find_if(regions_, &Region::is_free);
  const auto index = static_cast<std::uint32_t>(free - regions_.begin()) + 1;
  return index < kRegionCountMax ? std::optional(RegionIndex(index)) : std::nullopt;
}

std::optional<RegionIndex> Regions::remove_window(const void* base) {
  for (std::uint32_t i = 0; i < regions_.size(); ++i) {
    if (regions_[i].name == kWindow && regions_[i].base == base && regions_[i].bytes > 0) {
      regions_[i] = {};
      return RegionIndex(i + 1);
    }
  }
  return std::nullopt;
}

std::optional<Place> Regions::place_of(const void* address) const {
  for (std::uint32_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.base);
    if (offset < region.bytes) {
      return Place{RegionIndex(i + 1), HeapOffset(offset), region.bytes - offset};
    }
  }
  return std::nullopt;
}

std::byte* Regions::view(const void* address, Pe peer, std::size_t bytes) const {
  for (const Region& region : regions_) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.base);
    if (offset < region.bytes && bytes <= region.bytes - offset) {
      std::byte* base = region.mapped[peer.value];
      return base == nullptr ? nullptr : base + offset;
    }
  }
  return nullptr;
}

}  // namespace weft::heap
