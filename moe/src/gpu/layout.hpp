// What the host and the kernels share: where everything lies in the memory of an exchange and of a
// plan, and the structures that both see. Three parts of one layout, in 660 lines, as places of one
// are counted from those of the other: Shape and PlanShape; what lies there for other nodes
// (Staging); what the host and kernels tell each other (State, Record, KernelArguments).
//
//   symmetric memory of a rank
//     for each generation   rows      [ranks][max_tokens] rows (weft/moe/row.hpp), by source and
//                                     slot; none if they are polled and do not stay
//                           arrived   [ranks][max_tokens] words: the call whose row is here
//                           counts    [ranks][1 + most local experts] parcels: header, rows for
//                                     each expert
//                           parcels   [ranks][parcel_slots] rows of few tokens, by parcel_of
//     for each parity       partial_sums_arrived
//                                     [max_tokens * topk] words: the call whose partial sum is here
//                           headers   [ranks] parcels, the combine headers: one from each rank in
//                                     each call
//                           weights   [ranks][max_tokens * topk / 2] parcels: weights that combine
//                                     was given
//     for each polled turn  polled    [ranks][max_tokens] rows, by source and slot, if what is sent
//                                     is polled
//                           put_back  [ranks] words of 4 bytes, for all turns: before which
//                                     dispatch that rank has put back what it polled
//     for each of partial_sum_turns
//                           partial_sums
//                                     [max_tokens * topk] rows of combine: at token * topk + lane
//     with outputs_in_place
//       for each generation outputs   [ranks * max_tokens] rows of combine, by the rows of x:
//                                     written by the experts, read by peers
//     between nodes, what Staging lays out
//
// A parcel is 16 bytes that are stored at once: 8 of data, and the number of the call. A word or
// parcel is here when its number is that of the call; numbers grow, so they are never cleared. What
// is polled is (gpu/kernels/polled.cuh).
//
// Pure arithmetic, for host and device.
#pragma once

#include <weft/moe.h>
#include <weft/moe/experts.hpp>
#include <weft/moe/row.hpp>

#include <cstddef>
#include <cstdint>

namespace weft::moe::gpu {

// What a row has behind its payload; a group of threads keeps it in shared memory.
inline constexpr std::uint32_t kTailMax = 2560;
inline constexpr std::size_t kParcel = 16;
inline constexpr std::uint32_t kParities = 2;
// A rank that sends so few tokens sends their rows as parcels, which need no word behind a fence.
// They take twice the bytes, and all that a rank has room for are kParcelRowsMax.
inline constexpr std::uint32_t kParcelTokensMax = 32;
inline constexpr std::uint32_t kParcelRowsMax = 256;
// Exchanges of so few rows poll what is sent instead of words (gpu/kernels/polled.cuh). Between
// nodes and with masks there are words.
inline constexpr std::uint32_t kPolledTokensMax = 256;
inline constexpr std::size_t kPolledRowsMax = 2048;  // of all ranks
// Polled buffers rotate (triple buffering). The next call clears those of a refused call, once all
// ranks have begun it; no rank stores there before the call after that.
inline constexpr std::uint32_t kPolledTurns = 3;
// Sentinel for an empty polled slot, four of these words: a NaN in every payload type, and no valid
// expert id.
inline constexpr std::uint32_t kEmptySlot = 0xFFA5C3F1;
// Blocks that count where the rows of many tokens go.
inline constexpr std::uint32_t kCountingParts = 32;

// Bytes of `words` words of 4 bytes, up to a multiple of 16.
WEFT_HOST_DEVICE inline std::size_t padded_words(std::size_t words) {
  return (words + 3) / 4 * 16;
}

// Bulk copies are slower where they begin between multiples of this, in shared memory most of all.
inline constexpr std::uint32_t kBulkAlignment = 128;

inline std::size_t align_for_bulk(std::size_t bytes) {
  return (bytes + kBulkAlignment - 1) / kBulkAlignment * kBulkAlignment;
}

// Where everything lies in a plan; as numbers, so that kernels need not work them out.
struct PlanShape {
  PlanShape() = default;

