#include "src/transport/rails/contacts.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/bootstrap/frame.hpp"

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

void require_fit(const State& state, Pe pe, const PeerEndpoints& endpoints) {
  if (endpoints.rails.empty() || state.rails.empty()) {
    fail("PE {} is on another node and {} has no NIC that can be a rail; weft-info says why",
         pe.value,
         endpoints.rails.empty() ? fmt::format("PE {}", pe.value)
                                 : fmt::format("this PE ({})", state.me.value));
  }
  const std::string protocol = state.rails.front().rail->protocol();
  if (endpoints.protocol != protocol) {
    fail(Status::Mismatch,
         "PE {} uses the provider {}, this PE {}; set WEFT_PROVIDER on all, and use the same "
         "libfabric and drivers on all nodes",
         pe.value, endpoints.protocol, protocol);
  }
  for (const RailEndpoint& rail : endpoints.rails) {
    if (rail.regions.size() != state.regions.size()) {
      fail(Status::Mismatch, "PE {} offers {} regions on a rail, this PE has {}", pe.value,
           rail.regions.size(), state.regions.size());
    }
  }
  const auto& secret = state.options.secret;
  if (endpoints.nonce.empty() != !secret.has_value()) {
    fail(Status::Mismatch, "PE {} has WEFT_AUTHENTICATE={}, this PE {}; set it alike on all PEs",
         pe.value, endpoints.nonce.empty() ? "none" : "frames", secret ? "frames" : "none");
  }
  if (secret && endpoints.nonce.size() != sizeof(SealNonce)) {
    fail(Status::Mismatch, "the random number of PE {} has {} bytes, not {}", pe.value,
         endpoints.nonce.size(), sizeof(SealNonce));
  }
}

// Which of its queues a piece will reach is not known in advance, and each PE may send at the same
// time.
std::uint64_t immediates_share(const State& state, const PeerEndpoints& endpoints) {
  std::uint64_t share = std::numeric_limits<std::uint64_t>::max();
  for (const RailEndpoint& rail : endpoints.rails) {
    if (rail.immediates_max > 0) {
      share = std::min(share, rail.immediates_max / (state.pe_count - 1));
    }
  }
  return share;
}

void set_region(PeerRail& rail, RegionIndex index, std::optional<fabric::RegionKey> key) {
  if (index.value >= rail.regions.size()) {
    rail.regions.resize(index.value + 1);
  }
  rail.regions[index.value] = key;
}

}  // namespace

void Contacts::expect(std::uint32_t pe_count, std::uint32_t near_count) {
  state_.pe_count = pe_count;
  state_.near_count = near_count;
  state_.peers.resize(pe_count);
  cards_.resize(pe_count);
}

void Contacts::add(Pe pe, const bootstrap::Blob& description) {
  const PeerEndpoints endpoints = read_endpoints(description, pe);
  require_fit(state_, pe, endpoints);
  auto card = std::make_unique<Card>();
  card->description = description;
  card->rail_count = static_cast<std::uint32_t>(endpoints.rails.size());
  rail_count_max_ = std::max(rail_count_max_, card->rail_count);
  for (const LocalRail& local : state_.rails) {
    for (std::size_t i = 0; local.rail->adds_peers_early() && i < endpoints.rails.size(); ++i) {
      card->handles.push_back(local.rail->add_peer(endpoints.rails[i].address));
    }
  }
  cards_[pe.value] = std::move(card);
}

