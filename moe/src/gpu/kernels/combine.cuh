// The kernel of a combine by the type of its rows, and its launch: partial sums of what dispatch
// brought are sent (partial_sums.cuh), then those for this rank's tokens are waited for and added.
//
// Host code, threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <cuda_runtime.h>

#include "moe/src/gpu/kernels/launch.cuh"
#include "moe/src/gpu/kernels/send_partial_sums.cuh"
#include "moe/src/gpu/kernels/store_sums.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {
namespace {

// All threads of the grid: what this rank sends for its node, and then its sums.
template <typename Type, Rows kRows, typename Way, typename Sums>
__device__ void store_sums(const Combining<Way>& combining, Sums&& sums) {
  if constexpr (kBetweenNodes) {
    if (combining.exchange.by_node && combining.call.phases.receives) {
      reduce_for_node<Type, kRows>(combining);
      if (Group::warp() == 0) {
        await_far_combine_headers(combining);
      }
    }
  }
  while (sums.has_more()) {
    sums.store_next();
  }
}

// So many warps of each block send rows while the others store sums as they come, because the link
// is slower than few multiprocessors; more where what is sent must be added up first. Larger groups
// send first, because few rows are soon sent.
template <typename Way>
inline constexpr std::uint32_t kSendersOfPartialSums = Way::kByRank ? 6 : 14;

// All threads of the grid: what goes before rows.
template <typename Way>
__device__ void begin_partial_sums(const Combining<Way>& combining) {
  if (!combining.call.phases.sends) {
    return;
  }
  send_combine_headers(combining);
  begin_far_partial_sums(
      combining, [&](std::uint32_t source) { return sends_partial_sums_alone(combining, source); });
  if (combining.asks_for_weights()) {
    send_weights(combining);
  }
}

template <typename Way>
__device__ void advance_combines(const Combining<Way>& combining) {
  if (combining.call.phases.receives) {
    advance(combining.exchange, combining.entered, &combining.exchange.state->combines);
  }
}

// All threads of the grid, with few rows, when combine headers are sent.
template <typename Type, typename Way>
__device__ void exchange_few(const Combining<Way>& combining,
                             PartialSums<Type, Rows::BlockPerRow, Way>& partial_sums,
                             TokenSums<Type, Rows::BlockPerRow, Way>& sums) {
  partial_sums.send_all();
  advance_combines(combining);
  if constexpr (!Way::kPolls) {
    __syncthreads();
  }
  store_sums<Type, Rows::BlockPerRow>(combining, sums);
}

// All threads of the grid. What the plan says of a group's first row is on its way while the block
// enters, in expert layouts, and of its first token while it sends.
template <typename Type, Rows kRows, typename Way>
__device__ void exchange_partial_sums(Combining<Way>& combining, const Entry& entry) {
  if constexpr (kRows == Rows::WarpPerRow) {
    combining.entered = entry.call();
    begin_partial_sums(combining);
    advance_combines(combining);
    const std::uint32_t groups =
        combining.call.phases.receives ? kSendersOfPartialSums<Way> : kGroupsMax;
    if (Group::number() < groups) {
      PartialSums<Type, kRows, Way>(combining, groups).send_all();
    }
    store_sums<Type, kRows>(combining, TokenSums<Type, kRows, Way>(combining));
  } else if constexpr (Way::kByRank) {
    combining.entered = entry.call();
    begin_partial_sums(combining);
    TokenSums<Type, kRows, Way> sums(combining);
    PartialSums<Type, kRows, Way> partial_sums(combining, Group::of_block());
    exchange_few<Type>(combining, partial_sums, sums);
  } else {
    PartialSums<Type, kRows, Way> partial_sums(combining, Group::of_block());
    combining.entered = entry.call();
    begin_partial_sums(combining);
    TokenSums<Type, kRows, Way> sums(combining);
    exchange_few<Type>(combining, partial_sums, sums);
  }
  if (combining.call.phases.receives) {
    if (Group::is_of_last_block()) {
      await_combine_headers(combining);
    }
    finish(combining.exchange);
  }
}

// The same with outputs in place.
template <typename Type, Rows kRows, typename Way>
__device__ void pull_outputs(const Combining<Way>& combining) {
  if (combining.call.phases.sends) {
    send_combine_headers(combining);
  }
  if (combining.call.phases.receives) {
    TokenSums<Type, kRows, Way> sums(combining);
    await_first_outputs(combining);
    if constexpr (kRows == Rows::WarpPerRow) {
      fence_global_for_bulk();
    }
    advance_combines(combining);
    store_sums<Type, kRows>(combining, sums);
    if (Group::is_of_last_block() && combining.exchange.shape.polls) {
      const std::uint32_t rank = thread_of_block();
      const bool is_refused = rank < combining.exchange.shape.ranks() &&
                              combining.shared.first_output[rank] == kNoOutputs;
      clear_spoilt(combining.exchange, combining.entered,
                   __syncthreads_or(is_refused ? 1 : 0) != 0);
    }
  }
}

template <typename Type, Rows kRows, typename Way>
__global__ void __launch_bounds__(kThreads, 1)
    combine_kernel(const __grid_constant__ KernelArguments exchange,
                   const __grid_constant__ Combine call) {
  __shared__ CombineMemory shared;
  if (kRows == Rows::WarpPerRow && thread_of_block() == 0) {
    shared.drawn = 0;
  }
  await_kernel_before();
  const Entry entry(exchange, WEFT_MOE_COMBINE, &exchange.state->combines);
  if constexpr (Way::kInPlace) {
    release_outputs(exchange, call);
  }
  if (thread_of_block() == kThreads - 2) {  // for all, as in Entry
    const auto* header = at<PlanHeader>(call.plan, 0);
    shared.tokens = static_cast<std::uint32_t>(header->tokens);
    shared.most_rows = static_cast<std::uint32_t>(header->most_rows);
  }
  CombinePipeline* pipelines = nullptr;
  Pieces pieces;
  if constexpr (kRows == Rows::WarpPerRow) {
    extern __shared__ __align__(kBulkAlignment) std::byte memory[];
    pipelines = reinterpret_cast<CombinePipeline*>(memory);
    BulkPipeline<CombinePipeline>(pipelines[Group::number()]).begin();
    if constexpr (Way::kByRank && !Way::kInPlace) {
      pieces = Pieces(exchange.shape.output_bytes, CombinePipeline::kSlotBytes);
    }
  }
  Combining<Way> combining{exchange, call, shared, {}, pipelines, pieces};
  if constexpr (Way::kInPlace) {
    combining.entered = entry.call();
    pull_outputs<Type, kRows>(combining);
  } else {
    exchange_partial_sums<Type, kRows>(combining, entry);
  }
}

template <Rows kRows>
inline constexpr std::size_t kPipelineBytes =
    kRows == Rows::WarpPerRow ? kGroupsMax * sizeof(CombinePipeline) : 0;

static_assert(sizeof(CombineMemory) + kPipelineBytes<Rows::WarpPerRow> <= kSharedBytesMax);

using Kernel = void (*)(KernelArguments, Combine);

template <typename Type, Rows kRows, Travels kAs = Travels::Rounded, Known kKnown = Known::ByWord>
Kernel kernel_by_layout(const KernelArguments& exchange) {
  return is_by_rank(exchange) ? &combine_kernel<Type, kRows, Way<true, kAs, kKnown>>
                              : &combine_kernel<Type, kRows, Way<false, kAs, kKnown>>;
}

template <typename Type, Rows kRows, Travels kAs = Travels::Rounded>
Kernel kernel_for(const KernelArguments& exchange, bool is_in_place = false) {
  if constexpr (kAs == Travels::Rounded && !kBetweenNodes) {
    if (is_in_place) {
      return &combine_kernel<Type, kRows, Way<true, kAs, Known::InPlace>>;
    }
    if constexpr (kRows == Rows::BlockPerRow) {
      if (exchange.shape.polls) {
        return kernel_by_layout<Type, kRows, kAs, Known::Polled>(exchange);
      }
    }
  }
  return kernel_by_layout<Type, kRows, kAs>(exchange);
}

inline Kernel kernel_of(const KernelArguments& exchange, bool is_in_place) {
  switch (exchange.output) {
    case WEFT_MOE_F16:
      return kernel_for<DeviceF16, Rows::BlockPerRow>(exchange, is_in_place);
    case WEFT_MOE_F32:
      return kernel_for<DevicePlain<float>, Rows::BlockPerRow>(exchange, is_in_place);
    case WEFT_MOE_F64:
      return kernel_for<DevicePlain<double>, Rows::BlockPerRow>(exchange, is_in_place);
    default:
      return kernel_for<DeviceBf16, Rows::BlockPerRow>(exchange, is_in_place);
  }
}

inline Kernel fp8_kernel_of(const KernelArguments& exchange) {
  switch (exchange.output) {
    case WEFT_MOE_F16:
      return kernel_for<DeviceF16, Rows::BlockPerRow, Travels::Fp8>(exchange);
    case WEFT_MOE_F32:
      return kernel_for<DevicePlain<float>, Rows::BlockPerRow, Travels::Fp8>(exchange);
    default:
      return kernel_for<DeviceBf16, Rows::BlockPerRow, Travels::Fp8>(exchange);
  }
}

template <typename Type, Rows kRows, Travels kAs = Travels::Rounded>
Loaded load_kernels() {
  Loaded found = load(kPipelineBytes<kRows>, &combine_kernel<Type, kRows, Way<true, kAs>>,
                      &combine_kernel<Type, kRows, Way<false, kAs>>);
  if constexpr (kAs == Travels::Rounded && !kBetweenNodes) {
    found = lesser(found, load(kPipelineBytes<kRows>,
                               &combine_kernel<Type, kRows, Way<true, kAs, Known::InPlace>>));
    if constexpr (kRows == Rows::BlockPerRow) {
      found = lesser(found, load(0, &combine_kernel<Type, kRows, Way<true, kAs, Known::Polled>>,
                                 &combine_kernel<Type, kRows, Way<false, kAs, Known::Polled>>));
    }
  }
  return found;
}

}  // namespace