  PlanShape(std::uint32_t all_ranks, std::uint32_t most_tokens, std::uint32_t lanes_of_each)
      : ranks(all_ranks), max_tokens(most_tokens), topk(lanes_of_each) {
    const std::size_t lanes = std::size_t{max_tokens} * topk;
    const std::size_t arrivals = std::size_t{ranks} * max_tokens;
    weights = ids_at() + padded_words(lanes);
    rows_here = weights + padded_words(lanes);
    lane_here = rows_here + padded_words(ranks);
    place_here = lane_here + padded_words(arrivals);
    weights_here = place_here + padded_words(arrivals * topk);
    own_place = weights_here + arrivals * topk * sizeof(float);
    slots = own_place + padded_words(max_tokens);
    all = slots + padded_words(lanes);
  }

  WEFT_HOST_DEVICE std::size_t bytes() const { return all; }

  // int32 [tokens][topk], as the source gave them.
  WEFT_HOST_DEVICE static std::size_t ids_at() { return kHeader; }

  // float [tokens][topk].
  WEFT_HOST_DEVICE std::size_t weights_at() const { return weights; }

  // int32 [ranks]: rows of each source.
  WEFT_HOST_DEVICE std::size_t rows_here_at() const { return rows_here; }

  // int32 [ranks][max_tokens]: the source's token * topk + the first lane that comes here.
  WEFT_HOST_DEVICE std::size_t lane_here_at(std::uint32_t source, std::uint32_t slot) const {
    return lane_here + (std::size_t{source} * max_tokens + slot) * sizeof(std::int32_t);
  }

  // int32 [ranks][max_tokens][topk]: the row in x of each lane, -1 for those of other ranks; of a
  // row that came by node, for those of other ranks of this node place_of_mate. Rank layouts: the
  // first alone; with a row for each node all, -1 but for the first where the row did not come so.
  WEFT_HOST_DEVICE std::size_t place_here_at(std::uint32_t source, std::uint32_t slot) const {
    return place_here + (std::size_t{source} * max_tokens + slot) * topk * sizeof(std::int32_t);
  }

  // float [ranks][max_tokens][topk].
  WEFT_HOST_DEVICE std::size_t weights_here_at(std::uint32_t source, std::uint32_t slot) const {
    return weights_here + (std::size_t{source} * max_tokens + slot) * topk * sizeof(float);
  }

  // int32 [max_tokens]: rank layouts, the row in x of a token of this rank itself that came here.
  WEFT_HOST_DEVICE std::size_t own_place_at(std::uint32_t token) const {
    return own_place + std::size_t{token} * sizeof(std::int32_t);
  }

  // int32 [tokens][topk]: between nodes and with outputs_in_place, the slot of the row that was
  // sent for each lane.
  WEFT_HOST_DEVICE std::size_t slots_at() const { return slots; }

  std::uint32_t ranks = 0;
  std::uint32_t max_tokens = 0;
  std::uint32_t topk = 0;
  std::size_t weights = 0;
  std::size_t rows_here = 0;
  std::size_t lane_here = 0;
  std::size_t place_here = 0;
  std::size_t weights_here = 0;
  std::size_t own_place = 0;
  std::size_t slots = 0;
  std::size_t all = 0;

 private:
  static constexpr std::size_t kHeader = 64;
};

// weft::moe::RowLayout as numbers. Rows are longer here, to be aligned for bulk copies.
struct RowShape {
  RowShape() = default;

  explicit RowShape(const weft::moe::RowLayout& layout)
      : payload_bytes(layout.payload_bytes),
        scale_bytes(layout.scale_bytes),
        ids(layout.ids_at()),
        weights(layout.weights_at()),
        places(layout.places_at()),
        token(layout.token_at()),
        used((layout.token_at() + sizeof(std::int32_t) + 15) / 16 * 16),
        all(align_for_bulk(layout.bytes())) {}

  WEFT_HOST_DEVICE std::size_t scales_at() const { return payload_bytes; }

  WEFT_HOST_DEVICE std::size_t ids_at() const { return ids; }

  WEFT_HOST_DEVICE std::size_t weights_at() const { return weights; }

  WEFT_HOST_DEVICE std::size_t places_at() const { return places; }

  WEFT_HOST_DEVICE std::size_t token_at() const { return token; }

  // Without what follows the token. Few rows are sent so: as units of 16 bytes, none of which has
  // nothing but padding.
  WEFT_HOST_DEVICE std::size_t used_bytes() const { return used; }

  WEFT_HOST_DEVICE std::size_t bytes() const { return all; }

