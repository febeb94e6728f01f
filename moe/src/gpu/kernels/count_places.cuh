// For many tokens, before dispatch_kernel: slots of rows at their ranks, places among the rows for
// each expert, and how many there are of both, left in the workspace (counts.cuh says what they
// are).
//
// Each block has a part of the tokens. For 32 of them at a time, and each expert and rank, it keeps
// as bits which of them go there:
//
//   a token's place = what earlier parts counted + bits of earlier tokens of this part
//
// A block tells what it has counted in words that carry a number of the call, as parcels do, and
// waits for those of the parts before its own. Parts are drawn, so those before one have begun.
#pragma once

#include <cuda_runtime.h>

#include "moe/src/gpu/kernels/counts.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

inline constexpr std::uint32_t kWordsOfTile = 4;
inline constexpr std::uint32_t kTokensOfTile = kWordsOfTile * kWarp;
inline constexpr std::uint32_t kTargetsMax = kExpertsMax + kRanksMax;

// Something that has places is a target, and a rank is as one to which rows are sent. Expert
// layouts have places for experts, rank layouts with a row for each node for ranks, other rank
// layouts none.
struct CountMemory {
  // Among the calls that count, and never 0. It wraps, but each of them writes all words, so what a
  // word holds before it has this one is the number before.
  std::uint32_t number;
  std::uint32_t part;
  std::int16_t ids[kTokensOfTile * kTopkMax];
  std::uint32_t going[kWordsOfTile][kTargetsMax];  // bit i of a word: its token i goes there
  std::uint32_t before[kTargetsMax];               // tokens before the tile that do
};

// What a block may have on GPUs of compute capability 8.6 and 8.9.
static_assert(sizeof(CountMemory) <= 101376);

struct Counting {
  const KernelArguments& exchange;
  const Ids& ids;
  CountMemory& shared;
  std::uint32_t named;      // targets that have places
  std::uint32_t targets;    // and ranks behind them
  std::uint32_t per_token;  // 2^32 / topk, to divide by it

  __device__ Counting(const KernelArguments& of, const Ids& of_all, CountMemory& memory)
      : exchange(of),
        ids(of_all),
        shared(memory),
        named(!is_by_rank(of)    ? static_cast<std::uint32_t>(of.shape.map.experts)
              : places_ranks(of) ? of.shape.ranks()
                                 : 0),
        targets(named + of.shape.ranks()),
        per_token(~0U / of.shape.topk + 1) {}

  // An index below 2^16.
  __device__ std::uint32_t token_of(std::uint32_t index) const {
    return per_token == 0 ? index : __umulhi(index, per_token);
  }

  // Of the rank to which a row for the expert is sent.
  __device__ std::uint32_t target_of_row(std::int32_t id) const {
    const auto rank = static_cast<std::uint32_t>(exchange.shape.map.rank_of(id));
    return named + destination_of(exchange, rank);
  }

  // Where a lane of the expert has its place.
  __device__ std::uint32_t target_of_place(std::int32_t id) const {
    return static_cast<std::uint32_t>(
        kBetweenNodes && is_by_rank(exchange) ? exchange.shape.map.rank_of(id) : id);
  }

  // The target whose counts are those of `target`: of a rank, the one to which its rows are sent.
  __device__ std::uint32_t target_of_counts(std::uint32_t target) const {
    return target < named ? target : named + destination_of(exchange, target - named);
  }

  // What part `part` counted for a target: its count, and above it CountMemory::number.
  __device__ std::uint64_t* word(std::uint32_t part, std::uint32_t target) const {
    return exchange.shape.counted_at(exchange.workspace) + std::size_t{part} * targets + target;
  }

  // visit(target), by the threads of the block.
  template <typename Visit>
  __device__ void for_targets(Visit&& visit) const {
    for (std::uint32_t target = threadIdx.x; target < targets; target += kThreads) {
      visit(target);
    }
  }

  __device__ std::uint32_t in_tile(std::uint32_t target) const {
    std::uint32_t sum = 0;
#pragma unroll
    for (const auto& word : shared.going) {
      sum += static_cast<std::uint32_t>(__popc(word[target]));
    }
    return sum;
  }
};

// All threads of the block: where `some` tokens from `begin` on go. Ends with a barrier.
inline __device__ void fill_tile(const Counting& counting,
                                 std::uint32_t begin,
                                 std::uint32_t some) {
  CountMemory& shared = counting.shared;
  __syncthreads();  // the last tile is read
  counting.for_targets([&](std::uint32_t target) {
#pragma unroll
    for (auto& word : shared.going) {
      word[target] = 0;
    }
  });
  __syncthreads();
  const std::uint32_t topk = counting.ids.topk;
  for (std::uint32_t i = threadIdx.x; i < some * topk; i += kThreads) {
    const std::int32_t id = counting.ids.at(begin * topk + i);
    shared.ids[i] = static_cast<std::int16_t>(id);
    const std::uint32_t token = counting.token_of(i);
    if (id >= 0) {
      std::uint32_t (&going)[kTargetsMax] = shared.going[token / kWarp];
      if (counting.named > 0) {
        atomicOr(&going[counting.target_of_place(id)], 1U << token % kWarp);
      }
      atomicOr(&going[counting.target_of_row(id)], 1U << token % kWarp);
    }
  }
  __syncthreads();
}