Peer* Contacts::meet(Pe pe) {
  const std::unique_ptr<Card> card = std::move(cards_[pe.value]);
  PeerEndpoints endpoints = read_endpoints(card->description, pe);
  auto made = std::make_unique<Peer>();
  made->pe = pe;
  made->immediates_max = immediates_share(state_, endpoints);
  made->seal = make_seal(pe, endpoints.nonce);
  made->rails.resize(endpoints.rails.size());
  for (std::size_t remote = 0; remote < made->rails.size(); ++remote) {
    RailEndpoint& endpoint = endpoints.rails[remote];
    PeerRail& rail = made->rails[remote];
    rail.regions.assign(endpoint.regions.begin(), endpoint.regions.end());
    rail.has_immediate = endpoint.immediates_max > 0;
    rail.address = std::move(endpoint.address);
    rail.address_text = std::move(endpoint.address_text);
    for (const LaterKeys& later : card->later) {
      set_region(rail, later.index,
                 later.keys.empty() ? std::nullopt : std::optional(later.keys[remote]));
    }
  }
  Peer& peer = *(state_.peers[pe.value] = std::move(made));
  state_.met.push_back(pe.value);
  try {
    make_links(peer, *card);
  } catch (const Error& error) {
    log::error("PE {} is lost: {}; operations to it fail", pe.value, error.what());
    peer.status = Status::PeerLost;
    peer.links.clear();
  }
  selector_.place(peer);
  links_.introduce(peer);
  return &peer;
}

void Contacts::make_links(Peer& peer, const Card& card) const {
  peer.links.reserve(state_.rails.size() * peer.rails.size());
  for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
    fabric::Rail& ours = *state_.rails[local].rail;
    for (std::uint32_t remote = 0; remote < peer.rails.size(); ++remote) {
      const PeerRail& theirs = peer.rails[remote];
      peer.links.push_back({.local = RailIndex(local),
                            .remote = RailIndex(remote),
                            .address = card.handles.empty()
                                           ? ours.add_peer(theirs.address)
                                           : card.handles[local * peer.rails.size() + remote],
                            .has_immediate = ours.limits().has_immediate && theirs.has_immediate});
    }
    peer.masks.push_back(static_cast<LinkMask>((std::uint64_t{1} << peer.rails.size()) - 1));
    peer.outstanding_bytes.push_back(0);
  }
}

std::unique_ptr<Seal> Contacts::make_seal(Pe peer, std::span<const std::byte> nonce) const {
  const auto& secret = state_.options.secret;
  if (!secret) {
    return nullptr;
  }
  SealParty theirs{.pe = peer};
  std::ranges::copy(nonce, theirs.nonce.begin());
  return std::make_unique<Seal>(*secret, SealParty{.pe = state_.me, .nonce = state_.nonce}, theirs);
}

std::size_t Contacts::rail_count(Pe pe) const {
  if (pe.value >= state_.peers.size()) {
    return 0;
  }
  if (const Peer* const met = state_.peers[pe.value].get(); met != nullptr) {
    return met->rails.size();
  }
  const Card* const card = cards_[pe.value].get();
  return card == nullptr ? 0 : card->rail_count;
}

void Contacts::set_keys(Card& card, LaterKeys keys) {
  const auto before = std::ranges::find(card.later, keys.index, &LaterKeys::index);
  if (before == card.later.end()) {
    card.later.push_back(std::move(keys));
  } else {
    *before = std::move(keys);
  }
}

void Contacts::enter_keys(Pe pe, RegionIndex index, std::span<const fabric::RegionKey> keys) {
  if (Peer* const met = state_.peers[pe.value].get(); met != nullptr) {
    for (std::size_t remote = 0; remote < met->rails.size(); ++remote) {
      set_region(met->rails[remote], index, keys[remote]);
    }
  } else if (cards_[pe.value] != nullptr) {
    set_keys(*cards_[pe.value], {.index = index, .keys = {keys.begin(), keys.end()}});
  }
}

void Contacts::forget_keys(RegionIndex index) {
  for (const std::uint32_t pe : state_.met) {
    for (PeerRail& rail : state_.peers[pe]->rails) {
      set_region(rail, index, std::nullopt);
    }
  }
  for (const std::unique_ptr<Card>& card : cards_) {
    if (card != nullptr) {
      set_keys(*card, {.index = index, .keys = {}});
    }
  }
}

}  // namespace weft::transport::rails
