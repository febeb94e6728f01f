// How long does a flush of what NICs have written to a GPU take (cuFlushGPUDirectRDMAWrites), also while a kernel runs and the main
// thread is in a CUDA call that waits for it, in the program's context and in a second one? One JSON line for each.
//
//   nvcc -std=c++17 -arch=sm_90 bench/nic_flushes.cu -o nic_flushes -lcuda && ./nic_flushes
//
// The kernel ends by itself after 1.5 s. A thread flushes after 0.2 s. No NIC is needed.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <typename Error>
void require(Error error, const char* what) {
  if (static_cast<int>(error) != 0) {
    std::fprintf(stderr, "nic_flushes: %s: error %d\n", what, static_cast<int>(error));
    std::exit(1);
  }
}

__global__ void run_for_a_while() {
  constexpr unsigned long long kNs = 1'500'000'000;
  unsigned long long begin_ns = 0;
  unsigned long long now_ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
  } while (now_ns - begin_ns < kNs);
}

template <int kNumber>
__global__ void launched_first(float* x) {
  x[threadIdx.x] = __sinf(x[threadIdx.x]) * kNumber;
}

using Late = void (*)(float*);
const Late kLate[] = {launched_first<1>, launched_first<2>, launched_first<3>, launched_first<4>};

using Call = void (*)(float* own);
const std::pair<const char*, Call> kCalls[] = {
    {"nothing", [](float*) {}},
    {"the first launch of a kernel",
     [](float* own) {
       static std::size_t next = 0;
       kLate[next++]<<<1, 32>>>(own);
     }},
    {"cudaMalloc and cudaFree",
     [](float*) {
       void* memory = nullptr;
       require(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
       require(cudaFree(memory), "cudaFree");
     }},
    {"cudaMemcpy to pageable memory",
     [](float* own) {
       std::vector<char> here(1 << 20);
       require(cudaMemcpy(here.data(), own, here.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
     }},
    {"cudaDeviceSynchronize",
     [](float*) { require(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }},
};

struct Contexts {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
};

Contexts make_contexts() {
  Contexts made;
  require(cudaFree(nullptr), "the first context");
  require(cuCtxGetCurrent(&made.first), "cuCtxGetCurrent");
#if CUDA_VERSION >= 13000
  require(cuCtxCreate(&made.second, nullptr, 0, 0), "cuCtxCreate");
#else
  require(cuCtxCreate(&made.second, 0, 0), "cuCtxCreate");
#endif
  require(cuCtxSetCurrent(made.first), "cuCtxSetCurrent");
  return made;
}

// The median of 101.
double flush_us(CUflushGPUDirectRDMAWritesScope scope) {
  std::vector<double> us;
  for (int i = 0; i < 101; ++i) {
    const Clock::time_point begin = Clock::now();
    require(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, scope),
            "cuFlushGPUDirectRDMAWrites");
    us.push_back(us_since(begin));
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

void measure(const Contexts& contexts, const char* name, Call call, bool is_first) {
  float* own = nullptr;
  require(cudaMalloc(&own, 1 << 20), "cudaMalloc");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  run_for_a_while<<<1, 1>>>();
  double first_us = 0;
  double owner_us = 0;
  double all_us = 0;
  std::thread flusher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    require(cuCtxSetCurrent(is_first ? contexts.first : contexts.second), "cuCtxSetCurrent");
    const Clock::time_point begin = Clock::now();
    flush_us(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
    first_us = us_since(begin) / 101;
    owner_us = flush_us(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
    all_us = flush_us(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
  });
  call(own);
  flusher.join();
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  require(cudaFree(own), "cudaFree");
  std::printf(
      "{\"main thread\": \"%s\", \"context\": \"%s\", \"to_all_us_mean_of_first_101\": %.2f, "
      "\"to_owner_us\": %.3f, \"to_all_us\": %.3f}\n",
      name, is_first ? "first" : "second", first_us, owner_us, all_us);
}

}  // namespace

int main() {
  require(cuInit(0), "cuInit");
  const Contexts contexts = make_contexts();
  int ordering = 0;
  require(cuDeviceGetAttribute(&ordering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0),
          "cuDeviceGetAttribute");
  std::printf("{\"GPU_DIRECT_RDMA_WRITES_ORDERING\": %d}\n", ordering);
  for (const auto& [name, call] : kCalls) {
    for (const bool is_first : {true, false}) {
      measure(contexts, name, call, is_first);
    }
  }
}
