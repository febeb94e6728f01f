// A rail with seeded fault injection: rejects posts, delays and reorders operations and events, and
// dies temporarily. A decorator of any Rail, so that whole programs can run on it: WEFT_FAULTS.
//
// Owner and threads: as Rail. poll releases what was held back, so nothing is lost. An operation
// that dies here fails like one that the NIC gave up on: in some cases its bytes have arrived.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "src/fabric/rail.hpp"

namespace weft::transport::faulty {

struct FaultPlan {
  std::uint64_t seed = 0;
  double refuse = 0;                // fraction of posts answered with Full, including receives
  double delay = 0;                 // fraction of operations and arrivals that are held back
  double reorder = 0;               // fraction of those released that are not the oldest
  std::uint64_t kill_every = 0;     // the rail dies after this many posts; 0: never
  std::uint64_t dead_polls = 2000;  // and returns after this many polls
  double deny = 0;                  // fraction of writes and reads that are rejected (Refused)
  bool no_inject = false;           // claims injected writes and rejects them, as EFA (-FI_ENOSYS)
  bool no_immediate = false;  // claims immediate data and rejects it, as Slingshot (-FI_EBADFLAGS)

  [[nodiscard]] bool is_active() const { return seed != 0; }
};

// "seed=7,reorder=0.3,delay=0.1,refuse=0.05,kill=1000,no_inject=1"; "" means no faults. Throws
// Error.
[[nodiscard]] FaultPlan parse_faults(std::string_view text);

class FaultyRail final : public fabric::Rail {
 public:
  // `number` makes the rails of a job behave differently under one seed.
  FaultyRail(std::unique_ptr<fabric::Rail> inner, FaultPlan plan, std::uint64_t number);

  [[nodiscard]] const fabric::RailLimits& limits() const override { return limits_; }

  void restrict_to(const fabric::RailLimits& limits) noexcept override {
    limits_ = limits;
    inner_->restrict_to(limits);
  }

  [[nodiscard]] const std::string& nic() const override { return inner_->nic(); }

  [[nodiscard]] const std::string& address_text() const override { return inner_->address_text(); }

  [[nodiscard]] const std::string& provider() const override { return inner_->provider(); }

  [[nodiscard]] std::string protocol() const override { return inner_->protocol(); }

  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }

  [[nodiscard]] bool adds_peers_early() const override { return inner_->adds_peers_early(); }

  fabric::PeerHandle add_peer(std::span<const std::byte> address) override {
    return inner_->add_peer(address);
  }

  fabric::RegionKey add_region(std::span<std::byte> memory) override {
    return inner_->add_region(memory);
  }

  fabric::DeviceRegion add_device_region(const fabric::DeviceMemory& memory) override {
    return inner_->add_device_region(memory);
  }

  void drop_region(std::span<std::byte> memory) noexcept override { inner_->drop_region(memory); }

  void keep_registered(std::span<std::byte> memory) noexcept override {
    inner_->keep_registered(memory);
  }

  fabric::PostResult post_write(const fabric::LocalMemory& source,
                                const fabric::RemoteMemory& dest,
                                std::optional<std::uint32_t> immediate,
                                fabric::PostContext* context) noexcept override;
  fabric::PostResult post_read(const fabric::LocalMemory& dest,
                               const fabric::RemoteMemory& source,
                               fabric::PostContext* context) noexcept override;
  fabric::PostResult post_send(const fabric::LocalMemory& message,
                               fabric::PeerHandle peer,
                               fabric::PostContext* context) noexcept override;

  fabric::PostResult post_receive(const fabric::LocalMemory& buffer,
                                  fabric::PostContext* context) noexcept override;

  std::size_t poll(std::span<fabric::Event> events) noexcept override;

  [[nodiscard]] int last_error() const noexcept override {
    return refusal_ != 0 ? refusal_ : inner_->last_error();
  }

  [[nodiscard]] const char* last_action() const noexcept override {
    return refusal_ != 0 ? refused_action_ : inner_->last_action();
  }

  [[nodiscard]] std::string words_of(const fabric::Event& event) const override {
    return inner_->words_of(event);
  }

  [[nodiscard]] int wait_descriptor() const noexcept override { return -1; }  // held work has none

  [[nodiscard]] bool may_sleep() noexcept override { return held_.empty() && inner_->may_sleep(); }

  [[nodiscard]] fabric::LinkHealth examine(std::span<const std::byte> peer_address,
                                           std::uint32_t silent_ms) noexcept override {
    return inner_->examine(peer_address, silent_ms);
  }

  bool cut(std::span<const std::byte> peer_address) noexcept override {
    return inner_->cut(peer_address);
  }

 private:
  enum class Kind : std::uint8_t { Write, Read, Send };

  struct Held {
    Kind kind = Kind::Write;
    fabric::LocalMemory local;
    std::vector<std::byte> injected;  // the caller may reuse its memory, as limits() promises
    fabric::RemoteMemory remote;
    std::optional<std::uint32_t> immediate;
    fabric::PostContext* context = nullptr;
  };

  bool chance(double probability);
  [[nodiscard]] bool is_injected(const Held& operation) const;
  // The error with which the operation is permanently rejected, or 0.
  int refusal_of(const Held& operation) noexcept;
  fabric::PostResult accept(Held operation) noexcept;
  fabric::PostResult hand_on(Held& operation) noexcept;
  void release_some() noexcept;
  void count_post() noexcept;
  void keep_or_pass(const fabric::Event& event) noexcept;

  std::unique_ptr<fabric::Rail> inner_;
  FaultPlan plan_;
  fabric::RailLimits limits_;
  int refusal_ = 0;  // of the last post: injected here, not by the inner rail
  const char* refused_action_ = "";
  std::mt19937_64 random_;
  std::deque<Held> held_;                           // posts not yet passed on
  std::deque<fabric::Event> ready_;                 // events for the owner
  std::deque<fabric::Event> late_;                  // arrivals held back
  std::deque<std::vector<std::byte>> sent_copies_;  // injected memory that the NIC may still read
  std::uint64_t posts_ = 0;
  std::uint64_t dead_polls_left_ = 0;
};

}  // namespace weft::transport::faulty
