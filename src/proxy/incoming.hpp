// The ordered stream of parcels from one peer: handles their records in order, as they arrive in
// our staging slots, and gives the peer credit for parcels whose effects are visible at this PE's
// GPU.
//
// The copier moves bulk data directly from the slot to the GPU. Small operations go to the inbox
// once the bulk copies before them are complete. A record that has to wait blocks only this stream.
//
// Threads: only the proxy's. Numbers of parcels: credited_ <= applied_ <= next_ <= applied_ +
// slots.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/proxy/context.hpp"
#include "src/proxy/outgoing.hpp"
#include "src/proxy/parcel.hpp"

namespace weft::proxy {

class Incoming {
 public:
  // `outgoing` is the stream to the same peer: answers are sent there.
  Incoming(EngineContext& context, Pe peer, Outgoing& outgoing);

  // Makes progress. True if anything progressed.
  bool pump();

  // False: pump does nothing until the word of the next parcel has the value that says it has
  // arrived.
  [[nodiscard]] bool has_work() const {
    return !outgoing_.is_lost() && (!is_idle() || has_arrived(next_));
  }

  struct Arrival {
    std::uint64_t* word = nullptr;
    std::uint64_t value = 0;
  };

  // Of the next parcel; of a lost peer none is expected, and the value is one that never comes.
  [[nodiscard]] Arrival next_arrival() const;

  // Everything that has arrived is applied, and the peer has been notified. Data from a lost peer
  // is ignored.
  [[nodiscard]] bool is_idle() const {
    return (credited_ == next_ && offset_ == 0) || outgoing_.is_lost();
  }

 private:
  // The progress that the GPU must have made for a parcel to count as applied.
  struct Goal {
    std::size_t bytes = 0;  // of the parcel
    Copier::Ticket ticket = 0;
    std::uint64_t inbox = 0;
    std::uint64_t direct_puts = 0;  // direct puts below this number
  };

  [[nodiscard]] ParcelView parcel(std::uint64_t number) const;
  [[nodiscard]] bool has_arrived(std::uint64_t number) const;

  bool handle_parcels();
  [[nodiscard]] bool begin_parcel();
  [[nodiscard]] std::string_view fault_of(const Record& record) const;
  [[nodiscard]] bool handle(const Record& record, const std::byte* payload);
  [[nodiscard]] bool handle_bulk(const Record& record, const std::byte* payload);
  [[nodiscard]] bool handle_small(const Record& record, const std::byte* payload);
  [[nodiscard]] bool handle_direct_put(const Record& record);
  [[nodiscard]] bool has_direct_puts(std::uint64_t below);
  [[nodiscard]] bool is_put_sane(const Record& record) const;
  [[nodiscard]] bool is_put_number_sane(std::uint64_t put_number) const;
  [[nodiscard]] bool is_update_sane(const Record& record) const;
  [[nodiscard]] bool is_sane(const Record& record) const;

  bool apply_parcels();
  [[nodiscard]] bool finish_answers(std::uint64_t number);
  bool post_credit();

  EngineContext& context_;
  Pe peer_;
  Outgoing& outgoing_;
  std::vector<Goal> goals_;        // by slot: what its parcel and all earlier ones require
  Goal now_;                       // what everything handled so far requires
  std::uint64_t fence_inbox_ = 0;  // bulk data waits until the inbox has reached this position
  std::uint64_t fence_direct_puts_ = 0;  // and until direct puts below this number have arrived
  std::uint64_t direct_puts_ = 0;  // direct puts below this have arrived and are visible to the GPU

  std::uint64_t next_ = 0;
  std::uint64_t applied_ = 0;
  std::uint64_t credited_ = 0;
  std::size_t offset_ = 0;         // in parcel next_; 0: not begun
  std::size_t parcel_bytes_ = 0;   // of parcel next_, once begun
  std::size_t answer_offset_ = 0;  // in parcel applied_; 0: not begun
};

}  // namespace weft::proxy
