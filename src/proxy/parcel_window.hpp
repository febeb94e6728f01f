// The parcels of one stream that are being filled or are in flight, each in its slot of the staging
// memory: records are appended to the open parcel, and a parcel is posted when the bulk data that
// the GPU copies into it is complete.
//
// A parcel stays open while its copies are in progress, so that a burst of small commands shares a
// parcel. A slot is free again when the target has applied it and the transport no longer needs it.
//
// Threads: only the proxy's. Numbers of parcels: freed_ <= finished_ <= posted_ <= opened_, and
// opened_ - freed_ <= slots. Nothing allocates after the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/proxy/context.hpp"
#include "src/proxy/parcel.hpp"

namespace weft::proxy {

class ParcelWindow {
 public:
  ParcelWindow(EngineContext& context, Pe peer);
  ParcelWindow(const ParcelWindow&) = delete;
  ParcelWindow& operator=(const ParcelWindow&) = delete;
  // Operations that the transport still holds keep their counters; see is_quiet.
  ~ParcelWindow();

  // ---- Filling.

  // The next record of the open parcel, or of a new one; null if there is no free slot.
  [[nodiscard]] Record* append(RecordKind kind, std::size_t payload_bytes);

  // The payload of the record appended last.
  [[nodiscard]] std::byte* payload() const { return payload_; }

  // Copies from GPU memory into it.
  void copy_in(std::uint64_t source, std::size_t bytes);

  // How many of `bytes_left` the next record should take.
  [[nodiscard]] std::size_t chunk_bytes(std::uint64_t bytes_left) const;

  // The next record begins another parcel.
  void close() { is_open_ = false; }

  // The number of records appended so far.
  [[nodiscard]] std::uint64_t record_count() const { return record_count_; }

  // ---- Posting.

  struct Posted {
    bool has_moved = false;
    bool has_large = false;  // the transport holds the slot of a parcel until it is flushed
    bool has_failed = false;
  };

  // Posts the parcels whose copies are complete.
  Posted post();

  // ---- Parcels that the target has applied.

  [[nodiscard]] std::uint64_t opened() const { return opened_; }

  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  [[nodiscard]] std::uint64_t finished() const { return finished_; }

  // Our copy of a parcel that is not freed.
  [[nodiscard]] ParcelView parcel(std::uint64_t number) const;

  // The target has applied parcel finished().
  void finish() { ++finished_; }

  // Frees the slots of finished parcels that the transport no longer needs.
  void free_slots();

  [[nodiscard]] bool empty() const { return freed_ == opened_; }

  // The transport holds no operation of this object any more.
  [[nodiscard]] bool is_quiet() const;

  // Counts operations that nobody waits for.
  [[nodiscard]] transport::OperationCounter* loose_counter() { return &counters_[0]; }

 private:
  struct Slot {
    Copier::Ticket ticket = 0;  // of the last copy into it
    bool copied = false;        // by the transport, at post
  };

  [[nodiscard]] std::uint32_t slot_of(std::uint64_t parcel) const;
  [[nodiscard]] std::byte* memory_of(std::uint64_t parcel) const;
  [[nodiscard]] transport::OperationCounter& counter_of(std::uint64_t parcel) const;
  bool open();
  [[nodiscard]] Status post_parcel(std::uint64_t parcel);

  EngineContext& context_;
  Pe peer_;
  std::vector<Slot> slots_;
  // Counters of loose operations, then by slot. The transport writes them, so they may have to
  // outlive this.
  std::unique_ptr<std::vector<transport::OperationCounter>> counter_memory_;
  std::vector<transport::OperationCounter>& counters_;

  std::uint64_t freed_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t opened_ = 0;
  std::size_t open_bytes_ = 0;    // of parcel opened_ - 1
  std::byte* payload_ = nullptr;  // of the record appended last
  std::uint64_t record_count_ = 0;
  bool is_open_ = false;
};

}  // namespace weft::proxy
