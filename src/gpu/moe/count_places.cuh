// For many tokens, before dispatch_kernel: slots of rows at their ranks, places among the rows for each expert, and how many
// there are of both, left in the workspace (send_headers.cuh says what they are).
//
// A block counts for kTargets experts or ranks, of which it stores a part of the tokens, having counted those before them. All its
// warps share the tokens, each a run of them: they count, learn what the warps before them have, and count again to store.
#pragma once

#include <cuda_runtime.h>

#include "src/gpu/moe/send_headers.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

inline constexpr std::uint32_t kTargets = 4;
// Ranks are few, and one block for all tokens takes 36 us for 4,096 of them. Experts have blocks enough.
inline constexpr unsigned kPartsByRank = 8;
inline constexpr std::uint32_t kTile = 32768;  // ids that lie in shared memory at once
inline constexpr std::uint32_t kWarps = kThreads / kWarp;
// Halfwords between a tile's lanes beyond its tokens: the lanes of a token lie in other banks.
inline constexpr std::uint32_t kLanePadding = 2;

struct CountMemory {
  std::int16_t tile[kTile + kTopkMax * kLanePadding];  // [lane of the token][token]
  std::uint32_t of_warp[kWarps][kTargets];
};

// An expert or a rank for which a block counts.
struct Counted {
  std::int32_t first = 0;  // expert
  std::uint32_t count = 0;
  std::int32_t rank;  // or less than 0
  bool is_one;        // and not beyond the last

  __device__ Counted(const Exchange& exchange, std::uint32_t target) {
    const weft::moe::ExpertMap& map = exchange.shape.map;
    rank = static_cast<std::int32_t>(target) - map.experts;
    is_one = rank < map.ranks;
    if (rank < 0) {
      first = static_cast<std::int32_t>(target);
      count = 1;
    } else if (is_one) {
      first = map.first_of(rank);
      count = static_cast<std::uint32_t>(map.count_of(rank));
    }
  }

  // Whether an id is that of an expert of the rank's node, where a row goes to each node.
  __device__ bool has(const Exchange& exchange, std::int32_t id) const {
    return kBetweenNodes && exchange.by_node && is_one && rank >= 0 &&
           Target(exchange, static_cast<std::uint32_t>(rank)).has(id);
  }
};

// All threads of the block: ids of `some` tokens from `begin` on.
inline __device__ void fill_tile(CountMemory& shared,
                                 const Ids& ids,
                                 std::uint32_t pitch,
                                 std::uint32_t begin,
                                 std::uint32_t some) {
  constexpr std::uint32_t kTogether = 16;
  const std::uint32_t count = some * ids.topk;
  const std::uint32_t inverse = ~0U / ids.topk + 1;  // of topk 1 it is 0
  for (std::uint32_t from = threadIdx.x; from < count; from += kTogether * kThreads) {
    std::int64_t given[kTogether];
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      const std::uint32_t index = from + i * kThreads;
      given[i] = index < count ? ids.given[begin * ids.topk + index] : -1;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      const std::uint32_t index = from + i * kThreads;
      const std::uint32_t token = inverse == 0 ? index : __umulhi(index, inverse);
      if (index < count) {
        shared.tile[(index - token * ids.topk) * pitch + token] =
            static_cast<std::int16_t>(given[i] < 0 || given[i] >= ids.experts ? -1 : given[i]);
      }
    }
  }
}

// The tokens of a tile that a warp counts, for all of its block's targets.
struct TokenRun {
  const Exchange& exchange;
  CountMemory& shared;
  const Counted (&targets)[kTargets];
  std::uint32_t pitch;
  std::uint32_t begin;  // of the tile
  std::uint32_t from;   // in the tile
  std::uint32_t end;
};

// The lanes of a thread's token that name a target, as bits, and the warp's tokens that go there.
struct Named {
  unsigned lanes[kTargets] = {};
  unsigned going[kTargets];

  __device__ Named(const TokenRun& run, std::uint32_t token) {
    bool goes[kTargets] = {};
#pragma unroll 8
    for (std::uint32_t i = 0; i < run.exchange.shape.topk; ++i) {
      const std::int32_t id = token < run.end ? run.shared.tile[i * run.pitch + token] : -1;
#pragma unroll
      for (std::uint32_t k = 0; k < kTargets; ++k) {
        const auto local = static_cast<std::uint32_t>(id - run.targets[k].first);
        lanes[k] |= local < run.targets[k].count ? 1U << i : 0U;
        goes[k] = goes[k] || run.targets[k].has(run.exchange, id);
      }
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kTargets; ++k) {
      going[k] = __ballot_sync(kAllLanes, goes[k] || lanes[k] != 0);
    }
  }
};

// A warp: how many tokens of its run go to each target.
inline __device__ void count_run(const TokenRun& run) {
  std::uint32_t sums[kTargets] = {};
  for (std::uint32_t token = run.from; token < run.end; token += kWarp) {
    const Named named(run, token + lane());
#pragma unroll
    for (std::uint32_t k = 0; k < kTargets; ++k) {
      sums[k] += static_cast<std::uint32_t>(__popc(named.going[k]));
    }
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kTargets; ++k) {
    if (lane() == k) {
      run.shared.of_warp[threadIdx.x / kWarp][k] = sums[k];
    }
  }
}

