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

const Region* Regions::around(const void* address, std::size_t bytes) const {
  for (const Region& region : regions_) {
    const std::uint64_t offset = region.offset_of(address);
    if (offset < region.bytes && bytes <= region.bytes - offset) {
      return &region;
    }
  }
  return nullptr;
}

std::optional<RegionIndex> Regions::region_of(const void* address) const {
  const Region* region = around(address, 1);
  return region == nullptr
             ? std::nullopt
             : std::optional(RegionIndex(static_cast<std::uint32_t>(region - regions_.data()) + 1));
}

bool Regions::find(const void* address, std::size_t bytes, Pe peer, Place& place) const {
  const Region* region = around(address, bytes);
  if (region == nullptr) {
    return false;
  }
  place = {.region = RegionIndex(static_cast<std::uint32_t>(region - regions_.data()) + 1),
           .offset = HeapOffset(region->offset_of(address)),
           .mapped = region->view(address, peer)};
  return true;
}

std::byte* Regions::view(const void* address, Pe peer, std::size_t bytes) const {
  const Region* region = around(address, bytes);
  return region == nullptr ? nullptr : region->view(address, peer);
}

}  // namespace weft::heap
