// Where the rows of a dispatch came from, read from its plan: one thread for each lane of each row
// that came here.
#include <weft/device/access.cuh>
#include <weft/moe/layouts.hpp>

#include <cuda_runtime.h>

#include "moe/src/gpu/kernels/kernels.hpp"
#include "moe/src/gpu/launchers.hpp"

namespace weft::moe::gpu {
namespace {

constexpr unsigned kThreads = 256;

__global__ void sources_kernel(PlanShape shape, std::uint32_t lanes, Sources call) {
  const std::size_t count = std::size_t{shape.ranks} * shape.max_tokens * lanes;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto lane = static_cast<std::uint32_t>(i % lanes);
    const auto slot = static_cast<std::uint32_t>(i / lanes % shape.max_tokens);
    const auto source = static_cast<std::uint32_t>(i / lanes / shape.max_tokens);
    const auto word = [&](std::size_t offset) {
      return *reinterpret_cast<const std::int32_t*>(call.plan + offset);
    };
    if (slot >=
        static_cast<std::uint32_t>(word(shape.rows_here_at() + source * sizeof(std::int32_t)))) {
      continue;
    }
    const std::int32_t row = word(shape.place_here_at(source, slot) + lane * sizeof(std::int32_t));
    // Lanes that name the same expert have one row, and all say the same of it.
    const auto say = [row](std::int32_t* array, std::int32_t value) {
      device::store_relaxed(reinterpret_cast<std::uint32_t*>(array + row),
                            static_cast<std::uint32_t>(value));
    };
    if (row >= 0) {
      say(call.ranks, static_cast<std::int32_t>(source));
      say(call.tokens,
          word(shape.lane_here_at(source, slot)) / static_cast<std::int32_t>(shape.topk));
    }
  }
}

}  // namespace

int load_sources() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, &sources_kernel);
}

int find_sources(const KernelArguments& exchange, const Sources& call, weft_stream_t stream) {
  const Shape& shape = exchange.shape;
  const std::uint32_t lanes = is_by_rank(exchange.layout) && shape.relayed == 0 ? 1 : shape.topk;
  for (std::int32_t* array : {call.ranks, call.tokens}) {
    if (const int error = cudaMemsetAsync(array, 0xFF, call.rows * sizeof(std::int32_t), stream);
        error != 0) {
      return error;
    }
  }
  const std::size_t blocks = (shape.arrivals() * lanes + kThreads - 1) / kThreads;
  sources_kernel<<<static_cast<unsigned>(blocks < 1024 ? blocks : 1024), kThreads, 0, stream>>>(
      shape.plan(), lanes, call);
  return cudaGetLastError();
}

}  // namespace weft::moe::gpu