// A warp: stores them; `before`: what others counted.
inline __device__ void store_run(const TokenRun& run, std::uint32_t (&before)[kTargets]) {
  const Shape& shape = run.exchange.shape;
  for (std::uint32_t token = run.from; token < run.end; token += kWarp) {
    const Named named(run, token + lane());
#pragma unroll
    for (std::uint32_t k = 0; k < kTargets; ++k) {
      const std::uint32_t place =
          before[k] + static_cast<std::uint32_t>(__popc(named.going[k] & ((1U << lane()) - 1)));
      std::int32_t* to = run.exchange.workspace + (run.targets[k].rank >= 0 ? 0 : shape.lanes()) +
                         std::size_t{run.begin + token + lane()} * shape.topk;
      for (unsigned lanes = named.lanes[k]; lanes != 0; lanes &= lanes - 1) {
        to[__ffs(static_cast<int>(lanes)) - 1] = static_cast<std::int32_t>(place);
      }
      before[k] += static_cast<std::uint32_t>(__popc(named.going[k]));
    }
  }
}

// Rank layouts need no places for experts.
inline __host__ __device__ std::uint32_t first_target(const Exchange& exchange) {
  return is_by_rank(exchange) ? static_cast<std::uint32_t>(exchange.shape.map.experts) : 0;
}

// By targets, and by parts of the tokens.
inline dim3 blocks_that_count(const Exchange& exchange) {
  const auto targets =
      static_cast<std::uint32_t>(exchange.shape.map.experts + exchange.shape.map.ranks) -
      first_target(exchange);
  return {(targets + kTargets - 1) / kTargets, is_by_rank(exchange) ? kPartsByRank : 1};
}

// The warp's share of the tokens from `from` to `end` of a tile.
inline __device__ TokenRun run_of_warp(const TokenRun& all) {
  const std::uint32_t tokens = (all.end - all.from + kThreads - 1) / kThreads * kWarp;
  const std::uint32_t from = min(all.from + threadIdx.x / kWarp * tokens, all.end);
  return {all.exchange,
          all.shared,
          all.targets,
          all.pitch,
          all.begin,
          from,
          min(from + tokens, all.end)};
}

// All threads of the block: adds up what the warps counted; `before`: what those before this one did, and `counted` when it began.
inline __device__ void add_runs(const CountMemory& shared,
                                std::uint32_t (&counted)[kTargets],
                                std::uint32_t (&before)[kTargets]) {
#pragma unroll
  for (std::uint32_t k = 0; k < kTargets; ++k) {
    before[k] = counted[k];
    for (std::uint32_t other = 0; other < kWarps; ++other) {
      before[k] += other < threadIdx.x / kWarp ? shared.of_warp[other][k] : 0;
      counted[k] += shared.of_warp[other][k];
    }
  }
}

namespace {

__global__ void __launch_bounds__(kThreads)
    count_places(const __grid_constant__ Exchange exchange, const __grid_constant__ Dispatch call) {
  extern __shared__ __align__(kBulkAlignment) std::byte memory[];
  auto& shared = *reinterpret_cast<CountMemory*>(memory);
  const Shape& shape = exchange.shape;
  const Ids ids{call.ids, nullptr, shape.map.experts, shape.topk};
  const std::uint32_t target = first_target(exchange) + blockIdx.x * kTargets;
  const Counted targets[kTargets] = {
      {exchange, target}, {exchange, target + 1}, {exchange, target + 2}, {exchange, target + 3}};
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const std::uint32_t of_part = (tokens + gridDim.y * kWarp - 1) / (gridDim.y * kWarp) * kWarp;
  const std::uint32_t mine = min(blockIdx.y * of_part, tokens);
  const std::uint32_t end = min(mine + of_part, tokens);
  const std::uint32_t step = kTile / ids.topk / kWarp * kWarp;  // tokens of a tile
  const std::uint32_t pitch = step + kLanePadding;
  std::uint32_t counted[kTargets] = {};
  std::uint32_t before[kTargets];
  for (std::uint32_t begin = 0; begin < end; begin += step) {
    const std::uint32_t some = min(step, end - begin);
    const std::uint32_t of_others = begin < mine ? min(mine - begin, some) : 0;
    __syncthreads();  // the last tile is read
    fill_tile(shared, ids, pitch, begin, some);
    __syncthreads();
    if (of_others > 0) {
      count_run(run_of_warp({exchange, shared, targets, pitch, begin, 0, of_others}));
      __syncthreads();
      add_runs(shared, counted, before);
      __syncthreads();
    }
    const TokenRun run = run_of_warp({exchange, shared, targets, pitch, begin, of_others, some});
    count_run(run);
    __syncthreads();
    add_runs(shared, counted, before);
    store_run(run, before);
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kTargets; ++k) {
    if (threadIdx.x == k && targets[k].is_one && blockIdx.y == gridDim.y - 1) {
      exchange.workspace[2 * shape.lanes() + target + k] = static_cast<std::int32_t>(counted[k]);
    }
  }
}

}  // namespace
}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
