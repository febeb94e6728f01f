// What programs ask besides a dispatch: where tokens go, before it; which experts its rows name,
// behind it.
#include <weft/moe/experts.hpp>

#include <cuda_runtime.h>

#include "moe/src/gpu/kernels/kernels.hpp"
#include "moe/src/gpu/launchers.hpp"

namespace weft::moe::gpu {
namespace {

constexpr unsigned kThreads = 1024;
constexpr unsigned kBlocksMax = 256;
constexpr std::uint32_t kIdsAtOnce = 8;  // of a thread, on their way together

// Whether a lane before number `lane` of the same token names the same.
template <typename Id>
__device__ bool is_named_before(const Id* ids, std::uint32_t lane) {
  for (std::uint32_t before = 0; before < lane; ++before) {
    if (ids[before] == ids[lane]) {
      return true;
    }
  }
  return false;
}

// A block for each rank, which reads all ids: so nothing has to be zeroed before, and blocks share
// nothing.
__global__ void __launch_bounds__(kThreads) destinations_kernel(Destinations call) {
  extern __shared__ __align__(16) std::byte memory[];
  auto* of_expert = reinterpret_cast<std::int32_t*>(memory);
  __shared__ std::int32_t of_rank;
  const weft::moe::ExpertMap map(call.experts, static_cast<std::int32_t>(gridDim.x));
  const auto rank = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t first = map.first_of(rank);
  const std::int32_t count = map.count_of(rank);
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < count; i += kThreads) {
    of_expert[i] = 0;
  }
  if (threadIdx.x == 0) {
    of_rank = 0;
  }
  __syncthreads();
  std::int32_t come = 0;
  for (std::uint32_t token = threadIdx.x; token < call.tokens; token += kThreads) {
    const std::int64_t* ids = call.ids + std::size_t{token} * call.topk;
    bool comes = false;
    for (std::uint32_t begin = 0; begin < call.topk; begin += kIdsAtOnce) {
      std::int64_t held[kIdsAtOnce];
#pragma unroll
      for (std::uint32_t i = 0; i < kIdsAtOnce; ++i) {
        held[i] = begin + i < call.topk ? ids[begin + i] : -1;
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kIdsAtOnce; ++i) {
        const bool is_here = held[i] >= first && held[i] < std::int64_t{first} + count;
        comes = comes || is_here;
        if (is_here && !is_named_before(ids, begin + i)) {
          atomicAdd(&of_expert[held[i] - first], 1);
        }
      }
    }
    call.is_in_rank[std::size_t{token} * gridDim.x + blockIdx.x] = comes ? 1 : 0;
    come += comes ? 1 : 0;
  }
  if (come > 0) {
    atomicAdd(&of_rank, come);
  }
  __syncthreads();
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < count; i += kThreads) {
    call.of_expert[first + i] = of_expert[i];
  }
  if (threadIdx.x == 0) {
    call.of_rank[rank] = of_rank;
  }
}

// The block that counts, apart from those that write.
__device__ void count_rows(const RowRoutes& call, std::int64_t rows) {
  extern __shared__ __align__(16) std::byte memory[];
  auto* of_expert = reinterpret_cast<std::int32_t*>(memory);
  for (std::uint32_t i = threadIdx.x; i < call.experts; i += kThreads) {
    of_expert[i] = 0;
  }
  __syncthreads();
  const std::int64_t ids = rows * call.topk;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < ids; i += kThreads) {
    const std::int32_t id = call.ids[i];
    const auto lane = static_cast<std::uint32_t>(i % call.topk);
    if (id >= 0 && !is_named_before(call.ids + (i - lane), lane)) {
      atomicAdd(&of_expert[id], 1);
    }
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < call.experts; i += kThreads) {
    call.counts[i] = of_expert[i];
  }
  if (threadIdx.x == 0) {
    call.counts[call.experts] = rows;
  }
}

__global__ void __launch_bounds__(kThreads) row_routes_kernel(RowRoutes call) {
  const std::int64_t rows = *call.row_count;
  const bool are_counted = call.counts != nullptr;
  const unsigned writers = gridDim.x - (are_counted ? 1 : 0);
  if (blockIdx.x >= writers) {
    count_rows(call, rows);
    return;
  }
  const std::int64_t came = rows * call.topk;
  const std::int64_t all = std::int64_t{call.rows} * call.topk;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < all;
       i += std::int64_t{writers} * kThreads) {
    const std::int32_t id = i < came ? call.ids[i] : -1;
    call.shown_ids[i] = id;
    if (call.shown_weights != nullptr) {
      call.shown_weights[i] = id >= 0 ? call.weights[i] : 0;
    }
  }
}

}  // namespace

int load_destinations() {
  cudaFuncAttributes attributes{};
  const int error = cudaFuncGetAttributes(&attributes, &destinations_kernel);
  return error != 0 ? error : cudaFuncGetAttributes(&attributes, &row_routes_kernel);
}

int count_destinations(const Destinations& call, std::int32_t ranks, weft_stream_t stream) {
  const weft::moe::ExpertMap map(call.experts, ranks);
  const std::size_t bytes = static_cast<std::size_t>(map.count_of(0)) * sizeof(std::int32_t);
  destinations_kernel<<<static_cast<unsigned>(ranks), kThreads, bytes, stream>>>(call);
  return cudaGetLastError();
}

int show_row_routes(const RowRoutes& call, weft_stream_t stream) {
  const std::size_t blocks = (std::size_t{call.rows} * call.topk + kThreads - 1) / kThreads;
  const unsigned writers = static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax);
  const unsigned all = writers + (call.counts != nullptr ? 1 : 0);
  if (all == 0) {
    return 0;
  }
  row_routes_kernel<<<all, kThreads, call.experts * sizeof(std::int32_t), stream>>>(call);
  return cudaGetLastError();
}

}  // namespace weft::moe::gpu
