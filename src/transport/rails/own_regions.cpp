#include "src/transport/rails/own_regions.hpp"

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::transport::rails {

namespace {

void require_number(RegionIndex index) {
  if (index.value >= kRegionCountMax) {
    fail(Status::OutOfMemory, "region {} is one too many: a PE has at most {} at a time",
         index.value, kRegionCountMax);
  }
}

}  // namespace

std::vector<fabric::RegionKey> OwnRegions::offer(RegionIndex index, std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  require_number(index);
  std::vector<fabric::RegionKey> keys;
  keys.reserve(state_.rails.size());
  for (const LocalRail& local : state_.rails) {
    keys.push_back(local.rail->add_region(memory));
  }
  enter_memory(state_, index, memory);
  return keys;
}

std::vector<fabric::RegionKey> OwnRegions::offer(RegionIndex index,
                                                 const fabric::DeviceMemory& memory,
                                                 gpu::WordMemory& words) {
  const std::lock_guard lock(mutex_);
  require_number(index);
  transport_.wake();  // as in RailsTransport::add_device_region
  std::vector<fabric::RegionKey> keys;
  keys.reserve(state_.rails.size());
  for (LocalRail& local : state_.rails) {
    keys.push_back(register_device(local, memory));
  }
  enter_memory(state_, index, memory.memory, &words);
  return keys;
}

// All rails or none, because the planner may choose any.
fabric::RegionKey OwnRegions::register_device(LocalRail& local,
                                              const fabric::DeviceMemory& memory) const {
  const fabric::DeviceRegion region = local.rail->add_device_region(memory);
  if (region.way != fabric::DeviceWay::None) {
    return region.key;
  }
  for (const LocalRail& other : state_.rails) {
    other.rail->drop_region(memory.memory);
  }
  fail("the NIC {} ({}) does not reach {} of GPU memory: {}", local.rail->nic(),
       local.rail->provider(), format_bytes(memory.memory.size()), region.why);
}

void OwnRegions::enter(Pe peer, RegionIndex index, std::span<const fabric::RegionKey> keys) {
  const std::lock_guard lock(mutex_);
  const std::size_t rails = contacts_.rail_count(peer);
  if (keys.size() != rails) {
    fail(Status::Mismatch, "region {} of PE {} has {} keys, but that PE has {} rails", index.value,
         peer.value, keys.size(), rails);
  }
  contacts_.enter_keys(peer, index, keys);
}

void OwnRegions::withdraw(RegionIndex index) {
  const std::lock_guard lock(mutex_);
  const std::span<std::byte> memory = state_.regions.at(index.value);
  enter_memory(state_, index, {});
  for (const LocalRail& local : state_.rails) {
    local.rail->drop_region(memory);
  }
}

}  // namespace weft::transport::rails
