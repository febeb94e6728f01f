// Where things for other nodes lie, behind what Shape lays out, in the same memory (shape.hpp):
//
//     what is about to be put (gpu/moe/remote.cuh)
//       for each generation rows      [ranks][max_tokens] rows, by target and slot
//                           counts    [ranks][1 + most local experts] parcels, by target
//       for each parity     weights   [max_tokens * topk / 2] parcels
//                           answers   [staged_places][max_tokens] rows of combine, by source and slot
//     and what of combine comes from there
//       for each parity     answers   [far_places][max_tokens] rows, by the rank that they come from, or its node, and slot
//                           answered  [ranks] words: the call whose answers from that rank are all here
//     with a row for each node, what ranks of one node add up (gpu/moe/node_answers.cuh)
//       for each parity     parts     [relayed][max_tokens][parts] sums, not rounded, by source and slot
//                           put_parts [relayed][max_tokens][parts] words: the call whose part is here
//       for each generation shared    [ranks][max_tokens] rows of dispatch for a node, by source and slot, if they arrive apart
//
// Pure arithmetic, for host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/gpu/moe/shape.hpp"

namespace weft::gpu::moe {

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

  // The first of those for the source that has this place (Exchange::place_here).
  WEFT_HOST_DEVICE std::size_t answer_at(std::uint64_t call, std::uint32_t place) const {
    return answers_begin() + answers_at((call % kParities) * shape.staged_places + place);
  }

  // The first of those of the rank or node that has this place (Exchange::place_there).
  WEFT_HOST_DEVICE std::size_t far_answer_at(std::uint64_t call, std::uint32_t place) const {
    return answers_begin() + answers_at(kParities * shape.staged_places +
                                        (call % kParities) * shape.far_places + place);
  }

  WEFT_HOST_DEVICE std::size_t far_answered_at(std::uint64_t call, std::uint32_t rank) const {
    return answered_begin() + ((call % kParities) * shape.ranks() + rank) * sizeof(std::uint64_t);
  }

  // Parts of the answer to a row that came by node.
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
    return answered_begin() + kParities * shape.ranks() * sizeof(std::uint64_t);
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

  WEFT_HOST_DEVICE std::size_t answers_begin() const {
    return weights_begin() + kParities * shape.parcels_of_weights() * kParcel;
  }

  // Behind those of so many places.
  WEFT_HOST_DEVICE std::size_t answers_at(std::size_t places) const {
    return places * shape.max_tokens * shape.output_bytes;
  }

  WEFT_HOST_DEVICE std::size_t answered_begin() const {
    return answers_begin() +
           answers_at(std::size_t{kParities} * (shape.staged_places + shape.far_places));
  }
};

// Of the symmetric memory of an exchange.
inline std::size_t memory_bytes(const Shape& shape) {
  return shape.stages ? Staging{shape}.end() : shape.bytes();
}

}  // namespace weft::gpu::moe