  std::size_t payload_bytes = 0;
  std::size_t scale_bytes = 0;
  std::size_t ids = 0;
  std::size_t weights = 0;
  std::size_t places = 0;
  std::size_t token = 0;
  std::size_t used = 0;
  std::size_t all = 0;
};

// The sizes of an exchange, the same on all ranks.
struct Shape {
  weft::moe::ExpertMap map{};
  RowShape row{};
  std::uint32_t max_tokens = 0;
  std::uint32_t topk = 0;
  std::uint32_t hidden = 0;
  std::uint32_t output_bytes = 0;  // of a row of combine
  // Dispatches whose rows stay in place at once. Rows that are read in place stay until the next
  // dispatch but one, and a peer may be one dispatch ahead: 3. Rows that the receive copies: 2.
  std::uint32_t generations = 2;
  bool stages = false;         // some ranks are on other nodes
  bool keeps_outputs = false;  // weft_moe_config.outputs_in_place
  bool polls = false;          // what is sent, instead of words (gpu/kernels/polled.cuh)
  // With a row for each node; else 0. Sources of other nodes for which one rank makes the partial
  // sums of its node, at most, and parts of each.
  std::uint32_t relayed = 0;
  std::uint32_t parts = 0;
  std::uint32_t part_bytes = 0;
  // And where rows stay where they arrive (WEFT_MOE_RANK_MAJOR): those for a node arrive apart, and
  // are copied from there.
  bool shares_apart = false;
  // Between nodes: sources for which this rank stages partial sums, and ranks or nodes that send it
  // some.
  std::uint32_t staged_places = 0;
  std::uint32_t far_places = 0;
  // Of the rest, by settle():
  PlanShape its_plan{};
  std::size_t arrived_begin = 0;
  std::size_t counts_begin = 0;
  std::size_t partial_sums_begin = 0;
  std::size_t partial_sums_arrived_begin = 0;
  std::size_t combine_headers_begin = 0;
  std::size_t weights_begin = 0;
  std::size_t rows_as_parcels_begin = 0;
  std::uint32_t partial_sum_turns = kParities;
  std::size_t polled_begin = 0;
  std::size_t put_back_begin = 0;
  std::size_t outputs_begin = 0;
  std::size_t all = 0;
  std::uint32_t parcel_slots = 0;    // rows that a source may send as parcels
  std::uint32_t parcels_of_row = 0;  // with those of parcel_of that have no data
  // Index / ranks and index / (ranks - 1): the upper half of the index times this, or the index
  // itself if this is 0.
  std::uint64_t by_ranks = 0;
  std::uint64_t by_other_ranks = 0;

  // Once all of the above are set, what follows from them.
  void settle() {
    its_plan = {ranks(), max_tokens, topk};
    const std::uint32_t of_each = kParcelRowsMax / ranks();
    const std::uint32_t most = of_each < kParcelTokensMax ? of_each : kParcelTokensMax;
    by_ranks = factor_for(ranks());
    by_other_ranks = factor_for(ranks() - 1);
    parcel_slots = stages || polls ? 0 : max_tokens < most ? max_tokens : most;
    parcels_of_row = static_cast<std::uint32_t>((row.bytes() + 511) / 512 * 64);
    const bool has_rows = !polls || generations == 3;
    arrived_begin = has_rows ? generations * arrivals() * row.bytes() : 0;
    counts_begin = align_for_bulk(arrived_begin + generations * arrivals() * sizeof(std::uint64_t));
    partial_sums_begin =
        align_for_bulk(counts_begin + generations * ranks() * parcels_of_counts() * kParcel);
    partial_sum_turns = polls ? kPolledTurns : kParities;
    partial_sums_arrived_begin =
        align_for_bulk(partial_sums_begin + partial_sum_turns * lanes() * output_bytes);
    combine_headers_begin =
        align_for_bulk(partial_sums_arrived_begin + kParities * lanes() * sizeof(std::uint64_t));
    weights_begin = align_for_bulk(combine_headers_begin + kParities * ranks() * kParcel);
    rows_as_parcels_begin =
        align_for_bulk(weights_begin + kParities * ranks() * parcels_of_weights() * kParcel);
    polled_begin =
        align_for_bulk(rows_as_parcels_begin + generations * ranks() * parcel_slots *
                                                   std::size_t{parcels_of_row} * kParcel);
    put_back_begin =
        align_for_bulk(polled_begin + (polls ? kPolledTurns * arrivals() * row.bytes() : 0));
    outputs_begin = align_for_bulk(put_back_begin + (polls ? ranks() * sizeof(std::uint32_t) : 0));
    all = align_for_bulk(outputs_begin +
                         (keeps_outputs ? generations * arrivals() * output_bytes : 0));
  }

