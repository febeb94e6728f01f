// The control path of RailsTransport: what PEs tell each other about their rails, and the opening of
// connections before anybody has to wait for one.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::transport::rails {
namespace {

// Appends plain values and byte strings; Reader takes them back in the same order.
class Writer {
 public:
  void number(std::uint64_t value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    blob.insert(blob.end(), bytes, bytes + sizeof(value));
  }

  void bytes(std::span<const std::byte> value) {
    number(value.size());
    blob.insert(blob.end(), value.begin(), value.end());
  }

  void text(std::string_view value) { bytes(std::as_bytes(std::span(value.data(), value.size()))); }

  bootstrap::Blob blob;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> blob) : rest_(blob) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto taken = take(sizeof(value));
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }

  std::vector<std::byte> bytes() {
    const auto taken = take(number());
    return {taken.begin(), taken.end()};
  }

  std::string text() {
    const auto taken = bytes();
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      fail(
          "a PE described its rails in a way that this version does not read; do all PEs use the "
          "same Weft?");
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::byte> rest_;
};

// Rails that the policy may use from `local`: warm-up opens no connection that stays idle.
bool is_used(Policy policy, const RailLink& link, std::size_t remote_count) {
  switch (policy) {
    case Policy::Single:
      return link.local.value == 0 && link.remote.value == 0;
    case Policy::Coupled:
    case Policy::Aligned:
      return link.local.value % remote_count == link.remote.value;
    case Policy::Offset:
    case Policy::Balanced:
      return true;
  }
  return true;
}

}  // namespace

bootstrap::Blob RailsTransport::describe() const {
  Writer writer;
  writer.text(state_.rails.empty() ? "" : state_.rails.front().rail->provider());
  writer.number(state_.rails.size());
  for (const LocalRail& local : state_.rails) {
    writer.bytes(local.rail->address());
    writer.number(state_.regions.size());
    for (const LocalRegion& region : state_.regions) {
      const fabric::RegionKey key = local.rail->add_region({region.base, region.bytes});
      writer.number(key.key.value);
      writer.number(key.base);
    }
  }
  return writer.blob;
}

void RailsTransport::connect(const std::vector<bootstrap::Blob>& blobs,
                             const std::vector<bool>& is_mapped) {
  const std::lock_guard lock(mutex_);
  state_.pe_count = static_cast<std::uint32_t>(blobs.size());
  state_.peers.resize(blobs.size());
  for (std::uint32_t pe = 0; pe < blobs.size(); ++pe) {
    if (is_mapped[pe]) {
      continue;
    }
    auto peer = std::make_unique<Peer>();
    peer->pe = Pe(pe);
    Reader reader(blobs[pe]);
    const std::string provider = reader.text();
    peer->rails.resize(reader.number());
    if (peer->rails.empty() || state_.rails.empty()) {
      fail("PE {} is on another node and {} has no NIC that can be a rail; weft-info says why", pe,
           peer->rails.empty() ? fmt::format("PE {}", pe)
                               : fmt::format("this PE ({})", state_.me.value));
    }
    if (provider != state_.rails.front().rail->provider()) {
      fail(Status::Mismatch, "PE {} uses the provider {}, this PE {}; set WEFT_PROVIDER on all", pe,
           provider, state_.rails.front().rail->provider());
    }
    std::vector<std::vector<fabric::RegionKey>> keys(peer->rails.size());
    for (std::size_t remote = 0; remote < peer->rails.size(); ++remote) {
      peer->rails[remote].address = reader.bytes();
      keys[remote].resize(reader.number());
      for (fabric::RegionKey& key : keys[remote]) {
        key.key = RemoteKey(reader.number());
        key.base = reader.number();
      }
    }
    for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
      LinkMask mask = 0;
      for (std::uint32_t remote = 0; remote < peer->rails.size(); ++remote) {
        peer->links.push_back(
            {.local = RailIndex(local),
             .remote = RailIndex(remote),
             .address = state_.rails[local].rail->add_peer(peer->rails[remote].address),
             .regions = keys[remote]});
        mask |= LinkMask{1} << remote;
      }
      peer->masks.push_back(mask);
      peer->outstanding_bytes.push_back(0);
    }
    state_.peers[pe] = std::move(peer);
  }
}

// Takes from `cold` the links whose probe was posted or that are known to be down.
void RailsTransport::start_probes(std::vector<std::pair<Peer*, RailLink*>>& cold) {
  const std::lock_guard lock(mutex_);
  state_.now_ns = now_ns();
  std::erase_if(cold, [this](const auto& entry) {
    const auto& [peer, link] = entry;
    return link->warm || link->probing || recovery_.probe(*peer, *link);
  });
}

void RailsTransport::warm_up(std::span<const Pe> peers, std::uint32_t timeout_s) {
  std::vector<std::pair<Peer*, RailLink*>> wanted;
  for (const Pe pe : peers) {
    Peer* peer = state_.peers[pe.value].get();
    if (peer == nullptr) {
      continue;
    }
    for (RailLink& link : peer->links) {
      if (is_used(state_.options.policy, link, peer->rails.size())) {
        wanted.emplace_back(peer, &link);
      }
    }
  }
  auto cold = wanted;
  const auto is_settled = [this, &wanted] {
    const std::lock_guard lock(mutex_);
    return std::ranges::none_of(wanted, [](const auto& entry) { return entry.second->probing; });
  };
  const std::uint64_t deadline_ns = now_ns() + std::uint64_t{timeout_s} * 1'000'000'000;
  while (!cold.empty() || !is_settled()) {
    start_probes(cold);
    if (!progress()) {
      wait_for_event(1000);
    }
    if (now_ns() > deadline_ns) {
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, link] : wanted) {
    const bool reached = std::ranges::any_of(peer->links, &RailLink::warm);
    if (!reached) {
      fail(Status::PeerLost,
           "PE {} was not reached over any of {} x {} rails within {} s (ours: {} {}; is there a "
           "route, is a "
           "firewall in between?)",
           peer->pe.value, state_.rails.size(), peer->rails.size(), timeout_s,
           state_.rails.front().rail->nic(), state_.rails.front().rail->address_text());
    }
  }
  for (const LocalRail& local : state_.rails) {
    local.counters->warm = 1;
  }
}

}  // namespace weft::transport::rails
