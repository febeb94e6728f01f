// The GPU of the process: errors, clocks, launches, and data that is filled and compared. See
// memory.cuh.
#include <cmath>
#include <string>
#include <vector>

#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

constexpr int kFillCtas = 256;
constexpr int kFillThreads = 256;

template <typename T>
__global__ void fill_kernel(
    T* buffer, std::size_t blocks, std::size_t count, int me, bool product) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < blocks * count;
       i += step) {
    const int value = value_of(me, static_cast<int>(i / count), i % count);
    buffer[i] = static_cast<T>(product ? value % 2 + 1 : value);
  }
}

inline __device__ std::uint64_t combine(int reduction, std::uint64_t a, std::uint64_t b) {
  switch (reduction) {
    case WEFT_AND:
      return a & b;
    case WEFT_OR:
      return a | b;
    case WEFT_XOR:
      return a ^ b;
    case WEFT_MIN:
      return a < b ? a : b;
    case WEFT_MAX:
      return a > b ? a : b;
    case WEFT_SUM:
      return a + b;
    default:
      return a * b;
  }
}

inline __device__ std::uint64_t expected_at(const Expected& expected,
                                            std::size_t block,
                                            std::size_t index) {
  const int other = static_cast<int>(block);
  switch (expected.pattern) {
    case Pattern::Exchange:
      return value_of(other, expected.me, index);
    case Pattern::Gather:
      return value_of(other, 0, index);
    case Pattern::One:
      return value_of(expected.from, 0, index);
    case Pattern::Reduce:
    case Pattern::ReduceScatter:
      break;
  }
  const int to = expected.pattern == Pattern::Reduce ? 0 : expected.me;
  const bool product = expected.reduction == WEFT_PROD;
  std::uint64_t whole = 0;
  for (int pe = 0; pe < expected.pe_count; ++pe) {
    const int value = value_of(pe, to, index);
    const auto mine = static_cast<std::uint64_t>(product ? value % 2 + 1 : value);
    whole = pe == 0 ? mine : combine(expected.reduction, whole, mine);
  }
  return whole;
}

template <typename T>
__global__ void check_kernel(const T* buffer,
                             std::size_t blocks,
                             std::size_t count,
                             Expected expected,
                             unsigned long long* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < blocks * count;
       i += step) {
    if (buffer[i] != static_cast<T>(expected_at(expected, i / count, i % count))) {
      atomicAdd(wrong, 1ULL);
    }
  }
}

// Allocated once; the process ends with it.
void* once(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocating memory of the GPU");
  check(cudaMemset(memory, 0, bytes), "clearing memory of the GPU");
  return memory;
}

}  // namespace

void check(cudaError_t error, const char* action) {
  if (error == cudaSuccess) {
    return;
  }
  std::string sentence = std::string(action) + " failed: " + cudaGetErrorString(error);
  if (weft_device_check() != WEFT_OK) {
    sentence += std::string("; ") + weft_last_error();
  }
  throw JobError(sentence, kStatusFailure);
}

Span* spans_of_process() {
  static auto* const kSpans = static_cast<Span*>(once(kCtasMax * sizeof(Span)));
  return kSpans;
}

double microseconds(std::uint32_t ctas, std::uint64_t iterations) {
  wait_for_gpu();  // before the copy: see docs/GPU.md, what the host may not do meanwhile
  std::vector<Span> spans(ctas);
  check(cudaMemcpy(spans.data(), spans_of_process(), ctas * sizeof(Span), cudaMemcpyDeviceToHost),
        "the measured kernel");
  Span whole = spans.front();
  for (const Span& span : spans) {
    whole = {std::min(whole.begin, span.begin), std::max(whole.end, span.end)};
  }
  return static_cast<double>(whole.end - whole.begin) * 1e-3 / static_cast<double>(iterations);
}

std::uint32_t threads_for(const void* kernel, std::uint32_t wanted) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "asking for a kernel's registers");
  return std::clamp(wanted, 1U, static_cast<std::uint32_t>(attributes.maxThreadsPerBlock));
}

std::uint32_t ctas_for(const void* kernel, Shape wanted) {
  int gpu = 0;
  int sms = 0;
  int per_sm = 0;
  check(cudaGetDevice(&gpu), "asking for the current GPU");
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, gpu), "counting SMs");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel,
                                                      static_cast<int>(wanted.threads), 0),
        "asking how many CTAs fit");
  return std::clamp(wanted.ctas, 1U, static_cast<std::uint32_t>(std::max(1, sms * per_sm)));
}

void launch_together(const void* kernel, Shape shape, void** arguments) {
  check(cudaLaunchCooperativeKernel(kernel, dim3(shape.ctas), dim3(shape.threads), arguments, 0,
                                    nullptr),
        "launching a kernel");
}

void check_launch() {
  check(cudaGetLastError(), "launching a kernel");
}

template <typename T>
void fill(void* buffer, std::size_t blocks, std::size_t count, int me, bool is_product) {
  fill_kernel<<<kFillCtas, kFillThreads>>>(static_cast<T*>(buffer), blocks, count, me, is_product);
  check_launch();
}

void poison(void* buffer, std::size_t bytes) {
  check(cudaMemset(buffer, 0xff, bytes), "filling memory of the GPU");
}

template <typename T>
std::uint64_t count_wrong(const void* buffer,
                          std::size_t blocks,
                          std::size_t count,
                          const Expected& expected) {
  static auto* const kWrong = static_cast<unsigned long long*>(once(sizeof(unsigned long long)));
  check(cudaMemset(kWrong, 0, sizeof *kWrong), "clearing memory of the GPU");
  check_kernel<<<kFillCtas, kFillThreads>>>(static_cast<const T*>(buffer), blocks, count, expected,
                                            kWrong);
  check_launch();
  return read_word(kWrong);
}

template void fill<std::uint8_t>(void*, std::size_t, std::size_t, int, bool);
template void fill<std::uint32_t>(void*, std::size_t, std::size_t, int, bool);
template void fill<std::uint64_t>(void*, std::size_t, std::size_t, int, bool);
template void fill<float>(void*, std::size_t, std::size_t, int, bool);
template void fill<double>(void*, std::size_t, std::size_t, int, bool);
template std::uint64_t count_wrong<std::uint8_t>(const void*,
                                                 std::size_t,
                                                 std::size_t,
                                                 const Expected&);
template std::uint64_t count_wrong<std::uint32_t>(const void*,
                                                  std::size_t,
                                                  std::size_t,
                                                  const Expected&);
template std::uint64_t count_wrong<std::uint64_t>(const void*,
                                                  std::size_t,
                                                  std::size_t,
                                                  const Expected&);
template std::uint64_t count_wrong<float>(const void*, std::size_t, std::size_t, const Expected&);
template std::uint64_t count_wrong<double>(const void*, std::size_t, std::size_t, const Expected&);

void prepare_bytes(const Session& session, std::size_t bytes) {
  fill<std::uint8_t>(session.source(), 1, bytes, session.me());
  poison(session.dest(), bytes);
  Session::barrier();
}

void take_gpu(int index) {
  // What goes wrong here is said better by weft_device_init.
  static_cast<void>(cudaSetDevice(index));
  static_cast<void>(cudaGetLastError());
}

std::string name_of_gpu() {
  int gpu = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&gpu), "asking for the current GPU");
  check(cudaGetDeviceProperties(&properties, gpu), "asking what the GPU is");
  return properties.name;
}

void wait_for_gpu() {
  check(cudaDeviceSynchronize(), "a kernel");
}

}  // namespace weft::perf::gpu