  WEFT_HOST_DEVICE std::uint32_t ranks() const { return static_cast<std::uint32_t>(map.ranks); }

  // Which generation dispatch `call` uses. By constants, as the remainder of 64 bits by a variable
  // is a function of 100 instructions.
  WEFT_HOST_DEVICE std::size_t turn_of(std::uint64_t call) const {
    return generations == 2 ? call % 2 : call % 3;
  }

  WEFT_HOST_DEVICE std::size_t arrivals() const { return std::size_t{ranks()} * max_tokens; }

  WEFT_HOST_DEVICE std::size_t lanes() const { return std::size_t{max_tokens} * topk; }

  WEFT_HOST_DEVICE std::size_t parcels_of_counts() const {
    return 1 + static_cast<std::size_t>(map.count_of(0));
  }

  WEFT_HOST_DEVICE std::size_t parcels_of_weights() const { return (lanes() + 1) / 2; }

  // ---- Symmetric memory

  WEFT_HOST_DEVICE std::size_t row_at(std::uint64_t call,
                                      std::uint32_t source,
                                      std::uint32_t slot) const {
    return (turn_of(call) * arrivals() + std::size_t{source} * max_tokens + slot) * row.bytes();
  }

  WEFT_HOST_DEVICE std::size_t arrived_at(std::uint64_t call,
                                          std::uint32_t source,
                                          std::uint32_t slot) const {
    return arrived_begin + (turn_of(call) * arrivals() + std::size_t{source} * max_tokens + slot) *
                               sizeof(std::uint64_t);
  }

  WEFT_HOST_DEVICE std::size_t count_at(std::uint64_t call,
                                        std::uint32_t source,
                                        std::uint32_t index) const {
    return counts_begin +
           ((turn_of(call) * ranks() + source) * parcels_of_counts() + index) * kParcel;
  }

  WEFT_HOST_DEVICE std::size_t partial_sum_at(std::uint64_t call, std::size_t lane) const {
    return partial_sums_begin +
           ((partial_sum_turns == kParities ? call % kParities : call % kPolledTurns) * lanes() +
            lane) *
               output_bytes;
  }

  WEFT_HOST_DEVICE std::size_t partial_sum_arrived_at(std::uint64_t call, std::size_t lane) const {
    return partial_sums_arrived_begin +
           ((call % kParities) * lanes() + lane) * sizeof(std::uint64_t);
  }

  WEFT_HOST_DEVICE std::size_t combine_header_at(std::uint64_t call, std::uint32_t source) const {
    return combine_headers_begin + ((call % kParities) * ranks() + source) * kParcel;
  }

  WEFT_HOST_DEVICE std::size_t weight_at(std::uint64_t call,
                                         std::uint32_t source,
                                         std::size_t pair) const {
    return weights_begin +
           (((call % kParities) * ranks() + source) * parcels_of_weights() + pair) * kParcel;
  }

  // Whether a rank with so many tokens sends them as parcels, or polled by kernels for as few.
  WEFT_HOST_DEVICE bool has_few(std::int32_t tokens) const {
    return static_cast<std::uint32_t>(tokens) <= (polls ? kParcelTokensMax : parcel_slots);
  }

  WEFT_HOST_DEVICE std::size_t parcels_at(std::uint64_t call,
                                          std::uint32_t source,
                                          std::uint32_t slot) const {
    return rows_as_parcels_begin +
           ((turn_of(call) * ranks() + source) * parcel_slots + slot) * parcels_of_row * kParcel;
  }

  // Output `number` of those of all generations.
  WEFT_HOST_DEVICE std::size_t output_at(std::size_t number) const {
    return outputs_begin + number * output_bytes;
  }

  WEFT_HOST_DEVICE std::size_t bytes() const { return all; }

  WEFT_HOST_DEVICE const PlanShape& plan() const { return its_plan; }

  // ---- Workspace, behind slots and places

  // int32 [experts + ranks].
  WEFT_HOST_DEVICE std::int32_t* counts_at(std::int32_t* workspace) const {
    return workspace + 2 * lanes();
  }

  // [parts][experts + ranks], or without experts in rank layouts.
  WEFT_HOST_DEVICE std::uint64_t* counted_at(std::int32_t* workspace) const {
    return reinterpret_cast<std::uint64_t*>(workspace) + words_before_counted();
  }

