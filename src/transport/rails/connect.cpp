// The control path of RailsTransport: PEs exchange the addresses of their rails and the keys of
// their regions.
#include <algorithm>
#include <utility>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::transport::rails {
namespace {

struct RailEndpoint {
  std::vector<std::byte> address;
  std::string address_text;
  std::uint64_t immediates_max = 0;  // of all PEs together
  std::vector<fabric::RegionKey> regions;
};

// The decoded result of a peer's describe().
struct PeerEndpoints {
  std::string protocol;
  std::vector<std::byte> nonce;  // empty if it signs no messages
  std::vector<RailEndpoint> rails;
};

PeerEndpoints read_endpoints(const bootstrap::Blob& blob, Pe pe) {
  try {
    bootstrap::FieldReader reader(blob);
    PeerEndpoints endpoints{.protocol = reader.text(), .nonce = {}, .rails = {}};
    const auto nonce = reader.blob();
    endpoints.nonce.assign(nonce.begin(), nonce.end());
    const std::uint32_t rail_count = reader.u32();
    if (rail_count > kRailCountMax) {
      fail("{} rails are more than {}", rail_count, kRailCountMax);
    }
    endpoints.rails.resize(rail_count);
    for (RailEndpoint& rail : endpoints.rails) {
      const auto address = reader.blob();
      rail.address.assign(address.begin(), address.end());
      rail.address_text = reader.text();
      rail.immediates_max = reader.u64();
      for (std::uint32_t regions = reader.u32(); regions > 0; --regions) {
        rail.regions.push_back({.key = RemoteKey(reader.u64()), .base = reader.u64()});
      }
    }
    return endpoints;
  } catch (const Error& error) {
    fail(Status::Mismatch,
         "cannot decode the rail addresses of PE {} ({}); run the same version of Weft on all PEs",
         pe.value, error.what());
  }
}

}  // namespace

bootstrap::Blob RailsTransport::describe() const {
  bootstrap::FieldWriter writer;
  writer.text(state_.rails.empty() ? "" : state_.rails.front().rail->protocol());
  writer.blob(state_.options.secret ? std::span<const std::byte>(nonce_)
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
  state_.pe_count = static_cast<std::uint32_t>(connection_data.size());
  state_.near_count = std::max(static_cast<std::uint32_t>(std::ranges::count(reached, false)), 1U);
  state_.peers.resize(connection_data.size());
  for (std::uint32_t pe = 0; pe < connection_data.size(); ++pe) {
    if (!reached[pe]) {
      continue;
    }
    auto peer = std::make_unique<Peer>();
    peer->pe = Pe(pe);
    PeerEndpoints endpoints = read_endpoints(connection_data[pe], Pe(pe));
    peer->rails.resize(endpoints.rails.size());
    if (peer->rails.empty() || state_.rails.empty()) {
      fail("PE {} is on another node and {} has no NIC that can be a rail; weft-info says why", pe,
           peer->rails.empty() ? fmt::format("PE {}", pe)
                               : fmt::format("this PE ({})", state_.me.value));
    }
    if (endpoints.protocol != state_.rails.front().rail->protocol()) {
      fail(Status::Mismatch,
           "PE {} uses the provider {}, this PE {}; set WEFT_PROVIDER on all, and use the same "
           "libfabric and drivers on all nodes",
           pe, endpoints.protocol, state_.rails.front().rail->protocol());
    }
    for (const RailEndpoint& rail : endpoints.rails) {
      if (rail.regions.size() != state_.regions.size()) {
        fail(Status::Mismatch, "PE {} offers {} regions on a rail, this PE has {}", pe,
             rail.regions.size(), state_.regions.size());
      }
    }
    // Which of its queues a piece will reach is not known in advance, and each PE may send at the
    // same time.
    for (const RailEndpoint& rail : endpoints.rails) {
      if (rail.immediates_max > 0) {
        peer->immediates_max =
            std::min(peer->immediates_max, rail.immediates_max / (state_.pe_count - 1));
      }
    }
    peer->seal = make_seal(Pe(pe), endpoints.nonce);
    for (std::size_t remote = 0; remote < peer->rails.size(); ++remote) {
      peer->rails[remote].address = std::move(endpoints.rails[remote].address);
      peer->rails[remote].address_text = std::move(endpoints.rails[remote].address_text);
    }
    for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
      LinkMask mask = 0;
      for (std::uint32_t remote = 0; remote < peer->rails.size(); ++remote) {
        peer->links.push_back(
            {.local = RailIndex(local),
             .remote = RailIndex(remote),
             .address = state_.rails[local].rail->add_peer(peer->rails[remote].address),
             .regions = {endpoints.rails[remote].regions.begin(),
                         endpoints.rails[remote].regions.end()},
             .has_immediate = state_.rails[local].rail->limits().has_immediate &&
                              endpoints.rails[remote].immediates_max > 0});
        mask |= LinkMask{1} << remote;
      }
      peer->masks.push_back(mask);
      peer->outstanding_bytes.push_back(0);
    }
    state_.peers[pe] = std::move(peer);
  }
  selector_.place_senders();
}

