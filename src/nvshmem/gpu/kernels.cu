// Kernels for NVSHMEM's functions on a stream that weft/device.h does not have: p, g, iput, iget,
// and waits for words of 16, 32 and 64 bits.
#include <weft/device.cuh>

#include <weft_nvshmem/core.cuh>

#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/gpu/kernels.hpp"

namespace weft::nvshmem::gpu {
namespace {

namespace ours = ::weft_nvshmem;

constexpr int kThreads = 256;

// Makes the kernel's puts complete when the kernel ends: those to a peer of another node need a
// quiet.
__device__ void finish(const void* dest, int pe) {
  if (device::ptr(static_cast<const char*>(dest), pe) == nullptr) {
    device::quiet();
  }
}

template <typename Word>
__global__ void put_kernel(Word* dest, Word value, int pe) {
  ours::p(dest, value, pe);
  finish(dest, pe);
}

template <typename Word>
__global__ void get_kernel(Word* page, const Word* source, int pe) {
  *page = ours::g(source, pe);
}

__global__ void __launch_bounds__(kThreads, 1)
    iput_kernel(void* dest, const void* source, ours::Strided strided, int pe) {
  ours::BlockRma::iput(dest, source, strided, pe);
}

__global__ void __launch_bounds__(kThreads, 1)
    iget_kernel(void* dest, const void* source, ours::Strided strided, int pe) {
  ours::BlockRma::iget(dest, source, strided, pe);
}

template <typename Word>
__global__ void wait_kernel(ours::WaitSet<Word> set, Word value, const Word* values) {
  if (values == nullptr) {
    ours::wait_until_all(set, value);
  } else {
    ours::wait_until_all(set, values);
  }
}

int launched() {
  return cudaGetLastError();
}

template <typename Word>
int put(void* dest, const void* value, int pe, cudaStream_t stream) {
  Word word{};
  memcpy(&word, value, sizeof word);
  put_kernel<<<1, 1, 0, stream>>>(static_cast<Word*>(dest), word, pe);
  return launched();
}

template <typename Word>
int get(void* page, const void* source, int pe, cudaStream_t stream) {
  get_kernel<<<1, 1, 0, stream>>>(static_cast<Word*>(page), static_cast<const Word*>(source), pe);
  return launched();
}

template <typename Word>
int wait_for_words(const Wait& wait, cudaStream_t stream) {
  Word value{};
  const Word* values = nullptr;
  if (wait.is_vector) {
    values = static_cast<const Word*>(wait.values);
  } else {
    memcpy(&value, wait.values, sizeof value);
  }
  const ours::WaitSet<Word> set{static_cast<const Word*>(wait.words), wait.count, wait.status,
                                wait.cmp};
  wait_kernel<<<1, 1, 0, stream>>>(set, value, values);
  return launched();
}

ours::Strided strides(const Strided& strided) {
  return {strided.dest, strided.source, strided.count, strided.element_bytes};
}

template <typename... Kernels>
int preload(Kernels... kernels) {
  int error = 0;
  const auto load = [&error](const void* kernel) {
    cudaFuncAttributes attributes{};
    const int result = cudaFuncGetAttributes(&attributes, kernel);
    error = error == 0 ? result : error;
  };
  (load(reinterpret_cast<const void*>(kernels)), ...);
  return error;
}

template <typename... Words>
int preload_values() {
  return preload(&put_kernel<Words>..., &get_kernel<Words>...);
}

template <typename... Words>
int preload_waits() {
  return preload(&wait_kernel<Words>...);
}

}  // namespace

int put_value(void* dest, const void* value, std::size_t bytes, int pe, cudaStream_t stream) {
  switch (bytes) {
    case 1:
      return put<std::uint8_t>(dest, value, pe, stream);
    case 2:
      return put<std::uint16_t>(dest, value, pe, stream);
    case 4:
      return put<std::uint32_t>(dest, value, pe, stream);
    default:
      return put<std::uint64_t>(dest, value, pe, stream);
  }
}

int enqueue_get_value(
    void* page, const void* source, std::size_t bytes, int pe, cudaStream_t stream) {
  switch (bytes) {
    case 1:
      return get<std::uint8_t>(page, source, pe, stream);
    case 2:
      return get<std::uint16_t>(page, source, pe, stream);
    case 4:
      return get<std::uint32_t>(page, source, pe, stream);
    default:
      return get<std::uint64_t>(page, source, pe, stream);
  }
}

int iput(void* dest, const void* source, const Strided& strided, int pe, cudaStream_t stream) {
  iput_kernel<<<1, kThreads, 0, stream>>>(dest, source, strides(strided), pe);
  return launched();
}

int iget(void* dest, const void* source, const Strided& strided, int pe, cudaStream_t stream) {
  iget_kernel<<<1, kThreads, 0, stream>>>(dest, source, strides(strided), pe);
  return launched();
}

int wait(const Wait& wait, cudaStream_t stream) {
  switch (wait.element) {
    case Element::Int16:
      return wait_for_words<std::int16_t>(wait, stream);
    case Element::Uint16:
      return wait_for_words<std::uint16_t>(wait, stream);
    case Element::Int32:
      return wait_for_words<std::int32_t>(wait, stream);
    case Element::Uint32:
      return wait_for_words<std::uint32_t>(wait, stream);
    case Element::Int64:
      return wait_for_words<std::int64_t>(wait, stream);
    default:
      return wait_for_words<std::uint64_t>(wait, stream);
  }
}

int load_kernels() {
  int error = preload(&iput_kernel, &iget_kernel);
  error = error != 0 ? error
                     : preload_values<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>();
  error = error != 0 ? error
                     : preload_waits<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                     std::int64_t, std::uint64_t>();
  return error != 0 ? error : load_reductions();
}

}  // namespace weft::nvshmem::gpu
