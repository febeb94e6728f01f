// Which of the two sets of kernels an exchange uses, and how many of their blocks the GPU holds.
#include <cuda_runtime.h>

#include <algorithm>

#include "moe/src/gpu/kernels/kernels.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::moe::gpu {
namespace {

const Kernels& kernels_of(const KernelArguments& exchange) {
  return exchange.remote == 0 ? kKernelsInNode : kKernelsBetweenNodes;
}

}  // namespace

std::string describe(int error) {
  return weft::gpu::words(static_cast<cudaError_t>(error));
}

Residency residency() {
  const Loaded inside = kKernelsInNode.load_all();
  const Loaded between = kKernelsBetweenNodes.load_all();
  weft::gpu::check(static_cast<cudaError_t>(inside.error == 0 ? between.error : inside.error),
                   "loading the kernels of weft::moe");
  weft::gpu::check(static_cast<cudaError_t>(load_sources()),
                   "loading the kernel that finds sources");
  weft::gpu::check(static_cast<cudaError_t>(load_destinations()),
                   "loading the kernels that count destinations");
  int gpu = 0;
  Residency found{std::min(inside.blocks, between.blocks), 0};
  weft::gpu::check(cudaGetDevice(&gpu), "cudaGetDevice");
  weft::gpu::check(cudaDeviceGetAttribute(&found.processors, cudaDevAttrMultiProcessorCount, gpu),
                   "cudaDeviceGetAttribute");
  return found;
}

bool is_captured(weft_stream_t stream) {
  cudaStreamCaptureStatus status{};
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

int dispatch(const KernelArguments& exchange,
             const Dispatch& call,
             Grid grid,
             weft_stream_t stream) {
  return kernels_of(exchange).dispatch(exchange, call, grid, stream);
}

int combine(const KernelArguments& exchange, const Combine& call, Grid grid, weft_stream_t stream) {
  return kernels_of(exchange).combine(exchange, call, grid, stream);
}

int refuse(const KernelArguments& exchange, weft_moe_step step, weft_stream_t stream) {
  return kernels_of(exchange).refuse(exchange, step, stream);
}

}  // namespace weft::moe::gpu
