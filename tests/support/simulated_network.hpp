// A network in memory, for tests: rails whose operations arrive in any order, late, or not at all,
// by seed. Runs without a NIC and under every sanitizer, and does what a real network does rarely.
//
// A killed rail fails every operation that is on its way to or from it; by chance the bytes (and
// the immediate data) of such an operation have arrived all the same, as with a lost
// acknowledgement. Threads: one lock; any rail may be polled from any thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/fabric/rail.hpp"

namespace weft::test {

struct NetworkFaults {
  double delay = 0.3;   // share of steps in which an operation is left where it is
  double refuse = 0.0;  // share of posts that are answered with Full
  double refuse_receives = 0.0;
  std::size_t depth = 64;
  bool has_immediate = true;
  std::size_t inject_write_bytes = 32;
  std::size_t message_bytes_max = std::size_t{1} << 30U;
  std::size_t rma_bytes_max = std::size_t{1} << 30U;
  int error = 5;  // of operations of a killed rail: EIO
  // Entries that each rail's queue has for immediate data; what comes beyond is lost in silence. 0:
  // no limit.
  std::size_t immediates_max = 0;
  bool immediates_use_receives = false;  // each takes a posted receive, and waits for one
  bool needs_senders = false;            // what comes from a rail that was not added is refused
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(std::uint64_t seed, NetworkFaults faults) : random_(seed), faults_(faults) {}

  // It takes device regions of up to `device_bytes_max`, if any.
  std::unique_ptr<fabric::Rail> make_rail(const std::string& nic,
                                          bool takes_device_memory = true,
                                          std::size_t device_bytes_max = SIZE_MAX);

  // Everything to and from the rail fails from now on, until it is revived.
  void kill(std::size_t rail) {
    const std::lock_guard lock(mutex_);
    nodes_[rail].dead = true;
    for (auto flight = flights_.begin(); flight != flights_.end();) {
      if (flight->from == rail || flight->to == rail) {
        fail_flight(*flight);
        flight = flights_.erase(flight);
      } else {
        ++flight;
      }
    }
  }

  void revive(std::size_t rail) {
    const std::lock_guard lock(mutex_);
    nodes_[rail].dead = false;
  }

  // The rail says that its NIC is down.
  void unplug(std::size_t rail) {
    const std::lock_guard lock(mutex_);
    nodes_[rail].is_unplugged = true;
  }

  // The rail's owner ends before others do: what was sent to it is dropped, and nothing touches its
  // memory any more.
  void close(std::size_t rail) {
    const std::lock_guard lock(mutex_);
    nodes_[rail].is_closed = true;
    nodes_[rail].receives.clear();
    nodes_[rail].regions.assign(nodes_[rail].regions.size(), {});
    std::erase_if(flights_, [&](const Flight& flight) { return flight.from == rail; });
  }

  // Operations of any rail whose local memory begins here are refused: it cannot be registered.
  void forbid(std::span<std::byte> memory) {
    const std::lock_guard lock(mutex_);
    forbidden_ = memory;
  }

  // Writes into region `key` of the rail stay on their way, until let_go.
  void hold_writes(std::size_t rail, std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    held_rail_ = rail;
    held_key_ = key;
  }

  // Reads of so many bytes stay on their way, until let_go.
  void hold_reads(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    held_read_bytes_ = bytes;
  }

  void let_go() {
    hold_writes(0, 0);
    hold_reads(0);
  }

