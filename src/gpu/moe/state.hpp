// What the host and the kernels of gpu/moe share beside the places of shape.hpp: what an exchange keeps in GPU memory, what kernels tell the
// host, and what every kernel of an exchange gets.
//
// Threads: the host writes State while no kernel runs; kernels write Record, with its marks last (src/moe/gpu_exchange.cpp).
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>

#include "src/gpu/moe/shape.hpp"

namespace weft::gpu::moe {

// This PE's own, in GPU memory.
struct State {
  std::uint64_t dispatches;  // that have begun
  std::uint64_t combines;
  std::uint64_t missing;  // bit i: rank i did not come in time, and is not waited for any more
  std::uint64_t late;     // bit i: rank i has not come in time to the running call (WEFT_MOE_MASK)
  std::uint64_t spoilt
      [2];  // the last dispatch and combine if it was refused, and what is polled may lie there yet; else 0
  std::uint32_t entered;  // blocks that the running kernel has begun
  std::uint32_t parts;    // that were drawn by all kernels that count
  // What the kernels of a call have drawn of what they send, by the step and the parity of the call. 0 before it begins.
  std::uint32_t drawn[2 * kParities];
  std::uint64_t
      verdicts[kRanksMax];  // call * 2 + 1: the rank has come; call * 2: it has not (WEFT_MOE_MASK)
  std::uint32_t
      staged[kRanksMax];  // rows for a rank of another node, as gpu/moe/remote.cuh counts them
  std::uint32_t staged_rows[kRanksMax];  // how many there will be
  std::uint32_t answers[kRanksMax];      // rows that are answered, counted the same way
  std::int32_t pes[kRanksMax];           // by rank
};

// What went wrong first, or missed most; in host memory that the GPU writes.
struct Record {
  std::uint64_t missing;       // as State::missing, and when it changed:
  std::uint64_t missing_call;  // its number
  std::uint32_t missing_step;  // a weft_moe_step
  std::uint32_t refused_step;  // a rank refused, or asked for another precision: its step, else 0
  std::uint64_t refused_call;
  // That rank, and in the upper half kRefused or its mode: in one word, as several threads may find one each.
  std::uint64_t refused;
  std::uint32_t bad_id_seen;  // an id that is no expert's
  std::int32_t bad_id_at;     // token * topk + lane
  std::int64_t bad_id;
};

inline constexpr std::uint32_t kRefused = 0xFFFF;

// What every kernel of an exchange gets.
struct Exchange {
  Shape shape;
  std::byte* memory[kRanksMax] = {};  // by rank: its symmetric memory as mapped here, or null
  std::uint64_t remote = 0;           // ranks whose memory is not mapped, as bits
  // With a row for each node: the rank that takes what this one sends to the node of rank i, the first rank there, and where the answers
  // of that node lie at a source; the rank of this node in whose memory the rows of rank i arrive, and where their answers are added
  // up. Without: i itself three times, this rank, and i.
  bool by_node = false;
  std::uint8_t relay_there[kRanksMax] = {};
  std::uint8_t first_there[kRanksMax] = {};
  std::uint8_t place_there[kRanksMax] = {};
  std::uint8_t relay_here[kRanksMax] = {};
  std::uint8_t place_here[kRanksMax] = {};
  State* state = nullptr;
  Record* record = nullptr;
  // Where the send of many tokens finds slots and places, int32 [2][max_tokens][topk], and how many rows go to each expert
  // and to each rank, [experts + ranks]. Also what the parts of the kernel that counts them tell each other.
  std::int32_t* workspace = nullptr;
  std::uint64_t timeout_ns = 0;
  std::int32_t me = 0;
  std::int32_t alignment = 1;
  weft_moe_type payload{};
  weft_moe_scales scales{};
  weft_moe_type output{};
  weft_moe_layout layout{};
  bool masks = false;
  // weft_moe_config.scales_by_column: the rows of an expert, which have a word of their scales side by side. Else 0.
  std::uint32_t column = 0;
};

}  // namespace weft::gpu::moe
