#include "src/gpu/user_memory.hpp"

#include <algorithm>

#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

CUdeviceptr address_of(const std::byte* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

// False if CUDA does not know the address.
template <typename Value>
bool read(Value& value, CUpointer_attribute attribute, const std::byte* memory) {
  return driver().pointer_get_attribute(&value, attribute, address_of(memory)) == CUDA_SUCCESS;
}

// -1 if it is not memory of a GPU, or is managed.
std::int32_t gpu_of(const std::byte* memory) {
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
    cudaGetLastError();  // no driver: not an error of the program's
    return -1;
  }
  return found.type == cudaMemoryTypeDevice ? found.device : -1;
}

// The driver's queries need a current context, which a thread that has not used CUDA yet lacks.
void enter_context(std::int32_t gpu) {
  CUcontext current = nullptr;
  if (driver().ctx_get_current(&current) != CUDA_SUCCESS || current == nullptr) {
    check(cudaSetDevice(gpu), fmt::format("selecting GPU {}", gpu));
  }
}

// The end of the allocation or mapping around the address; the address itself if there is none.
const std::byte* end_around(const std::byte* memory) {
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  if (driver().mem_get_address_range(&start, &bytes, address_of(memory)) != CUDA_SUCCESS) {
    return memory;
  }
  return reinterpret_cast<const std::byte*>(start) + bytes;
}

}  // namespace

UserMemoryInfo find_user_memory(std::span<const std::byte> memory) {
  UserMemoryInfo found;
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory.data()) != cudaSuccess) {
    cudaGetLastError();
    return found;
  }
  if (attributes.type == cudaMemoryTypeManaged) {
    found.kind = UserMemoryKind::Managed;
  }
  if (attributes.type != cudaMemoryTypeDevice) {
    return found;
  }
  found.kind = UserMemoryKind::Gpu;
  found.gpu = attributes.device;
  enter_context(found.gpu);
  unsigned long long id = 0;
  static_cast<void>(read(id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory.data()));
  found.id = id;
  int admits = 0;
  found.admits_nics =
      !read(admits, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, memory.data()) || admits != 0;
  const std::byte* const end = memory.data() + memory.size();
  const std::byte* at = memory.data();
  while (at < end && gpu_of(at) == found.gpu) {
    const std::byte* next = end_around(at);
    if (next <= at) {
      break;
    }
    at = next;
  }
  found.bytes = static_cast<std::uint64_t>(std::min(at, end) - memory.data());
  return found;
}

}  // namespace weft::gpu