  // Operations that are held now.
  [[nodiscard]] std::size_t held() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Flight& flight : flights_) {
      count += is_held(flight) ? 1 : 0;
    }
    return count;
  }

  // Registrations that have not been dropped, of all rails.
  [[nodiscard]] std::size_t region_count() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Node& node : nodes_) {
      for (const std::span<std::byte> region : node.regions) {
        count += region.empty() ? 0 : 1;
      }
    }
    return count;
  }

  // What the rail has registered, in order.
  [[nodiscard]] std::vector<std::span<std::byte>> regions(std::size_t rail) {
    const std::lock_guard lock(mutex_);
    return nodes_[rail].regions;
  }

  [[nodiscard]] std::size_t rail_count() const { return nodes_.size(); }

  // Immediate data that was lost because a queue was full.
  [[nodiscard]] std::size_t overruns() {
    const std::lock_guard lock(mutex_);
    return overruns_;
  }

  // The most immediate data that a queue held at a time.
  [[nodiscard]] std::size_t immediates_high() {
    const std::lock_guard lock(mutex_);
    return immediates_high_;
  }

 private:
  friend class SimulatedRail;
  enum class Kind : std::uint8_t { Write, Read, Send };

  struct Flight {
    Kind kind = Kind::Write;
    std::size_t from = 0;
    std::size_t to = 0;
    fabric::LocalMemory local;
    std::vector<std::byte> injected;  // the source was free when the post returned
    std::uint64_t remote_address = 0;
    std::uint64_t key = 0;
    std::optional<std::uint32_t> immediate;
    fabric::PostContext* context = nullptr;
  };

  struct Receive {
    fabric::LocalMemory buffer;
    fabric::PostContext* context = nullptr;
  };

  struct Node {
    bool dead = false;
    bool is_closed = false;
    bool is_unplugged = false;
    std::vector<std::size_t> added;  // rails
    std::vector<std::span<std::byte>> regions;
    std::deque<fabric::Event> events;
    std::deque<Receive> receives;
    std::size_t outstanding = 0;
    std::size_t immediates = 0;  // among its events
  };

  bool chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }

  fabric::PostResult post(Flight flight) {
    const std::lock_guard lock(mutex_);
    WEFT_CHECK(flight.local.bytes <=
                   (flight.kind == Kind::Send ? faults_.message_bytes_max : faults_.rma_bytes_max),
               "{} bytes at once", flight.local.bytes);
    const auto* local = static_cast<const std::byte*>(flight.local.address);
    if (local >= forbidden_.data() && local < forbidden_.data() + forbidden_.size()) {
      return fabric::PostResult::Refused;
    }
    if (chance(faults_.refuse) || nodes_[flight.from].outstanding >= faults_.depth) {
      return fabric::PostResult::Full;
    }
    ++nodes_[flight.from].outstanding;
    if (nodes_[flight.from].dead || nodes_[flight.to].dead) {
      complete(flight, fabric::EventKind::Failed);
      return fabric::PostResult::Posted;
    }
    flights_.push_back(std::move(flight));
    return fabric::PostResult::Posted;
  }

  [[nodiscard]] bool is_held(const Flight& flight) const {
    if (flight.kind == Kind::Read) {
      return held_read_bytes_ != 0 && flight.local.bytes == held_read_bytes_;
    }
    return held_key_ != 0 && flight.kind == Kind::Write && flight.to == held_rail_ &&
           flight.key == held_key_;
  }

  void complete(const Flight& flight, fabric::EventKind kind) {
    --nodes_[flight.from].outstanding;
    nodes_[flight.from].events.push_back(
        {.kind = kind, .context = flight.context, .error = faults_.error});
  }

  void fail_flight(const Flight& flight) {
    if (chance(0.5)) {
      static_cast<void>(deliver(flight));
    }
    // Some providers call a send complete when it is in the socket, and then the socket dies.
    const bool claims = flight.kind == Kind::Send && chance(0.3);
    complete(flight, claims ? fabric::EventKind::Completed : fabric::EventKind::Failed);
  }

  enum class Outcome : std::uint8_t {
    Delivered,
    Later,    // the target has no receive buffer for it now
    Refused,  // the key is of a region that was dropped, or the sender is unknown
  };

  Outcome deliver(const Flight& flight) {
    Node& target = nodes_[flight.to];
    std::byte* local = static_cast<std::byte*>(flight.local.address);
    const std::byte* source = flight.injected.empty() ? local : flight.injected.data();
    if (flight.kind == Kind::Send && target.is_closed) {
      return Outcome::Delivered;
    }
    if (faults_.needs_senders && std::ranges::count(target.added, flight.from) == 0) {
      return Outcome::Refused;
    }
    if (flight.kind == Kind::Send) {
      if (target.receives.empty()) {
        return Outcome::Later;
      }
      const Receive receive = target.receives.front();
      target.receives.pop_front();
      std::memcpy(receive.buffer.address, source, flight.local.bytes);
      target.events.push_back({.kind = fabric::EventKind::Received,
                               .context = receive.context,
                               .bytes = flight.local.bytes});
      return Outcome::Delivered;
    }
    const std::span<std::byte> region = target.regions.at(flight.key - 1);
    if (region.empty()) {
      return Outcome::Refused;
    }
    WEFT_CHECK(flight.remote_address + flight.local.bytes <= region.size(),
               "a write beyond the region");
    std::byte* remote = region.data() + flight.remote_address;
    if (flight.kind == Kind::Read) {
      std::memcpy(local, remote, flight.local.bytes);
      return Outcome::Delivered;
    }
    if (flight.immediate && faults_.immediates_use_receives && target.receives.empty()) {
      return Outcome::Later;
    }
    std::memcpy(remote, source, flight.local.bytes);
    if (flight.immediate) {
      announce(target, *flight.immediate);
    }
    return Outcome::Delivered;
  }

  void announce(Node& target, std::uint32_t immediate) {
    fabric::PostContext* context = nullptr;
    if (faults_.immediates_use_receives) {
      context = target.receives.front().context;
      target.receives.pop_front();
    }
    if (faults_.immediates_max != 0 && target.immediates >= faults_.immediates_max) {
      ++overruns_;
      return;
    }
    immediates_high_ = std::max(immediates_high_, ++target.immediates);
    target.events.push_back(
        {.kind = fabric::EventKind::RemoteWrite, .context = context, .immediate = immediate});
  }

  // Lets some operations arrive, chosen by chance among all that are on their way.
  void step() {
    for (int i = 0; i < 8 && !flights_.empty(); ++i) {
      const std::size_t index =
          std::uniform_int_distribution<std::size_t>(0, flights_.size() - 1)(random_);
      if (is_held(flights_[index]) || chance(faults_.delay)) {
        continue;
      }
      const Outcome outcome = deliver(flights_[index]);
      if (outcome == Outcome::Later) {
        continue;
      }
      complete(flights_[index], outcome == Outcome::Delivered ? fabric::EventKind::Completed
                                                              : fabric::EventKind::Failed);
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

  std::mutex mutex_;
  std::mt19937_64 random_;
  NetworkFaults faults_;
  std::deque<Node> nodes_;
  std::vector<Flight> flights_;
  std::size_t held_rail_ = 0;
  std::uint64_t held_key_ = 0;  // 0: no write is held
  std::size_t held_read_bytes_ = 0;
  std::span<std::byte> forbidden_;
  std::size_t overruns_ = 0;
  std::size_t immediates_high_ = 0;
};

class SimulatedRail final : public fabric::Rail {
 public:
  SimulatedRail(SimulatedNetwork& network,
                std::size_t index,
                std::string nic,
                bool takes_device_memory,
                std::size_t device_bytes_max)
      : network_(network),
        index_(index),
        nic_(std::move(nic)),
        takes_device_memory_(takes_device_memory),
        device_bytes_max_(device_bytes_max),
        address_(sizeof(index)) {
    std::memcpy(address_.data(), &index_, sizeof(index_));
    limits_ = {.inject_bytes = 32,
               .inject_write_bytes = network.faults_.inject_write_bytes,
               .message_bytes_max = network.faults_.message_bytes_max,
               .rma_bytes_max = network.faults_.rma_bytes_max,
               .transmit_depth = network.faults_.depth,
               .receive_depth = 64,
               .has_immediate = network.faults_.has_immediate};
    if (network.faults_.immediates_max != 0) {
      limits_.immediates_max = network.faults_.immediates_max;
    }
  }

  [[nodiscard]] const fabric::RailLimits& limits() const override { return limits_; }

  void restrict_to(const fabric::RailLimits& limits) noexcept override { limits_ = limits; }

  [[nodiscard]] const std::string& nic() const override { return nic_; }

  [[nodiscard]] const std::string& address_text() const override { return nic_; }

  [[nodiscard]] const std::string& provider() const override { return provider_; }

  [[nodiscard]] std::span<const std::byte> address() const override { return address_; }

  [[nodiscard]] bool adds_peers_early() const override { return network_.faults_.needs_senders; }

  fabric::PeerHandle add_peer(std::span<const std::byte> address) override {
    std::size_t index = 0;
    std::memcpy(&index, address.data(), sizeof(index));
    const std::lock_guard lock(network_.mutex_);
    network_.nodes_[index_].added.push_back(index);
    return fabric::PeerHandle(index);
  }

  fabric::RegionKey add_region(std::span<std::byte> memory) override {
    const std::lock_guard lock(network_.mutex_);
    auto& regions = network_.nodes_[index_].regions;
    regions.push_back(memory);
    return {.key = RemoteKey(regions.size()), .base = 0};
  }

  fabric::DeviceRegion add_device_region(const fabric::DeviceMemory& memory) override {
    if (!takes_device_memory_) {
      return {.way = fabric::DeviceWay::None, .key = {}, .why = "this rail does not take it"};
    }
    if (memory.memory.size() > device_bytes_max_) {
      return {.way = fabric::DeviceWay::None, .key = {}, .why = "this rail has no room for it"};
    }
    return {.way = fabric::DeviceWay::Interface,
            .key = add_region(memory.memory),
            .why = "this rail takes anything"};
  }

  void drop_region(std::span<std::byte> memory) noexcept override {
    const std::lock_guard lock(network_.mutex_);
    for (std::span<std::byte>& region : network_.nodes_[index_].regions) {
      region = region.data() == memory.data() ? std::span<std::byte>{} : region;
    }
  }

  void keep_registered(std::span<std::byte> /*memory*/) noexcept override {}

  fabric::PostResult post_write(const fabric::LocalMemory& source,
                                const fabric::RemoteMemory& dest,
                                std::optional<std::uint32_t> immediate,
                                fabric::PostContext* context) noexcept override {
    return post(SimulatedNetwork::Kind::Write, source, dest, immediate, context);
  }

  fabric::PostResult post_read(const fabric::LocalMemory& dest,
                               const fabric::RemoteMemory& source,
                               fabric::PostContext* context) noexcept override {
    return post(SimulatedNetwork::Kind::Read, dest, source, std::nullopt, context);
  }

  fabric::PostResult post_send(const fabric::LocalMemory& message,
                               fabric::PeerHandle peer,
                               fabric::PostContext* context) noexcept override {
    return post(SimulatedNetwork::Kind::Send, message, {.peer = peer}, std::nullopt, context);
  }

  fabric::PostResult post_receive(const fabric::LocalMemory& buffer,
                                  fabric::PostContext* context) noexcept override {
    const std::lock_guard lock(network_.mutex_);
    if (network_.chance(network_.faults_.refuse_receives)) {
      return fabric::PostResult::Full;
    }
    network_.nodes_[index_].receives.push_back({buffer, context});
    return fabric::PostResult::Posted;
  }

  std::size_t poll(std::span<fabric::Event> events) noexcept override {
    const std::lock_guard lock(network_.mutex_);
    network_.step();
    auto& waiting = network_.nodes_[index_].events;
    std::size_t count = 0;
    while (count < events.size() && !waiting.empty()) {
      network_.nodes_[index_].immediates -=
          waiting.front().kind == fabric::EventKind::RemoteWrite ? 1 : 0;
      events[count++] = waiting.front();
      waiting.pop_front();
    }
    return count;
  }

  [[nodiscard]] int last_error() const noexcept override { return 12; }  // ENOMEM

  [[nodiscard]] const char* last_action() const noexcept override {
    return fabric::kRegisterAction;
  }

  [[nodiscard]] int wait_descriptor() const noexcept override { return -1; }

  [[nodiscard]] bool may_sleep() noexcept override { return true; }

  [[nodiscard]] fabric::LinkHealth examine(std::span<const std::byte> /*peer*/,
                                           std::uint32_t /*silent_ms*/) noexcept override {
    const std::lock_guard lock(network_.mutex_);
    return network_.nodes_[index_].is_unplugged ? fabric::LinkHealth::NicDown
                                                : fabric::LinkHealth::Unknown;
  }

  bool cut(std::span<const std::byte> /*peer*/) noexcept override { return false; }

 private:
  fabric::PostResult post(SimulatedNetwork::Kind kind,
                          const fabric::LocalMemory& local,
                          const fabric::RemoteMemory& remote,
                          std::optional<std::uint32_t> immediate,
                          fabric::PostContext* context) noexcept {
    SimulatedNetwork::Flight flight{kind,           index_,           remote.peer.value, local,  {},
                                    remote.address, remote.key.value, immediate,         context};
    const std::size_t inject_bytes =
        kind == SimulatedNetwork::Kind::Write ? limits_.inject_write_bytes : limits_.inject_bytes;
    if (kind != SimulatedNetwork::Kind::Read && !local.on_device && local.bytes <= inject_bytes) {
      const auto* source = static_cast<const std::byte*>(local.address);
      flight.injected.assign(source, source + local.bytes);
    }
    return network_.post(std::move(flight));
  }

  SimulatedNetwork& network_;
  std::size_t index_;
  std::string nic_;
  bool takes_device_memory_;
  std::size_t device_bytes_max_;
  std::string provider_ = "simulated";
  fabric::RailLimits limits_;
  std::vector<std::byte> address_;
};

inline std::unique_ptr<fabric::Rail> SimulatedNetwork::make_rail(const std::string& nic,
                                                                 bool takes_device_memory,
                                                                 std::size_t device_bytes_max) {
  const std::lock_guard lock(mutex_);
  nodes_.emplace_back();
  return std::make_unique<SimulatedRail>(*this, nodes_.size() - 1, nic, takes_device_memory,
                                         device_bytes_max);
}

}  // namespace weft::test
