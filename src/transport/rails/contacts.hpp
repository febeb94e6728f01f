// The peers by first use. Of a peer with which this PE has exchanged nothing it keeps only what the
// peer said of itself, in some hundred bytes; the first operation to it, or the first message or
// piece from it, makes its Peer.
//
// Called under the transport's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/rails/links.hpp"
#include "src/transport/rails/rail_selector.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Contacts {
 public:
  Contacts(State& state, Links& links, const RailSelector& selector)
      : state_(state), links_(links), selector_(selector) {}

  // Call once, before all else. `near_count`: see State.
  void expect(std::uint32_t pe_count, std::uint32_t near_count);
  // What a peer's describe() returned. Throws Error if it does not fit this PE.
  void add(Pe pe, const bootstrap::Blob& description);

  // Null if it is no PE that rails reach. A peer whose addresses a rail does not take is lost.
  [[nodiscard]] Peer* find(Pe pe) {
    if (pe.value >= state_.peers.size()) {
      return nullptr;
    }
    Peer* const met = state_.peers[pe.value].get();
    return met != nullptr || cards_[pe.value] == nullptr ? met : meet(pe);
  }

  // 0 if rails do not reach it.
  [[nodiscard]] std::size_t rail_count(Pe pe) const;

  // Of any peer.
  [[nodiscard]] std::uint32_t rail_count_max() const { return rail_count_max_; }

  // The keys of a region, by the peer's rails, in place of older ones.
  void enter_keys(Pe pe, RegionIndex index, std::span<const fabric::RegionKey> keys);
  // No peer has the region any more.
  void forget_keys(RegionIndex index);

 private:
  // The keys of a region that came after the description, by the peer's rails. Empty: it was
  // removed.
  struct LaterKeys {
    RegionIndex index;
    std::vector<fabric::RegionKey> keys;
  };

  // A peer that this PE has not met.
  struct Card {
    bootstrap::Blob description;
    std::vector<LaterKeys> later;
    std::vector<fabric::PeerHandle> handles;  // if the NICs must know it before: by link
    std::uint32_t rail_count = 0;
  };

  static void set_keys(Card& card, LaterKeys keys);
  Peer* meet(Pe pe);
  void make_links(Peer& peer, const Card& card) const;
  [[nodiscard]] std::unique_ptr<Seal> make_seal(Pe peer, std::span<const std::byte> nonce) const;

  State& state_;
  Links& links_;
  const RailSelector& selector_;
  std::vector<std::unique_ptr<Card>> cards_;  // by PE; null for those that were met
  std::uint32_t rail_count_max_ = 0;          // constant after the last add
};

}  // namespace weft::transport::rails
