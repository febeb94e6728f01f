// The transport to other nodes: libfabric over all NICs of this PE. Owns the rails, the state of
// the peers, and the one lock that guards both. Links, RailSelector, Outbox, Sender, Receiver and
// Recovery do the work.
//
// Threads: any. Callers post under the lock from their own thread. Waiting callers make progress;
// the progress thread does so when no caller has. docs/LIFE_OF_A_PUT.md explains the path of an
// operation.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "src/base/counters.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/rails/contacts.hpp"
#include "src/transport/rails/links.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/own_regions.hpp"
#include "src/transport/rails/receiver.hpp"
#include "src/transport/rails/recovery.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/state.hpp"
#include "src/transport/transport.hpp"

namespace weft::transport::rails {

// How a rail registered the device region, for logs and reports.
struct DeviceRail {
  std::string nic;
  fabric::DeviceWay way = fabric::DeviceWay::None;
  std::string why;
};

class RailsTransport final : public Transport {
 public:
  using Rails = std::vector<std::unique_ptr<fabric::Rail>>;

  // `regions`: the memory that peers may access, the same list on every PE. Throws Error if a rail
  // cannot be used.
  RailsTransport(RailsOptions options,
                 Pe me,
                 Rails rails,
                 std::vector<std::span<std::byte>> regions,
                 std::uint64_t probe_offset);
  RailsTransport(const RailsTransport&) = delete;
  RailsTransport& operator=(const RailsTransport&) = delete;
  ~RailsTransport() override;

  // The addresses of the rails and the keys of the regions. Throws Error if memory cannot be
  // registered.
  [[nodiscard]] bootstrap::Blob describe() const override;
  // Throws Error if a peer has no rails, rails of another provider, or another number of regions.
  void connect(const std::vector<bootstrap::Blob>& connection_data,
               const std::vector<bool>& reached) override;
  [[nodiscard]] bootstrap::Blob add_region(RegionIndex index, std::span<std::byte> memory) override;
  void connect_region(RegionIndex index, const std::vector<bootstrap::Blob>& region_data) override;
  // Deregisters it from all rails. The peers' keys of it become invalid.
  void remove_region(RegionIndex index) override;
  // Opens the connections that the policy uses while every link is up.
  void warm_up(std::span<const Pe> peers, std::uint32_t timeout_s) override;

  // For regions that each PE numbers for itself.
  [[nodiscard]] OwnRegions& own_regions() { return own_regions_; }

  [[nodiscard]] RailDescriptions rails() const override;
  void count_in(const CounterBlocks& blocks) override;
  [[nodiscard]] std::vector<PeerRailCounters> peer_counters(Pe peer) const override;

  // Like add_region, for GPU memory. A rail may refuse it, which throws no Error. The region can be
  // used by puts, gets and the data of put_signals with `on_device`. This transport never updates a
  // word of it. Null: this PE offers no memory, but takes part in the collective call.
  [[nodiscard]] bootstrap::Blob add_device_region(RegionIndex index,
                                                  const fabric::DeviceMemory* memory);
  // By PE: whether all rails of this PE and all of that PE have registered it, so that it may be
  // used.
  [[nodiscard]] std::vector<bool> connect_device_region(RegionIndex index,
                                                        const std::vector<bootstrap::Blob>& blobs);
  // By rail: how it registered the last device region, and why. Empty before add_device_region.
  [[nodiscard]] std::vector<DeviceRail> device_rails() const;
  // Registers GPU memory of this PE alone, as the local side of operations with `on_device`: on all
  // rails, or, if one refuses, on none. The refusals are in the result.
  [[nodiscard]] std::vector<DeviceRail> register_device_memory(const fabric::DeviceMemory& memory);
  // Deregisters either. Call before the memory is freed, when no operation of any PE accesses it
  // any more.
  void drop_device_region(std::span<std::byte> memory) noexcept;
  Status post(const Operation& operation) noexcept override;

  [[nodiscard]] bool gathers() const noexcept override { return true; }

  void flush(Pe peer) noexcept override;
  bool progress() noexcept override;
  bool wait_for_event(std::uint32_t timeout_us) noexcept override;
  void begin_wait() noexcept override;
  void end_wait() noexcept override;
  void blame(Pe peer, std::string_view fault) noexcept override;
  void lose(Pe peer) noexcept override;
  [[nodiscard]] std::uint64_t moved(Pe peer) const noexcept override;
  [[nodiscard]] Status peer_status(Pe peer) const noexcept override;

  bool advance() noexcept override;
  [[nodiscard]] CallerActivity caller_activity() noexcept override;
  void stand_by() noexcept override;
  void wake() noexcept override;

  [[nodiscard]] std::size_t rail_count() const { return state_.rails.size(); }

  [[nodiscard]] const fabric::Rail& rail(RailIndex index) const {
    return *state_.rails[index.value].rail;
  }

  // What was received and not carried out.
  [[nodiscard]] Dropped dropped() const;

  // The peers with which this PE has exchanged anything: all others take little memory.
  [[nodiscard]] std::size_t met_peer_count() const;

  // The peers that the next tick looks at: those with something in flight or a fault.
  [[nodiscard]] std::size_t watched_peer_count() const;

 private:
  void fit_to_rails();
  void make_receives();
  static void post_receives(LocalRail& local);
  bool poll_rails();
  bool poll_rail(std::uint32_t local);
  void handle(const fabric::Event& event, std::uint32_t local);
  void take_back_receive(const fabric::PostContext* context, std::uint32_t local);
  bool post_work();
  bool post_queues();
  bool advance_locked();
  [[nodiscard]] bool may_sleep() noexcept;
  void next_duty() noexcept;

  mutable std::mutex mutex_;
  State state_;
  Links links_{state_};
  RailSelector selector_{state_, links_.rates()};
  Contacts contacts_{state_, links_, selector_};
  OwnRegions own_regions_{*this, mutex_, state_, contacts_};
  Outbox outbox_{state_, links_, selector_};
  Sender sender_{state_, links_, selector_, outbox_};
  Receiver receiver_{state_, contacts_, links_, outbox_, sender_};
  Recovery recovery_{state_, links_, outbox_, sender_, receiver_};
  std::vector<DeviceRail> device_rails_;
  std::uint64_t next_tick_ns_ = 0;
  std::uint64_t caller_polls_ = 0;
  std::uint64_t caller_posts_ = 0;
  std::uint64_t caller_passes_ = 0;        // of callers that post small operations
  std::uint32_t messages_since_pass_ = 0;  // guarded by mutex_
  std::uint64_t seen_caller_passes_ = 0;   // progress thread only
  std::uint64_t seen_caller_polls_ = 0;    // progress thread only
  std::uint64_t seen_caller_posts_ = 0;    // progress thread only
  std::uint32_t waiting_callers_ = 0;
  std::uint32_t duty_epoch_ =
      0;  // incremented when the progress thread should check for work again
  std::uint32_t ready_rails_ = 0;  // bits of rails whose descriptors were readable; 0: poll all
  std::vector<pollfd> wait_descriptors_;  // of rail i at i; wake_ is the last. Constant
  int wake_ = -1;
  bool has_unpollable_rail_ = false;
  bool has_warmed_up_ = false;
  bool has_taken_receives_ = false;  // and the warning was given
};

}  // namespace weft::transport::rails