inline int combine(const KernelArguments& exchange,
                   const Combine& call,
                   Grid grid,
                   weft_stream_t stream) {
  if (call.precision == WEFT_MOE_FP8) {
    return launch(fp8_kernel_of(exchange), for_few_rows(grid), 0, stream, exchange, call);
  }
  if constexpr (kHasWarpPerRow) {
    if (grid.groups == kGroupsMax && exchange.output == WEFT_MOE_BF16 && takes_many_rows() &&
        !exchange.shape.polls) {
      return launch(kernel_for<DeviceBf16, kWarpPerRow>(exchange, call.is_in_place), grid,
                    kPipelineBytes<kWarpPerRow>, stream, exchange, call);
    }
  }
  return launch(kernel_of(exchange, call.is_in_place), for_few_rows(grid), 0, stream, exchange,
                call);
}

inline Loaded load_combine() {
  Loaded found = lesser(lesser(load_kernels<DeviceBf16, Rows::BlockPerRow>(),
                               load_kernels<DeviceF16, Rows::BlockPerRow>()),
                        lesser(load_kernels<DevicePlain<float>, Rows::BlockPerRow>(),
                               load_kernels<DevicePlain<double>, Rows::BlockPerRow>()));
  found = lesser(
      found, lesser(load_kernels<DeviceBf16, Rows::BlockPerRow, Travels::Fp8>(),
                    lesser(load_kernels<DeviceF16, Rows::BlockPerRow, Travels::Fp8>(),
                           load_kernels<DevicePlain<float>, Rows::BlockPerRow, Travels::Fp8>())));
  if constexpr (kHasWarpPerRow) {
    if (takes_many_rows()) {
      found = lesser(found, load_kernels<DeviceBf16, kWarpPerRow>());
    }
  }
  return found;
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
