// Where the rows of a dispatch end: at experts, or by rank in x. Senders use it, too, for rows of
// this rank itself, so it knows nothing of how rows are sent or received.
//
// Device code, by the threads of a group, behind begin_rows (receive_headers.cuh).
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/plan.hpp>
#include <weft/moe/row.hpp>

#include "moe/src/gpu/kernels/call.cuh"
#include "moe/src/gpu/kernels/copy_engine.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// The threads of a block that read headers: the last ones, from `kFirst` on.
template <std::uint32_t kFirst>
struct ReadersFrom {
  static constexpr std::uint32_t kCount = kThreads - kFirst;
  static constexpr std::uint32_t kWarps = kCount / kWarp;

  static __device__ bool have_this_thread() { return thread_of_block() >= kFirst; }

  static __device__ std::uint32_t thread() { return thread_of_block() - kFirst; }

  static __device__ std::uint32_t warp() { return thread() / kWarp; }

  static __device__ void sync() { asm volatile("bar.sync 15, %0;" ::"n"(kCount) : "memory"); }

  // A warp's number among those of all blocks, and how many there are. In the order of
  // Group::index_of_receiver.
  static __device__ std::uint32_t warp_of_grid(std::uint32_t headers) {
    return warp() * gridDim.x + Group::block_of_receiver(headers);
  }

  static __device__ std::uint32_t warps_of_grid() { return kWarps * gridDim.x; }
};

// All but the first warp, which may yet wait for what it has sent to be there, behind a fence,
// while they work out what comes. Where rows are polled, the last takers, as others may yet send:
// one for the few headers of rank layouts.
using MostReaders = ReadersFrom<kWarp>;

template <typename Path>
inline constexpr std::uint32_t kTakersThatRead = Path::kByRank ? 1 : kGroupsOfFew - 1;

template <typename Path>
using Readers = std::conditional_t<Path::kPolls,
                                   ReadersFrom<kThreads - kTakersThatRead<Path> * Taker::kSize>,
                                   MostReaders>;

struct ReceiveMemory {
  std::int32_t rows[kRanksMax];  // of each source
  bool as_parcels[kRanksMax];    // whether they come so
  bool some_as_parcels;
  bool some_as_words;
  std::int32_t begin[kRanksMax];  // WEFT_MOE_RANK_COMPACT: of each source's rows
  std::int32_t most_rows;
  std::uint32_t drawn;  // batches of rows that the block's warps took, where rows are many
  // [source][local expert]: rows, then the first of them in x; in rank layouts that place ranks,
  // rows for this one as of the first expert.
  std::int32_t experts[kExpertsMax + kRanksMax];
  alignas(16) std::int32_t
      of_warp[2][MostReaders::kWarps];        // sums of a scan; every other one uses the other half
  std::int32_t gaps[MostReaders::kCount][2];  // rows without a token: the first, and how many
  std::int32_t gap_count;
  // Of each group:
  bool has_come[kGroupsMax];
  std::int32_t copies[kGroupsMax];
  // Rows of x. Aligned, as the compiler reads four at once, which would else begin in `copies`.
  alignas(16) std::int32_t to[kGroupsMax][kTopkMax];
};

// Each warp's, where rows are many.
using DispatchPipeline = BulkPipelineMemory<2, 3840>;

// How rows go through pipelines, worked out once.
struct ByBulk {
  Pieces payload;  // of a row of the caller's
  Pieces row;      // of one that came: its payload, with its scales if these go so, too
  bool scales = false;

  ByBulk() = default;

  __device__ ByBulk(const KernelArguments& exchange, const Dispatch& call)
      : payload(static_cast<std::uint32_t>(exchange.shape.row.payload_bytes),
                DispatchPipeline::kSlotBytes) {
    const RowShape& shape = exchange.shape.row;
    const auto places = reinterpret_cast<std::uint64_t>(call.scales) |
                        reinterpret_cast<std::uint64_t>(call.row_scales);
    scales =
        shape.scale_bytes > 0 && exchange.column == 0 && (shape.scale_bytes | places) % kUnit == 0;
    row = scales ? Pieces(static_cast<std::uint32_t>(shape.payload_bytes + shape.scale_bytes),
                          DispatchPipeline::kSlotBytes)
                 : payload;
  }
};

template <typename ItsPath>
struct Receiving {
  using Path = ItsPath;

  const KernelArguments& exchange;
  const Dispatch& call;
  ReceiveMemory& shared;
  Call entered;
  DispatchPipeline* pipelines = nullptr;  // of the block's warps, where rows are many
  std::byte* tails = nullptr;  // of the block's groups, kTailMax bytes each, where rows are few
  ByBulk by_bulk{};            // where rows are many

  __device__ std::byte* tail() const { return tails + Path::Takers::number() * kTailMax; }

