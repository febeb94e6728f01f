// The control path of RailsTransport: PEs exchange the addresses of their rails and the keys of
// their regions.
#include <algorithm>
#include <utility>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::transport::rails {

bootstrap::Blob RailsTransport::describe() const {
  bootstrap::FieldWriter writer;
  writer.text(state_.rails.empty() ? "" : state_.rails.front().rail->protocol());
  writer.blob(state_.options.secret ? std::span<const std::byte>(state_.nonce)
                                    : std::span<const std::byte>());
  writer.u32(static_cast<std::uint32_t>(state_.rails.size()));
  for (const LocalRail& local : state_.rails) {
    writer.blob(local.rail->address());
    writer.text(local.rail->address_text());
    const fabric::RailLimits& limits = local.rail->limits();
    writer.u64(limits.has_immediate ? limits.immediates_max : 0);
    writer.u32(static_cast<std::uint32_t>(state_.regions.size()));
    std::uint64_t skipped =
        state_.options.unregistered_bytes;  // of the heap, which is the first region
    for (const std::span<std::byte> region : state_.regions) {
      const fabric::RegionKey key = local.rail->add_region(region.subspan(skipped));
      writer.u64(key.key.value)
          .u64(key.base - skipped);  // may wrap around: offsets are added to it
      skipped = 0;
    }
  }
  return writer.bytes();
}

void RailsTransport::connect(const std::vector<bootstrap::Blob>& connection_data,
                             const std::vector<bool>& reached) {
  const std::lock_guard lock(mutex_);
  contacts_.expect(static_cast<std::uint32_t>(connection_data.size()),
                   std::max(static_cast<std::uint32_t>(std::ranges::count(reached, false)), 1U));
  for (std::uint32_t pe = 0; pe < connection_data.size(); ++pe) {
    if (reached[pe]) {
      contacts_.add(Pe(pe), connection_data[pe]);
    }
  }
}

RailDescriptions RailsTransport::rails() const {
  RailDescriptions descriptions;
  for (const LocalRail& local : state_.rails) {
    descriptions.own.push_back({.nic = local.rail->nic(),
                                .address = local.rail->address_text(),
                                .provider = local.rail->provider(),
                                .rate_bits_per_s = local.rail->limits().rate_bits_per_s});
  }
  descriptions.peer_rail_count_max = contacts_.rail_count_max();
  return descriptions;
}

void RailsTransport::count_in(const CounterBlocks& blocks) {
  const std::lock_guard lock(mutex_);
  WEFT_CHECK(blocks.rails.size() >= state_.rails.size() &&
                 blocks.peer_rail_stride >= contacts_.rail_count_max() &&
                 blocks.peers.size() >= std::size_t{state_.pe_count} * blocks.peer_rail_stride,
             "{} blocks for {} rails, {} entries for {} PEs", blocks.rails.size(),
             state_.rails.size(), blocks.peers.size(), state_.pe_count);
  std::vector<std::uint32_t> rail_counts(state_.pe_count);
  for (std::uint32_t pe = 0; pe < state_.pe_count; ++pe) {
    rail_counts[pe] = static_cast<std::uint32_t>(contacts_.rail_count(Pe(pe)));
  }
  links_.count_in(blocks, rail_counts);
}

bootstrap::Blob RailsTransport::add_region(RegionIndex index, std::span<std::byte> memory) {
  bootstrap::FieldWriter writer;
  for (const fabric::RegionKey& key : own_regions_.offer(index, memory)) {
    writer.u64(key.key.value).u64(key.base);
  }
  return writer.bytes();
}

void RailsTransport::connect_region(RegionIndex index,
                                    const std::vector<bootstrap::Blob>& region_data) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t pe = 0; pe < region_data.size(); ++pe) {
    std::vector<fabric::RegionKey> keys(contacts_.rail_count(Pe(pe)));
    bootstrap::FieldReader reader(region_data[pe]);
    for (fabric::RegionKey& key : keys) {
      key.key = RemoteKey(reader.u64());
      key.base = reader.u64();
    }
    contacts_.enter_keys(Pe(pe), index, keys);
  }
}

// For the CPU the region is empty: the CPU carries out the frames of messages, and must not access
// GPU memory.
bootstrap::Blob RailsTransport::add_device_region(RegionIndex index,
                                                  const fabric::DeviceMemory* memory) {
  const std::lock_guard lock(mutex_);
  // Before it offers a region, a rail tests it (region_proof.hpp). That may take events of other
  // operations from the completion queue, which the rail keeps for the next poll.
  wake();
  bootstrap::FieldWriter writer;
  device_rails_.clear();
  for (const LocalRail& local : state_.rails) {
    const fabric::DeviceRegion region = memory == nullptr
                                            ? fabric::DeviceRegion{.why = "it is not offered"}
                                            : local.rail->add_device_region(*memory);
    writer.u32(static_cast<std::uint32_t>(region.way)).u64(region.key.key.value);
    writer.u64(region.key.base);
    device_rails_.push_back({local.rail->nic(), region.way, region.why});
  }
  enter_memory(state_, index, {});
  return writer.bytes();
}

std::vector<bool> RailsTransport::connect_device_region(RegionIndex index,
                                                        const std::vector<bootstrap::Blob>& blobs) {
  const std::lock_guard lock(mutex_);
  const auto is_taken = [](const DeviceRail& rail) { return rail.way != fabric::DeviceWay::None; };
  const bool is_mine_taken = std::ranges::all_of(device_rails_, is_taken);
  std::vector<bool> usable(blobs.size(), false);
  for (std::uint32_t pe = 0; pe < blobs.size(); ++pe) {
    std::vector<fabric::RegionKey> keys(contacts_.rail_count(Pe(pe)));
    if (keys.empty()) {
      continue;
    }
    bootstrap::FieldReader reader(blobs[pe]);
    bool is_theirs_taken = true;
    for (fabric::RegionKey& key : keys) {
      is_theirs_taken = reader.u32() != 0 && is_theirs_taken;
      key = {.key = RemoteKey(reader.u64()), .base = reader.u64()};
    }
    contacts_.enter_keys(Pe(pe), index, keys);
    usable[pe] = is_mine_taken && is_theirs_taken;
  }
  return usable;
}

std::vector<DeviceRail> RailsTransport::register_device_memory(const fabric::DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  wake();  // as in add_device_region
  std::vector<DeviceRail> results;
  for (const LocalRail& local : state_.rails) {
    const fabric::DeviceRegion region = local.rail->add_device_region(memory);
    results.push_back({local.rail->nic(), region.way, region.why});
  }
  // The planner may choose any rail.
  if (std::ranges::any_of(
          results, [](const DeviceRail& rail) { return rail.way == fabric::DeviceWay::None; })) {
    for (const LocalRail& local : state_.rails) {
      local.rail->drop_region(memory.memory);
    }
  }
  return results;
}

void RailsTransport::drop_device_region(std::span<std::byte> memory) noexcept {
  const std::lock_guard lock(mutex_);
  for (const LocalRail& local : state_.rails) {
    local.rail->drop_region(memory);
  }
}

std::vector<DeviceRail> RailsTransport::device_rails() const {
  const std::lock_guard lock(mutex_);
  return device_rails_;
}

void RailsTransport::remove_region(RegionIndex index) {
  const std::lock_guard lock(mutex_);
  const std::span<std::byte> memory = state_.regions.at(index.value);
  enter_memory(state_, index, {});
  for (const LocalRail& local : state_.rails) {
    local.rail->drop_region(memory);
  }
  contacts_.forget_keys(index);
}

}  // namespace weft::transport::rails
