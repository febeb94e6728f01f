// Stand-ins for the CUDA part of libnvshmem_host in a build without CUDA. Symmetric memory is then
// host memory (NVSHMEM_HEAP_KIND=SYSMEM), and none of these functions is called.
#include "src/nvshmem/gpu.hpp"

namespace weft::nvshmem::gpu {
namespace {

constexpr int kNoCuda = 999;

}  // namespace

bool is_built() {
  return false;
}

std::string words_of(int /*error*/) {
  return "this library was built without CUDA";
}

bool is_chosen() {
  return false;
}

void choose() {}

int load_kernels() {
  return kNoCuda;
}

int make_stream(cudaStream_t* /*stream*/) {
  return kNoCuda;
}

void drop_stream(cudaStream_t /*stream*/) {}

int wait_for(cudaStream_t /*stream*/) {
  return kNoCuda;
}

int put_value(void* /*dest*/,
              const void* /*value*/,
              std::size_t /*bytes*/,
              int /*pe*/,
              cudaStream_t /*stream*/) {
  return kNoCuda;
}

int get_value(void* /*value*/,
              const void* /*source*/,
              std::size_t /*bytes*/,
              int /*pe*/,
              cudaStream_t /*stream*/) {
  return kNoCuda;
}

int iput(void* /*dest*/,
         const void* /*source*/,
         const Strided& /*strided*/,
         int /*pe*/,
         cudaStream_t /*stream*/) {
  return kNoCuda;
}

int iget(void* /*dest*/,
         const void* /*source*/,
         const Strided& /*strided*/,
         int /*pe*/,
         cudaStream_t /*stream*/) {
  return kNoCuda;
}

int wait(const Wait& /*wait*/, cudaStream_t /*stream*/) {
  return kNoCuda;
}

int reduce(const Reduction& /*reduction*/, cudaStream_t /*stream*/) {
  return kNoCuda;
}

int pin(void* /*address*/, std::size_t /*bytes*/) {
  return 0;
}

void unpin(void* /*address*/) {}

bool is_gpu_memory(const void* /*address*/) {
  return false;
}

ModuleResult upload_state(CUmodule /*module*/) {
  return {.error = kNoCuda};
}

ModuleResult upload_state(CUlibrary /*library*/) {
  return {.error = kNoCuda};
}

}  // namespace weft::nvshmem::gpu