  __device__ BulkPipeline<DispatchPipeline> pipeline() const {
    return BulkPipeline<DispatchPipeline>(pipelines[Group::number()]);
  }

  __device__ std::uint64_t number() const { return entered.number; }

  // Rows stay where they arrive, but for those that arrive apart, and the reader sees all slots.
  __device__ bool shows_all() const { return Path::kByRank && is_in_place(exchange.layout); }

  // So the first warp need not be back from its fence before they do.
  __device__ bool readers_take_rows() const {
    return shows_all() && Path::kRows == Rows::BlockPerRow && !Path::kParcels && !Path::kPolls;
  }
};

template <typename Path>
__device__ std::int32_t& experts_of(const Receiving<Path>& receiving,
                                    std::uint32_t source,
                                    std::uint32_t expert) {
  return receiving.shared.experts[source * local_experts(receiving.exchange) + expert];
}

// ---- Routes
//
// What a row that came says of itself, and where that brings it: its places in x, and what the plan
// keeps of it.
//
// Device code: one warp, unless it says otherwise. A group's list of copies is read behind its
// barrier, and written again behind the next.

// A row as it lies here, and whose it is.
struct Row {
  std::byte* memory;
  std::uint32_t source;
  std::uint32_t slot;
};

// WEFT_MOE_RANK_MAJOR: where the reader sees row `index` of all slots.
template <typename Path>
__device__ std::byte* shown_at(const Receiving<Path>& receiving, std::int32_t index) {
  const KernelArguments& exchange = receiving.exchange;
  return mine(exchange) +
         exchange.shape.row_at(receiving.number(), 0, static_cast<std::uint32_t>(index));
}

// Where the payload and the scales of row `index` of x go.
template <typename Path>
__device__ std::byte* payload_of_row(const Receiving<Path>& receiving, std::int32_t index) {
  if (kBetweenNodes && receiving.shows_all()) {
    return shown_at(receiving, index);
  }
  return receiving.call.rows +
         static_cast<std::size_t>(index) * receiving.exchange.shape.row.payload_bytes;
}

template <typename Path>
__device__ std::byte* scales_of_row(const Receiving<Path>& receiving, std::int32_t index) {
  const RowShape& row = receiving.exchange.shape.row;
  if (kBetweenNodes && receiving.shows_all()) {
    return shown_at(receiving, index) + row.scales_at();
  }
  return receiving.call.row_scales + static_cast<std::size_t>(index) * row.scale_bytes;
}

inline __device__ std::uint32_t load_word(const std::byte* row, std::size_t offset) {
  return device::load_relaxed(reinterpret_cast<const std::uint32_t*>(row + offset));
}

// What a row says of itself; each thread of a warp has one of its lanes.
struct Routes {
  std::int32_t id = -1;
  float weight = 0;
  std::int32_t place = 0;  // among the rows of this source for this expert
  std::uint32_t token = 0;
};

// One warp: those of a row of which word(byte) has the 4 bytes from `byte` on.
template <typename Path, typename Word>
__device__ Routes read_routes(const Receiving<Path>& receiving, Word&& word) {
  const Shape& shape = receiving.exchange.shape;
  Routes routes;
  if (lane() < shape.topk) {
    routes.id = static_cast<std::int32_t>(word(shape.row.ids_at() + lane() * 4));
    routes.weight = __uint_as_float(word(shape.row.weights_at() + lane() * 4));
    if (!Path::kByRank || kBetweenNodes) {
      routes.place = static_cast<std::int32_t>(word(shape.row.places_at() + lane() * 4));
    }
  }
  routes.token = word(shape.row.token_at());
  return routes;
}

// One warp: those of a row that is here.
template <typename Path>
__device__ Routes routes_of(const Receiving<Path>& receiving, const Row& row) {
  return read_routes(receiving, [&](std::size_t byte) { return load_word(row.memory, byte); });
}

// One thread: under which of the source's lanes a combine returns the partial sum of the row: its
// first that has an expert here.
template <typename Path>
__device__ void note_lane(const Receiving<Path>& receiving,
                          const Row& row,
                          std::uint32_t token,
                          unsigned lanes_here) {
  const Shape& shape = receiving.exchange.shape;
  *at<std::int32_t>(receiving.call.plan, shape.plan().lane_here_at(row.source, row.slot)) =
      static_cast<std::int32_t>(token * shape.topk) + __ffs(static_cast<int>(lanes_here)) - 1;
}

// In the plan, of a lane that another rank has: those that share the partial sum must know of each
// other.
inline __device__ std::int32_t place_elsewhere(const KernelArguments& exchange,
                                               std::uint32_t source,
                                               std::int32_t id) {
  if (!shares_rows(exchange, source) || id < 0 || id >= exchange.shape.map.experts) {
    return -1;
  }
  const std::int32_t rank = exchange.shape.map.rank_of(id);
  return is_remote(exchange, static_cast<std::uint32_t>(rank)) ? -1 : place_of_mate(rank);
}

