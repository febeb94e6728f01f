// Where everything lies in the memory of an exchange on GPUs: nothing overlaps, everything is
// inside, rows are aligned.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "moe/src/gpu/layout.hpp"

namespace weft::moe::gpu {
namespace {

class Pieces {
 public:
  void add(std::size_t begin, std::size_t bytes, std::size_t alignment = 16) {
    EXPECT_EQ(begin % alignment, 0U);
    pieces_.emplace_back(begin, begin + bytes);
  }

  void expect_apart(std::size_t end) {
    std::ranges::sort(pieces_);
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
      ASSERT_LE(pieces_[i - 1].second, pieces_[i].first) << "piece " << i;
    }
    ASSERT_LE(pieces_.back().second, end);
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> pieces_;  // begin, end
};

Shape small_shape(std::uint32_t generations) {
  constexpr std::uint32_t kHidden = 48;
  Shape shape;
  shape.map = {7, 5};
  shape.row = RowShape({kHidden * 2, 4, 3, 3});
  shape.max_tokens = 6;
  shape.topk = 3;
  shape.hidden = kHidden;
  shape.output_bytes = kHidden * 2;
  shape.generations = generations;
  return shape;
}

void add_what_all_have(const Shape& shape, Pieces& pieces) {
  for (std::uint64_t call = 0; call < shape.generations; ++call) {
    for (std::uint32_t source = 0; source < shape.ranks(); ++source) {
      pieces.add(shape.count_at(call, source, 0), shape.parcels_of_counts() * kParcel);
      for (std::uint32_t slot = 0; slot < shape.max_tokens; ++slot) {
        if (!shape.polls || shape.generations == 3) {
          pieces.add(shape.row_at(call, source, slot), shape.row.bytes(), kBulkAlignment);
        }
        pieces.add(shape.arrived_at(call, source, slot), 8, 8);
      }
      for (std::uint32_t slot = 0; slot < shape.parcel_slots; ++slot) {
        pieces.add(shape.parcels_at(call, source, slot), shape.parcels_of_row * kParcel);
      }
    }
    if (shape.keeps_outputs) {
      pieces.add(shape.output_at(call * shape.arrivals()), shape.arrivals() * shape.output_bytes);
    }
  }
  for (std::uint64_t call = 0; call < shape.partial_sum_turns; ++call) {
    pieces.add(shape.partial_sum_at(call, 0), shape.lanes() * shape.output_bytes);
  }
  for (std::uint64_t call = 0; call < kParities; ++call) {
    pieces.add(shape.partial_sum_arrived_at(call, 0), shape.lanes() * 8, 8);
    for (std::uint32_t source = 0; source < shape.ranks(); ++source) {
      pieces.add(shape.combine_header_at(call, source), kParcel);
      pieces.add(shape.weight_at(call, source, 0), shape.parcels_of_weights() * kParcel);
    }
  }
  for (std::uint64_t call = 0; shape.polls && call < kPolledTurns; ++call) {
    pieces.add(PolledPlaces{shape}.row_at(call, 0, 0), shape.arrivals() * shape.row.bytes(),
               kBulkAlignment);
  }
  if (shape.polls) {
    pieces.add(PolledPlaces{shape}.put_back_at(0), shape.ranks() * 4);
  }
}

void add_what_is_for_other_nodes(const Shape& shape, Pieces& pieces) {
  const Staging staging{shape};
  for (std::uint64_t call = 0; call < shape.generations; ++call) {
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
      pieces.add(staging.counts_at(call, rank), shape.parcels_of_counts() * kParcel);
      pieces.add(staging.row_at(call, rank, 0), shape.max_tokens * shape.row.bytes());
      if (shape.shares_apart) {
        pieces.add(staging.shared_row_at(call, rank, 0), shape.max_tokens * shape.row.bytes());
      }
    }
  }
  for (std::uint64_t call = 0; call < kParities; ++call) {
    pieces.add(staging.weight_at(call, 0), shape.parcels_of_weights() * kParcel);
    for (std::uint32_t place = 0; place < shape.staged_places; ++place) {
      pieces.add(staging.partial_sum_at(call, place), shape.max_tokens * shape.output_bytes);
    }
    for (std::uint32_t place = 0; place < shape.far_places; ++place) {
      pieces.add(staging.far_partial_sum_at(call, place), shape.max_tokens * shape.output_bytes);
    }
    pieces.add(staging.far_partial_sums_arrived_at(call, 0), shape.ranks() * 8, 8);
    for (std::uint32_t place = 0; place < shape.relayed; ++place) {
      for (std::uint32_t slot = 0; slot < shape.max_tokens; ++slot) {
        for (std::uint32_t part = 0; part < shape.parts; ++part) {
          pieces.add(staging.part_at(call, place, slot, part), shape.part_bytes);
          pieces.add(staging.put_part_at(call, place, slot, part), 8, 8);
        }
      }
    }
  }
}

TEST(MoeGpuLayout, NothingOverlapsWithinANode) {
  for (const std::uint32_t generations : {2U, 3U}) {
    for (const bool polls : {false, true}) {
      Shape shape = small_shape(generations);
      shape.polls = polls;
      shape.keeps_outputs = generations == 3;
      shape.settle();
      Pieces pieces;
      add_what_all_have(shape, pieces);
      pieces.expect_apart(memory_bytes(shape));
    }
  }
}

TEST(MoeGpuLayout, NothingOverlapsBetweenNodes) {
  struct Kind {
    bool by_node, shares_apart;
  };

  for (const auto& [by_node, shares_apart] :
       {Kind{false, false}, Kind{true, false}, Kind{true, true}}) {
    Shape shape = small_shape(shares_apart ? 3 : 2);
    shape.shares_apart = shares_apart;
    shape.stages = true;
    shape.staged_places = by_node ? 3 : shape.ranks();
    shape.far_places = by_node ? 4 : shape.ranks();
    shape.relayed = by_node ? 3 : 0;
    shape.parts = by_node ? 2 : 0;
    shape.part_bytes = by_node ? shape.hidden * 4 : 0;
    shape.settle();
    Pieces pieces;
    add_what_all_have(shape, pieces);
    add_what_is_for_other_nodes(shape, pieces);
    pieces.expect_apart(memory_bytes(shape));
  }
}

}  // namespace
}  // namespace weft::moe::gpu
