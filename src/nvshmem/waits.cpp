// wait and wait_until on streams. With symmetric host memory (SYSMEM) the calling thread waits, and
// the stream is ignored. See calls.hpp.
#include <weft/weft.h>

#include <cstring>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

template <typename T>
bool compare(T seen, int cmp, T value) {
  switch (cmp) {
    case NVSHMEM_CMP_EQ:
      return seen == value;
    case NVSHMEM_CMP_NE:
      return seen != value;
    case NVSHMEM_CMP_GT:
      return seen > value;
    case NVSHMEM_CMP_LE:
      return seen <= value;
    case NVSHMEM_CMP_LT:
      return seen < value;
    default:
      return seen >= value;
  }
}

// Polls with a get from this PE itself, which reads the word in the way in which peers write it,
// and makes progress between polls.
template <typename T>
int wait_here(const Wait& wait) {
  const auto* words = static_cast<const T*>(wait.words);
  const auto* values = static_cast<const T*>(wait.values);
  for (std::size_t i = 0; i < wait.count; ++i) {
    if (wait.status != nullptr && wait.status[i] != 0) {
      continue;
    }
    const T value = values[wait.is_vector ? i : 0];
    T seen{};
    do {
      if (const int status = weft_get(&seen, words + i, sizeof(T), weft_pe()); status != WEFT_OK) {
        return status;
      }
      weft_progress();
    } while (!compare(seen, wait.cmp, value));
  }
  return WEFT_OK;
}

int wait_on_host(const Wait& wait) {
  switch (wait.element) {
    case Element::Int16:
      return wait_here<std::int16_t>(wait);
    case Element::Uint16:
      return wait_here<std::uint16_t>(wait);
    case Element::Int32:
      return wait_here<std::int32_t>(wait);
    case Element::Uint32:
      return wait_here<std::uint32_t>(wait);
    case Element::Int64:
      return wait_here<std::int64_t>(wait);
    default:
      return wait_here<std::uint64_t>(wait);
  }
}

}  // namespace

void wait(const Call& call, const Wait& wait) {
  require_memory(call);
  must(call, job().is_on_host ? wait_on_host(wait) : on_gpu(call, [&](cudaStream_t stream) {
         return from_cuda(call, gpu::wait(wait, stream));
       }));
}

}  // namespace weft::nvshmem
