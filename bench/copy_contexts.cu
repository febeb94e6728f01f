// Copies while a kernel runs and waits for them: do they begin while the main thread is in a CUDA call, by the program's
// context and by a second one? And how long do copies to the GPU take beside a kernel? One JSON line for each.
//
//   nvcc -std=c++17 -arch=sm_90 bench/copy_contexts.cu -o copy_contexts -lcuda && ./copy_contexts
//
// The kernel ends by itself after 1.5 s. A thread starts the copy that ends it after 0.2 s.
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

constexpr std::size_t kBytes = 64 << 20;
constexpr unsigned long long kKernelNsMax = 1'500'000'000;
constexpr std::chrono::milliseconds kBefore{200};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

template <typename Error>
void require(Error error, const char* what) {
  if (static_cast<int>(error) != 0) {
    std::fprintf(stderr, "copy_contexts: %s: error %d\n", what, static_cast<int>(error));
    std::exit(1);
  }
}

__global__ void wait_for(volatile unsigned* word) {
  unsigned long long begin_ns = 0;
  unsigned long long now_ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
  } while (*word == 0 && now_ns - begin_ns < kKernelNsMax);
}

__global__ void launched_often() {}

template <int kNumber>
__global__ void launched_first(float* x) {
  x[threadIdx.x] = __sinf(x[threadIdx.x]) * kNumber;
}

struct Memory {
  CUdeviceptr mapped = 0;    // by cuMemMap
  void* plain = nullptr;     // by cudaMalloc
  unsigned* host = nullptr;  // pinned
};

struct Contexts {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUstream copies[2]{};  // by context
  cudaStream_t kernels = nullptr;
};

CUdeviceptr map_memory() {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address = 0;
  require(cuMemCreate(&handle, kBytes, &property, 0), "cuMemCreate");
  require(cuMemAddressReserve(&address, kBytes, 0, 0, 0), "cuMemAddressReserve");
  require(cuMemMap(address, kBytes, 0, handle, 0), "cuMemMap");
  require(cuMemSetAccess(address, kBytes, &access, 1), "cuMemSetAccess");
  return address;
}

