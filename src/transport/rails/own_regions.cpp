#include "src/transport/rails/own_regions.hpp"

#include <utility>

#include "src/base/error.hpp"

namespace weft::transport::rails {

void enter_memory(State& state, RegionIndex index, std::span<std::byte> memory) {
  if (index.value >= state.regions.size()) {
    state.regions.resize(index.value + 1);
  }
  state.regions[index.value] = memory;
}

void enter_keys(Peer& peer, RegionIndex index, std::span<const fabric::RegionKey> keys) {
  for (RailLink& link : peer.links) {
    if (index.value >= link.regions.size()) {
      link.regions.resize(index.value + 1);
    }
    link.regions[index.value] = keys[link.remote.value];
  }
}

std::vector<fabric::RegionKey> OwnRegions::offer(RegionIndex index, std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  if (index.value >= kRegionCountMax) {
    fail(Status::OutOfMemory, "region {} is one too many: a PE has at most {} at a time",
         index.value, kRegionCountMax);
  }
  std::vector<fabric::RegionKey> keys;
  keys.reserve(state_.rails.size());
  for (const LocalRail& local : state_.rails) {
    keys.push_back(local.rail->add_region(memory));
  }
  enter_memory(state_, index, memory);
  return keys;
}

void OwnRegions::enter(Pe peer, RegionIndex index, std::span<const fabric::RegionKey> keys) {
  const std::lock_guard lock(mutex_);
  Peer& target = *state_.peers.at(peer.value);
  if (keys.size() != target.rails.size()) {
    fail(Status::Mismatch, "region {} of PE {} has {} keys, but that PE has {} rails", index.value,
         peer.value, keys.size(), target.rails.size());
  }
  enter_keys(target, index, keys);
}

void OwnRegions::withdraw(RegionIndex index) {
  const std::lock_guard lock(mutex_);
  const std::span<std::byte> memory = std::exchange(state_.regions.at(index.value), {});
  for (const LocalRail& local : state_.rails) {
    local.rail->drop_region(memory);
  }
}

}  // namespace weft::transport::rails