std::unique_ptr<Seal> RailsTransport::make_seal(Pe peer,
                                                std::span<const std::byte> peer_nonce) const {
  const auto& secret = state_.options.secret;
  if (peer_nonce.empty() != !secret.has_value()) {
    fail(Status::Mismatch, "PE {} has WEFT_AUTHENTICATE={}, this PE {}; set it alike on all PEs",
         peer.value, peer_nonce.empty() ? "none" : "frames", secret ? "frames" : "none");
  }
  if (!secret) {
    return nullptr;
  }
  SealParty theirs{.pe = peer};
  if (peer_nonce.size() != theirs.nonce.size()) {
    fail(Status::Mismatch, "the random number of PE {} has {} bytes, not {}", peer.value,
         peer_nonce.size(), theirs.nonce.size());
  }
  std::ranges::copy(peer_nonce, theirs.nonce.begin());
  return std::make_unique<Seal>(*secret, SealParty{.pe = state_.me, .nonce = nonce_}, theirs);
}

RailDescriptions RailsTransport::rails() const {
  RailDescriptions descriptions;
  for (const LocalRail& local : state_.rails) {
    descriptions.own.push_back({.nic = local.rail->nic(),
                                .address = local.rail->address_text(),
                                .provider = local.rail->provider(),
                                .rate_bits_per_s = local.rail->limits().rate_bits_per_s});
  }
  std::size_t most = 0;
  for (const auto& peer : state_.peers) {
    most = std::max(most, peer == nullptr ? 0 : peer->rails.size());
  }
  descriptions.peer_rail_count_max = static_cast<std::uint32_t>(most);
  return descriptions;
}

void RailsTransport::count_in(const CounterBlocks& blocks) {
  const std::lock_guard lock(mutex_);
  WEFT_CHECK(blocks.rails.size() >= state_.rails.size() &&
                 blocks.peer_rail_stride >= rails().peer_rail_count_max &&
                 blocks.peers.size() >= state_.peers.size() * blocks.peer_rail_stride,
             "{} blocks for {} rails, {} entries for {} PEs", blocks.rails.size(),
             state_.rails.size(), blocks.peers.size(), state_.peers.size());
  links_.count_in(blocks);
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
    if (state_.peers[pe] == nullptr) {
      continue;
    }
    Peer& peer = *state_.peers[pe];
    bootstrap::FieldReader reader(region_data[pe]);
    std::vector<fabric::RegionKey> keys(peer.rails.size());
    for (fabric::RegionKey& key : keys) {
      key.key = RemoteKey(reader.u64());
      key.base = reader.u64();
    }
    enter_keys(peer, index, keys);
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
    if (state_.peers[pe] == nullptr) {
      continue;
    }
    Peer& peer = *state_.peers[pe];
    bootstrap::FieldReader reader(blobs[pe]);
    std::vector<fabric::RegionKey> keys(peer.rails.size());
    bool is_theirs_taken = true;
    for (fabric::RegionKey& key : keys) {
      is_theirs_taken = reader.u32() != 0 && is_theirs_taken;
      key = {.key = RemoteKey(reader.u64()), .base = reader.u64()};
    }
    enter_keys(peer, index, keys);
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
  for (const auto& peer : state_.peers) {
    for (std::size_t i = 0; peer != nullptr && i < peer->links.size(); ++i) {
      peer->links[i].regions[index.value].reset();
    }
  }
}

}  // namespace weft::transport::rails