Contexts make_contexts() {
  Contexts made;
  require(cudaFree(nullptr), "the first context");
  require(cuCtxGetCurrent(&made.first), "cuCtxGetCurrent");
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t without_stacks = 0;
  std::size_t total = 0;
  require(cuMemGetInfo(&before, &total), "cuMemGetInfo");
#if CUDA_VERSION >= 13000
  require(cuCtxCreate(&made.second, nullptr, 0, 0), "cuCtxCreate");
#else
  require(cuCtxCreate(&made.second, 0, 0), "cuCtxCreate");
#endif
  require(cuMemGetInfo(&after, &total), "cuMemGetInfo");
  require(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 0), "cuCtxSetLimit");
  require(cuMemGetInfo(&without_stacks, &total), "cuMemGetInfo");
  std::printf("{\"second context, MiB\": %.1f, \"without stacks\": %.1f}\n",
              static_cast<double>(before - after) / (1 << 20),
              static_cast<double>(before - without_stacks) / (1 << 20));
  for (int i = 0; i < 2; ++i) {
    require(cuCtxSetCurrent(i == 0 ? made.first : made.second), "cuCtxSetCurrent");
    require(cuStreamCreate(&made.copies[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  require(cuCtxSetCurrent(made.first), "cuCtxSetCurrent");
  require(cudaStreamCreateWithFlags(&made.kernels, cudaStreamNonBlocking), "a stream");
  return made;
}

using Late = void (*)(float*);
const Late kLate[] = {launched_first<1>, launched_first<2>, launched_first<3>, launched_first<4>};

// What the main thread does meanwhile, with memory of its own and the stream of the kernel that waits.
using Call = void (*)(float* own, cudaStream_t kernels);
const std::pair<const char*, Call> kCalls[] = {
    {"nothing", [](float*, cudaStream_t) {}},
    {"3000 launches",
     [](float*, cudaStream_t kernels) {
       for (int i = 0; i < 3000; ++i) {
         launched_often<<<1, 1, 0, kernels>>>();
       }
     }},
    {"the first launch of a kernel",
     [](float* own, cudaStream_t kernels) {
       static std::size_t next = 0;
       kLate[next++]<<<1, 32, 0, kernels>>>(own);
     }},
    {"cudaMalloc and cudaFree",
     [](float*, cudaStream_t) {
       void* memory = nullptr;
       require(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
       require(cudaFree(memory), "cudaFree");
     }},
    {"cudaMemcpy to pageable memory, in the kernel's stream",
     [](float* own, cudaStream_t kernels) {
       std::vector<char> here(1 << 20);
       require(cudaMemcpyAsync(here.data(), own, here.size(), cudaMemcpyDeviceToHost, kernels),
               "cudaMemcpyAsync");
       require(cudaStreamSynchronize(kernels), "cudaStreamSynchronize");
     }},
    {"cudaStreamSynchronize",
     [](float*, cudaStream_t kernels) {
       require(cudaStreamSynchronize(kernels), "cudaStreamSynchronize");
     }},
};

void measure_begin(const Contexts& contexts, const Memory& memory) {
  auto* own = reinterpret_cast<float*>(static_cast<char*>(memory.plain) + kBytes / 2);
  for (const auto& [name, call] : kCalls) {
    for (int context = 0; context < 2; ++context) {
      for (const bool is_mapped : {true, false}) {
        const CUdeviceptr word =
            is_mapped ? memory.mapped : reinterpret_cast<CUdeviceptr>(memory.plain);
        *memory.host = 1;
        require(cuMemsetD32(word, 0, 1), "cuMemsetD32");
        require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        wait_for<<<1, 32, 0, contexts.kernels>>>(reinterpret_cast<unsigned*>(word));
        double copy_ms = 0;
        std::thread copier([&] {
          std::this_thread::sleep_for(kBefore);
          const Clock::time_point begin = Clock::now();
          require(cuCtxSetCurrent(context == 0 ? contexts.first : contexts.second), "a context");
          require(cuMemcpyAsync(word, reinterpret_cast<CUdeviceptr>(memory.host), 4,
                                contexts.copies[context]),
                  "cuMemcpyAsync");
          require(cuStreamSynchronize(contexts.copies[context]), "cuStreamSynchronize");
          copy_ms = ms_since(begin);
        });
        call(own, contexts.kernels);
        copier.join();
        require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        std::printf(
            "{\"main thread\": \"%s\", \"context\": \"%s\", \"memory\": \"%s\", \"copy_ms\": "
            "%.3f}\n",
            name, context == 0 ? "first" : "second", is_mapped ? "cuMemMap" : "cudaMalloc",
            copy_ms);
      }
    }
  }
}

CUresult copy_rows(CUdeviceptr dest, const void* source, std::size_t bytes, CUstream stream) {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = source;
  rows.srcPitch = bytes / 2;
  rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.dstDevice = dest;
  rows.dstPitch = bytes / 2;
  rows.WidthInBytes = bytes / 2;
  rows.Height = 2;
  return cuMemcpy2DAsync(&rows, stream);
}

void measure_time(const Contexts& contexts, const Memory& memory) {
  constexpr int kCopies = 41;
  const CUdeviceptr dest = memory.mapped + 4096;
  const unsigned* source = memory.host + 1024;
  for (int context = 0; context < 2; ++context) {
    for (const bool are_rows : {false, true}) {
      for (std::size_t bytes = 16; bytes <= 128 << 10; bytes *= 2) {
        require(cuMemsetD32(memory.mapped, 0, 1), "cuMemsetD32");
        require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        wait_for<<<132, 256, 0, contexts.kernels>>>(reinterpret_cast<unsigned*>(memory.mapped));
        require(cuCtxSetCurrent(context == 0 ? contexts.first : contexts.second), "a context");
        const CUstream stream = contexts.copies[context];
        std::vector<double> us;
        for (int i = 0; i < kCopies; ++i) {
          const Clock::time_point begin = Clock::now();
          require(are_rows
                      ? copy_rows(dest, source, bytes, stream)
                      : cuMemcpyAsync(dest, reinterpret_cast<CUdeviceptr>(source), bytes, stream),
                  "a copy");
          require(cuStreamSynchronize(stream), "cuStreamSynchronize");
          us.push_back(ms_since(begin) * 1000);
        }
        require(cuCtxSetCurrent(contexts.first), "the first context");
        require(cuMemcpyAsync(memory.mapped, reinterpret_cast<CUdeviceptr>(memory.host), 4,
                              contexts.copies[0]),
                "the end");
        require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        std::sort(us.begin(), us.end());
        std::printf(
            "{\"copy\": \"%s\", \"context\": \"%s\", \"bytes\": %zu, \"us_p50\": %.2f, \"us_p90\": "
            "%.2f}\n",
            are_rows ? "two rows" : "plain", context == 0 ? "first" : "second", bytes,
            us[kCopies / 2], us[kCopies * 9 / 10]);
      }
    }
  }
}

}  // namespace

int main() {
  require(cuInit(0), "cuInit");
  const Contexts contexts = make_contexts();
  Memory memory;
  memory.mapped = map_memory();
  require(cudaMalloc(&memory.plain, kBytes), "cudaMalloc");
  require(cudaMallocHost(&memory.host, kBytes), "cudaMallocHost");
  launched_often<<<1, 1, 0, contexts.kernels>>>();
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  measure_begin(contexts, memory);
  measure_time(contexts, memory);
}