// One warp: where the lanes of the row go; fills the plan and the list of copies.
template <typename Path>
__device__ void route_to_experts(const Receiving<Path>& receiving,
                                 const Row& row,
                                 const Routes& routes) {
  const KernelArguments& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Path::Takers::number();
  const float weight = routes.weight;
  const std::int32_t local = routes.id - shape.map.first_of(exchange.me);
  const bool is_ours = static_cast<std::uint32_t>(local) < local_experts(exchange);
  const std::int32_t at_row =
      is_ours ? experts_of(receiving, row.source, static_cast<std::uint32_t>(local)) + routes.place
              : place_elsewhere(exchange, row.source, routes.id);
  const unsigned same = __match_any_sync(kAllLanes, at_row);
  const bool is_first = is_ours && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane());
  float sum = weight;
  const bool adds = __any_sync(kAllLanes, is_ours && __popc(same) > 1) != 0;
#pragma unroll 1
  for (std::uint32_t later = 1; adds && later < shape.topk; ++later) {
    const float other = __shfl_sync(kAllLanes, weight, static_cast<int>(later));
    sum = later > lane() && (same >> later & 1) != 0 ? weft::moe::add(sum, other) : sum;
  }
  const unsigned firsts = __ballot_sync(kAllLanes, is_first);
  if (is_first) {
    receiving.shared.to[group][__popc(firsts & ((1U << lane()) - 1))] = at_row;
    receiving.call.row_weights[at_row] = sum;
  }
  std::byte* plan = receiving.call.plan;
  if (lane() < shape.topk) {
    at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot))[lane()] = at_row;
    at<float>(plan, shape.plan().weights_here_at(row.source, row.slot))[lane()] = weight;
  }
  if (lane() == 0) {
    note_lane(receiving, row, routes.token, firsts);
    receiving.shared.copies[group] = __popc(firsts);
  }
}

// One warp, in rank layouts: the place of a row that came by node among those of its source for
// this rank, and what the plan keeps of it; -1: none of its lanes is for this rank. `local`: the
// lane's expert here, or -1.
template <typename Path>
__device__ std::int32_t place_shared_row(const Receiving<Path>& receiving,
                                         const Row& row,
                                         const Routes& routes,
                                         std::int32_t local) {
  const KernelArguments& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const unsigned ours = __ballot_sync(kAllLanes, local >= 0);
  const int first = ours == 0 ? 0 : __ffs(static_cast<int>(ours)) - 1;
  const std::int32_t place = __shfl_sync(kAllLanes, routes.place, first);
  if (lane() < shape.topk) {
    at<std::int32_t>(receiving.call.plan,
                     shape.plan().place_here_at(row.source, row.slot))[lane()] =
        local >= 0 ? receiving.shared.begin[row.source] + place
                   : place_elsewhere(exchange, row.source, routes.id);
  }
  if (ours == 0 && lane() == 0) {
    note_lane(receiving, row, routes.token, ours);
    receiving.shared.copies[Path::Takers::number()] = 0;
  }
  return ours == 0 ? -1 : place;
}

// One warp: the same for rank layouts, whose reader sees the ids and weights.
template <typename Path>
__device__ void route_to_rank(const Receiving<Path>& receiving,
                              const Row& row,
                              const Routes& routes) {
  const KernelArguments& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Path::Takers::number();
  const bool is_shown = receiving.shows_all();
  const bool is_in_place = is_shown && !arrives_apart(exchange, row.source);
  std::int32_t local = -1;
  if (lane() < shape.topk) {
    local = routes.id - shape.map.first_of(exchange.me);
    local = static_cast<std::uint32_t>(local) < local_experts(exchange) ? local : -1;
  }
  auto in_order = static_cast<std::int32_t>(row.slot);  // among those of its source
  if (shares_rows(exchange, row.source)) {
    in_order = place_shared_row(receiving, row, routes, local);
    if (in_order < 0) {
      return;
    }
  }
  const std::int32_t at_row = receiving.shared.begin[row.source] + in_order;
  if (lane() < shape.topk) {
    const std::size_t packed_at = static_cast<std::size_t>(at_row) * shape.topk + lane();
    if (is_in_place) {
      *at<std::int32_t>(row.memory, shape.row.ids_at() + lane() * 4) = local;
    } else if (kBetweenNodes && is_shown) {
      std::byte* shown = shown_at(receiving, at_row);
      *at<std::int32_t>(shown, shape.row.ids_at() + lane() * 4) = local;
      *at<float>(shown, shape.row.weights_at() + lane() * 4) = routes.weight;
    } else {
      receiving.call.row_ids[packed_at] = local;
      receiving.call.row_weights[packed_at] = routes.weight;
    }
  }
  const unsigned ours = __ballot_sync(kAllLanes, local >= 0);
  std::byte* plan = receiving.call.plan;
  if (lane() < (places_ranks(exchange) ? shape.topk : 1) && !shares_rows(exchange, row.source)) {
    at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot))[lane()] =
        lane() == 0 ? at_row : -1;
  }
  if (lane() == 0) {
    note_lane(receiving, row, routes.token, ours);
    if (row.source == static_cast<std::uint32_t>(exchange.me)) {
      *at<std::int32_t>(plan, shape.plan().own_place_at(routes.token)) = at_row;
    }
    if (!is_in_place || Group::warps() == 1) {
      receiving.shared.to[group][0] = at_row;
      receiving.shared.copies[group] = is_in_place ? 0 : 1;
    }
  }
}