// All threads of the block: tells what the part counted, which is in `before`, and adds up there
// what those before it did. Where targets are fewer than threads, several threads share these
// parts. Ends with a barrier.
inline __device__ void add_parts(const Counting& counting) {
  constexpr std::uint32_t kTogether = 16;
  CountMemory& shared = counting.shared;
  const std::uint32_t targets = counting.targets;
  const std::uint32_t number = shared.number;
  const std::uint64_t of_call = std::uint64_t{number} << 32U;
  counting.for_targets([&](std::uint32_t target) {
    device::store_relaxed(counting.word(shared.part, target), of_call | shared.before[target]);
    shared.before[target] = 0;
  });
  __syncthreads();
  const std::uint32_t sharers = targets < kThreads ? kThreads / targets : 1;
  const std::uint32_t all = sharers * targets;  // threads and targets
  for (std::uint32_t i = threadIdx.x; i < all; i += kThreads) {
    const std::uint32_t target = i % targets;
    std::uint32_t sum = 0;
    for (std::uint32_t first = i / targets; first < shared.part; first += kTogether * sharers) {
      std::uint64_t words[kTogether];
#pragma unroll
      for (std::uint32_t k = 0; k < kTogether; ++k) {
        const std::uint32_t part = first + k * sharers;
        words[k] = part < shared.part ? device::load_relaxed(counting.word(part, target)) : of_call;
      }
#pragma unroll
      for (std::uint32_t k = 0; k < kTogether; ++k) {
        while (words[k] >> 32U != number) {
          words[k] = device::load_relaxed(counting.word(first + k * sharers, target));
        }
        sum += static_cast<std::uint32_t>(words[k]);
      }
    }
    if (sum != 0) {
      atomicAdd(&shared.before[target], sum);
    }
  }
  __syncthreads();
}

// All threads of the block: the slots and places of a tile's lanes.
inline __device__ void store_tile(const Counting& counting,
                                  std::uint32_t begin,
                                  std::uint32_t some) {
  const CountMemory& shared = counting.shared;
  const std::uint32_t topk = counting.ids.topk;
  std::int32_t* slots = counting.exchange.workspace + std::size_t{begin} * topk;
  std::int32_t* places = slots + counting.exchange.shape.lanes();
  for (std::uint32_t i = threadIdx.x; i < some * topk; i += kThreads) {
    const std::int32_t id = shared.ids[i];
    if (id < 0) {
      continue;
    }
    const std::uint32_t token = counting.token_of(i);
    const auto earlier = [&](std::uint32_t target) {
      std::uint32_t sum = shared.before[target];
      for (std::uint32_t word = 0; word < token / kWarp; ++word) {
        sum += static_cast<std::uint32_t>(__popc(shared.going[word][target]));
      }
      const std::uint32_t of_earlier = (1U << token % kWarp) - 1;
      sum += static_cast<std::uint32_t>(__popc(shared.going[token / kWarp][target] & of_earlier));
      return static_cast<std::int32_t>(sum);
    };
    slots[i] = earlier(counting.target_of_row(id));
    if (counting.named > 0) {
      places[i] = earlier(counting.target_of_place(id));
    }
  }
}

static_assert((kCountingParts & (kCountingParts - 1)) == 0, "State::parts wraps");

inline dim3 blocks_that_count() {
  return {kCountingParts};
}

namespace {

__global__ void __launch_bounds__(kThreads)
    count_places(const __grid_constant__ KernelArguments exchange,
                 const __grid_constant__ Dispatch call) {
  extern __shared__ __align__(kBulkAlignment) std::byte memory[];
  auto& shared = *reinterpret_cast<CountMemory*>(memory);
  if (threadIdx.x == 0) {  // for all, as in Entry
    const std::uint32_t drawn = atomicAdd(&exchange.state->parts, 1U);
    shared.number = drawn / kCountingParts + 1;
    shared.part = drawn % kCountingParts;
  }
  const Ids ids{call.ids, nullptr, nullptr, exchange.shape.map.experts, exchange.shape.topk};
  const Counting counting(exchange, ids, shared);
  counting.for_targets([&](std::uint32_t target) { shared.before[target] = 0; });
  __syncthreads();
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const std::uint32_t of_part =
      (tokens + kCountingParts * kWarp - 1) / (kCountingParts * kWarp) * kWarp;
  const std::uint32_t begin = min(shared.part * of_part, tokens);
  const std::uint32_t end = min(begin + of_part, tokens);
  for (std::uint32_t first = begin; first < end; first += kTokensOfTile) {
    fill_tile(counting, first, min(kTokensOfTile, end - first));
    counting.for_targets(
        [&](std::uint32_t target) { shared.before[target] += counting.in_tile(target); });
  }
  add_parts(counting);
  if (shared.part == kCountingParts - 1) {
    std::int32_t* counts = exchange.shape.counts_at(exchange.workspace) +
                           (exchange.shape.map.experts - static_cast<std::int32_t>(counting.named));
    counting.for_targets([&](std::uint32_t target) {
      const std::uint32_t from = counting.target_of_counts(target);
      const std::uint64_t of_part = device::load_relaxed(counting.word(shared.part, from));
      counts[target] =
          static_cast<std::int32_t>(shared.before[from] + static_cast<std::uint32_t>(of_part));
    });
  }
  for (std::uint32_t first = begin; first < end; first += kTokensOfTile) {
    const std::uint32_t some = min(kTokensOfTile, end - first);
    if (of_part > kTokensOfTile) {  // else the tile is there
      fill_tile(counting, first, some);
    }
    store_tile(counting, first, some);
    __syncthreads();
    counting.for_targets(
        [&](std::uint32_t target) { shared.before[target] += counting.in_tile(target); });
  }
}

}  // namespace
}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