  std::size_t workspace_bytes() const {
    return (words_before_counted() + kCountingParts * targets()) * sizeof(std::uint64_t);
  }

 private:
  WEFT_HOST_DEVICE std::size_t targets() const {
    return static_cast<std::size_t>(map.experts) + ranks();
  }

  // Of 8 bytes: slots, places and counts.
  WEFT_HOST_DEVICE std::size_t words_before_counted() const {
    return lanes() + (targets() + 1) / 2;
  }

  // For dividends below 2^32, and small divisors.
  static std::uint64_t factor_for(std::uint32_t divisor) {
    return divisor < 2 ? 0 : ~std::uint64_t{0} / divisor + 1;
  }
};

// Of what Shape lays out, where rows of a dispatch are polled (gpu/kernels/polled.cuh).
struct PolledPlaces {
  const Shape& shape;

  WEFT_HOST_DEVICE std::size_t row_at(std::uint64_t call,
                                      std::uint32_t source,
                                      std::uint32_t slot) const {
    return shape.polled_begin + (call % kPolledTurns * shape.arrivals() +
                                 std::size_t{source} * shape.max_tokens + slot) *
                                    shape.row.bytes();
  }

  WEFT_HOST_DEVICE std::size_t put_back_at(std::uint32_t source) const {
    return shape.put_back_begin + source * sizeof(std::uint32_t);
  }
};

// Which parcel of a row has the first or last 8 bytes of its 16 bytes number `unit`: those of 32
// units stand together, so that a warp stores and loads 512 bytes at once.
WEFT_HOST_DEVICE inline std::uint32_t parcel_of(std::uint32_t unit, std::uint32_t half) {
  return unit / 32 * 64 + half * 32 + unit % 32;
}

// In a plan, of a lane that another rank of this node has (PlanShape::place_here_at), and back.
WEFT_HOST_DEVICE inline std::int32_t place_of_mate(std::int32_t rank) {
  return -2 - rank;
}

WEFT_HOST_DEVICE inline std::int32_t mate_at(std::int32_t place) {
  return -2 - place;
}

// The first words of a plan.
struct PlanHeader {
  std::int32_t tokens;
  std::int32_t has_weights;
  std::int32_t most_rows;  // that a source sent here
};

// ---- For other nodes
//
// Where things for other nodes lie, behind what Shape lays out, in the same memory (layout.hpp):
//
//     what is about to be put (gpu/kernels/nodes.cuh)
//       for each generation rows      [ranks][max_tokens] rows, by target and slot
//                           counts    [ranks][1 + most local experts] parcels, by target
//       for each parity     weights   [max_tokens * topk / 2] parcels
//                           partial_sums
//                                     [staged_places][max_tokens] rows of combine, by source and
//                                     slot
//     and what of combine comes from there
//       for each parity     partial_sums
//                                     [far_places][max_tokens] rows, by the rank that they come
//                                     from, or its node, and slot
//                           partial_sums_arrived
//                                     [ranks] words: the call whose partial sums from that rank are
//                                     all here
//     with a row for each node, what ranks of one node add up (gpu/kernels/partial_sums.cuh)
//       for each parity     parts     [relayed][max_tokens][parts] sums, not rounded, by source and
//                                     slot
//                           put_parts [relayed][max_tokens][parts] words: the call whose part is
//                                     here
//       for each generation shared    [ranks][max_tokens] rows of dispatch for a node, by source
//                                     and slot, if they arrive apart
//
// Pure arithmetic, for host and device.

struct Staging {
  const Shape& shape;

  WEFT_HOST_DEVICE std::size_t row_at(std::uint64_t call,
                                      std::uint32_t rank,
                                      std::uint32_t slot) const {
    return shape.bytes() + shape.row_at(call, rank, slot);
  }

  WEFT_HOST_DEVICE std::size_t counts_at(std::uint64_t call, std::uint32_t rank) const {
    return counts_begin() + (shape.turn_of(call) * shape.ranks() + rank) * counts_bytes();
  }

  WEFT_HOST_DEVICE std::size_t weight_at(std::uint64_t call, std::size_t pair) const {
    return weights_begin() + ((call % kParities) * shape.parcels_of_weights() + pair) * kParcel;
  }