template <typename Path>
__device__ void route(const Receiving<Path>& receiving, const Row& row, const Routes& routes) {
  if constexpr (Path::kByRank) {
    route_to_rank(receiving, row, routes);
  } else {
    route_to_experts(receiving, row, routes);
  }
}

// A warp; WEFT_MOE_RANK_MAJOR: slots without a row name no expert.
template <typename Path>
__device__ void mark_empty(const Receiving<Path>& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (lane() < shape.topk) {
    const auto index = static_cast<std::int32_t>(row.source * shape.max_tokens + row.slot);
    std::byte* shown = kBetweenNodes ? shown_at(receiving, index) : row.memory;
    *at<std::int32_t>(shown, shape.row.ids_at() + lane() * 4) = -1;
  }
}

// A row that never came: nothing is sent back for it, and a reader that sees all slots finds no
// expert in its.
template <typename Path>
__device__ void note_absent(const Receiving<Path>& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (lane() < shape.topk) {
    at<std::int32_t>(receiving.call.plan,
                     shape.plan().place_here_at(row.source, row.slot))[lane()] = -1;
  }
  if (receiving.shows_all()) {
    mark_empty(receiving, row);
  }
}

template <typename Path>
__device__ void route_nowhere(const Receiving<Path>& receiving, const Row& row) {
  note_absent(receiving, row);
  receiving.shared.copies[Path::Takers::number()] = 0;
}

// One thread: 16 bytes of a row, to all places that the group's list of copies names.
template <typename Path>
__device__ void store_copies(const Receiving<Path>& receiving,
                             std::int32_t copies,
                             std::uint32_t unit,
                             const Vector16& data) {
  const std::int32_t* to = receiving.shared.to[Path::Takers::number()];
#pragma unroll 1
  for (std::int32_t copy = 0; copy < copies; ++copy) {
    device::store_data(at<Vector16>(payload_of_row(receiving, to[copy]), 0) + unit, data);
  }
}

// Word i of the scales of row `index` of x.
template <typename Word, typename Path>
__device__ Word* scale_word(const Receiving<Path>& receiving, std::int32_t index, std::size_t i) {
  if constexpr (!Path::kByRank) {
    if (const std::uint32_t column = receiving.exchange.column; column > 0) {
      const std::size_t words = receiving.exchange.shape.row.scale_bytes / sizeof(Word);
      return at<Word>(receiving.call.row_scales, 0) +
             weft::moe::word_by_column(static_cast<std::uint32_t>(index), i, words, column);
    }
  }
  return at<Word>(scales_of_row(receiving, index), 0) + i;
}

// Scales are packed in x's scales, so their rows may begin anywhere. scales_at(byte) has the 4
// bytes from `byte` on.
template <typename Word, typename Path, typename ScalesAt>
__device__ void copy_words_of_scales(const Receiving<Path>& receiving, ScalesAt&& scales_at) {
  const Shape& shape = receiving.exchange.shape;
  const std::int32_t* to = receiving.shared.to[Path::Takers::number()];
  const std::int32_t copies = receiving.shared.copies[Path::Takers::number()];
  const std::size_t words = shape.row.scale_bytes / sizeof(Word);
#pragma unroll 1
  for (std::size_t i = Path::Takers::thread(); i < words; i += Path::Takers::size()) {
    const std::size_t byte = i * sizeof(Word);
    const auto word = static_cast<Word>(scales_at(byte / 4 * 4) >> (byte % 4 * 8));
#pragma unroll 1
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      *scale_word<Word>(receiving, to[copy], i) = word;
    }
  }
}

template <typename Path, typename ScalesAt>
__device__ void copy_scales(const Receiving<Path>& receiving, ScalesAt&& scales_at) {
  if (receiving.exchange.shape.row.scale_bytes % sizeof(std::uint32_t) == 0) {
    copy_words_of_scales<std::uint32_t>(receiving, scales_at);
  } else {
    copy_words_of_scales<std::uint8_t>(receiving, scales_at);
  }
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
