// What one dispatch knows on each side: where this PE's tokens went, and what came from the others.
// Combine needs nothing else, so a Routing outlives the memory of its dispatch. It is what
// weft_moe_plan_t points to.
//
// Threads: one at a time.
#pragma once

#include <weft/moe/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "moe/src/plan/groups.hpp"

namespace weft::moe::engine {

// This PE's tokens at the ranks of one group (groups.hpp).
struct Sent {
  std::vector<std::uint64_t> bits;   // by token, as slot_of takes them
  std::vector<std::int32_t> tokens;  // by slot
  std::size_t exact_rows = 0;        // that come back when each expert's row travels
  std::size_t reply_reduced = 0;  // where its partial sums begin in this PE's combine pool, in rows
  std::size_t reply_exact = 0;
};

// The rows of one source rank here.
struct Arrived {
  std::size_t rows = 0;              // for experts of this rank
  std::vector<std::int32_t> row;     // [rows]: which of the message's, whose others are for mates
  std::vector<std::int32_t> tokens;  // [rows]: their numbers at the source
  std::vector<std::int32_t> ids;     // [rows][topk], as the source gave them
  std::vector<float> weights;        // [rows][topk]
  std::vector<std::int64_t>
      at;  // rank layouts: [rows], else [rows][topk]: the row in x; -1 for lanes of others
  std::uint64_t reply_reduced = 0;
  std::uint64_t reply_exact = 0;
  // Of a message that all ranks of this node share: [its rows][topk], the index in the node of the
  // expert's rank; -1 for lanes of others, and for those whose expert an earlier lane has.
  std::vector<std::int32_t> mates;
};

struct Routing {
  ExpertMap map{};
  std::int32_t topk = 0;
  bool has_weights = false;
  // As a source.
  std::size_t tokens = 0;
  std::vector<std::int32_t> ids;  // [tokens][topk]
  std::vector<float> weights;     // [tokens][topk], or empty
  std::vector<Sent> sent;         // by group
  // As an owner of experts.
  std::vector<Arrived> arrived;  // by rank

  [[nodiscard]] Route route(std::size_t token) const {
    return {ids.data() + token * static_cast<std::size_t>(topk), topk};
  }

  [[nodiscard]] Route route(const Arrived& from, std::size_t row) const {
    return {from.ids.data() + row * static_cast<std::size_t>(topk), topk};
  }
};

// Fills `sent` from the ids.
void find_slots(Routing& routing, const Groups& groups);

// The ranks and tokens that rows of x came from; -1 for rows that no token came for.
struct RowSources {
  std::span<std::int32_t> ranks;  // by row of x
  std::span<std::int32_t> tokens;
};

void find_sources(const Routing& routing, const RowSources& sources);

// Appends to Arrived::mates: which rank of this node has the expert of each lane.
void add_mates(const Route& route,
               const ExpertMap& map,
               const Groups& groups,
               std::vector<std::int32_t>& mates);

}  // namespace weft::moe::engine