  // The first of those for the source that has this place (KernelArguments::place_here).
  WEFT_HOST_DEVICE std::size_t partial_sum_at(std::uint64_t call, std::uint32_t place) const {
    return partial_sums_begin() +
           bytes_of_partial_sums((call % kParities) * shape.staged_places + place);
  }

  // The first of those of the rank or node that has this place (KernelArguments::place_there).
  WEFT_HOST_DEVICE std::size_t far_partial_sum_at(std::uint64_t call, std::uint32_t place) const {
    return partial_sums_begin() +
           bytes_of_partial_sums(kParities * shape.staged_places +
                                 (call % kParities) * shape.far_places + place);
  }

  WEFT_HOST_DEVICE std::size_t far_partial_sums_arrived_at(std::uint64_t call,
                                                           std::uint32_t rank) const {
    return partial_sums_arrived_begin() +
           ((call % kParities) * shape.ranks() + rank) * sizeof(std::uint64_t);
  }

  // Parts of the partial sum of a row that came by node.
  WEFT_HOST_DEVICE std::size_t part_at(std::uint64_t call,
                                       std::uint32_t place,
                                       std::uint32_t slot,
                                       std::uint32_t part) const {
    return parts_begin() + part_number(call, place, slot, part) * shape.part_bytes;
  }

  WEFT_HOST_DEVICE std::size_t put_part_at(std::uint64_t call,
                                           std::uint32_t place,
                                           std::uint32_t slot,
                                           std::uint32_t part) const {
    return parts_begin() + all_parts() * shape.part_bytes +
           part_number(call, place, slot, part) * sizeof(std::uint64_t);
  }

  // The row of a source for this node, in the memory of the relay.
  WEFT_HOST_DEVICE std::size_t shared_row_at(std::uint64_t call,
                                             std::uint32_t source,
                                             std::uint32_t slot) const {
    return (shape.shares_apart ? shared_begin() : 0) + shape.row_at(call, source, slot);
  }

  WEFT_HOST_DEVICE std::size_t end() const {
    const std::size_t rows = shape.shares_apart ? shape.generations * shape.arrivals() : 0;
    return shared_begin() + rows * shape.row.bytes();
  }

 private:
  static constexpr std::size_t kUnitBytes = 16;

  // At a multiple of 16.
  WEFT_HOST_DEVICE std::size_t parts_begin() const {
    return partial_sums_arrived_begin() + kParities * shape.ranks() * sizeof(std::uint64_t);
  }

  // At a multiple of 16, too.
  WEFT_HOST_DEVICE std::size_t shared_begin() const {
    return parts_begin() +
           (all_parts() * (shape.part_bytes + sizeof(std::uint64_t)) + kUnitBytes - 1) /
               kUnitBytes * kUnitBytes;
  }

  WEFT_HOST_DEVICE std::size_t all_parts() const {
    return kParities * shape.relayed * std::size_t{shape.max_tokens} * shape.parts;
  }

  WEFT_HOST_DEVICE std::size_t part_number(std::uint64_t call,
                                           std::uint32_t place,
                                           std::uint32_t slot,
                                           std::uint32_t part) const {
    return (((call % kParities) * shape.relayed + place) * std::size_t{shape.max_tokens} + slot) *
               shape.parts +
           part;
  }

  WEFT_HOST_DEVICE std::size_t counts_bytes() const { return shape.parcels_of_counts() * kParcel; }

  WEFT_HOST_DEVICE std::size_t counts_begin() const {
    return shape.bytes() + shape.generations * shape.arrivals() * shape.row.bytes();
  }

  WEFT_HOST_DEVICE std::size_t weights_begin() const {
    return counts_begin() + shape.generations * shape.ranks() * counts_bytes();
  }

  WEFT_HOST_DEVICE std::size_t partial_sums_begin() const {
    return weights_begin() + kParities * shape.parcels_of_weights() * kParcel;
  }

  // Behind those of so many places.
  WEFT_HOST_DEVICE std::size_t bytes_of_partial_sums(std::size_t places) const {
    return places * shape.max_tokens * shape.output_bytes;
  }

  WEFT_HOST_DEVICE std::size_t partial_sums_arrived_begin() const {
    return partial_sums_begin() +
           bytes_of_partial_sums(std::size_t{kParities} * (shape.staged_places + shape.far_places));
  }
};

// Of the symmetric memory of an exchange.
inline std::size_t memory_bytes(const Shape& shape) {
  return shape.stages ? Staging{shape}.end() : shape.bytes();
}

// ---- What kernels and the host tell each other
//
// What the host and the kernels share beside the places of layout.hpp: what an exchange keeps in
// GPU memory, what kernels tell the host, and what every kernel of an exchange gets.
//
// Threads: the host writes State while no kernel runs; kernels write Record, with its marks last
// (moe/src/gpu/gpu_exchange.cpp).

// This PE's own, in GPU memory.
struct State {
  std::uint64_t dispatches;  // that have begun
  std::uint64_t combines;
  std::uint64_t missing;  // bit i: rank i did not come in time, and is not waited for any more
  std::uint64_t late;     // bit i: rank i has not come in time to the running call (WEFT_MOE_MASK)
  // The last dispatch and combine if it was refused, and what is polled may lie there yet; else 0.
  std::uint64_t spoilt[2];
  std::uint32_t entered;  // blocks that the running kernel has begun
  std::uint32_t parts;    // that were drawn by all kernels that count
  // What the kernels of a call have drawn of what they send, by the step and the parity of the
  // call. 0 before it begins.
  std::uint32_t drawn[2 * kParities];
  std::uint64_t
      verdicts[kRanksMax];  // call * 2 + 1: the rank has come; call * 2: it has not (WEFT_MOE_MASK)
  std::uint32_t
      staged[kRanksMax];  // rows for a rank of another node, as gpu/kernels/nodes.cuh counts them
  std::uint32_t staged_rows[kRanksMax];          // how many there will be
  std::uint32_t staged_partial_sums[kRanksMax];  // counted the same way
  std::int32_t pes[kRanksMax];                   // by rank
};

// What went wrong first, or missed most; in host memory that the GPU writes.
struct Record {
  std::uint64_t missing;       // as State::missing, and when it changed:
  std::uint64_t missing_call;  // its number
  std::uint32_t missing_step;  // a weft_moe_step
  // How many blocks the kernel has that missed it, and how many of them had begun; 0: all.
  std::uint32_t missing_blocks;
  std::uint32_t missing_begun;
  std::uint32_t refused_step;  // a rank refused, or asked for another precision: its step, else 0
  std::uint64_t refused_call;
  // That rank, and in the upper half kRefused or its mode: in one word, as several threads may find
  // one each.
  std::uint64_t refused;
  std::uint32_t bad_id_seen;  // an id that is no expert's
  std::int32_t bad_id_at;     // token * topk + lane
  std::int64_t bad_id;
};

inline constexpr std::uint32_t kRefused = 0xFFFF;

// What every kernel of an exchange gets.
struct KernelArguments {
  Shape shape;
  std::byte* memory[kRanksMax] = {};  // by rank: its symmetric memory as mapped here, or null
  std::uint64_t remote = 0;           // ranks whose memory is not mapped, as bits
  // With a row for each node: the rank that takes what this one sends to the node of rank i, the
  // first rank there, and where the partial sums of that node lie at a source; the rank of this
  // node in whose memory the rows of rank i arrive, and where parts of their partial sums are added
  // up. Without relays all are the identity; `relay_here` is this rank.
  bool by_node = false;
  std::uint8_t relay_there[kRanksMax] = {};
  std::uint8_t first_there[kRanksMax] = {};
  std::uint8_t place_there[kRanksMax] = {};
  std::uint8_t relay_here[kRanksMax] = {};
  std::uint8_t place_here[kRanksMax] = {};
  State* state = nullptr;
  Record* record = nullptr;
  // Where the send of many tokens finds slots and places, int32 [2][max_tokens][topk], and how many
  // rows go to each expert and to each rank, [experts + ranks]. Also what the parts of the kernel
  // that counts them tell each other.
  std::int32_t* workspace = nullptr;
  std::uint64_t timeout_ns = 0;
  std::int32_t me = 0;
  std::int32_t alignment = 1;
  weft_moe_type payload{};
  weft_moe_scales scales{};
  weft_moe_type output{};
  weft_moe_layout layout{};
  bool masks = false;
  // With WEFT_MOE_ERROR in a graph: replays are followed by no call that would raise the error
  // before their results are used. So a kernel ends where a rank is missing, and so does each
  // later one that receives.
  bool ends = false;
  // weft_moe_config.scales_by_column: the rows of an expert, which have a word of their scales side
  // by side. Else 0.
  std::uint32_t column = 0;
};

}  // namespace weft::moe::gpu
