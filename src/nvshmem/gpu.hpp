// What libnvshmem_host needs of CUDA besides Weft's functions on a stream: contexts, streams, and
// kernels for what these functions lack. Implemented by gpu/context.cpp, gpu/kernels.cu and
// gpu/reductions.cpp, and in a build without CUDA by gpu/none.cpp.
//
// Threads: as calls.hpp.
// Errors: CUDA's as a number, 0 for none; words_of names it.
#pragma once

#include <cstddef>
#include <string>

#include <weft_nvshmem/types.h>

#include "src/nvshmem/calls.hpp"

namespace weft::nvshmem::gpu {

// Whether this library was built with CUDA.
[[nodiscard]] bool is_built();
[[nodiscard]] std::string words_of(int error);

// Whether the program has chosen a GPU: the calling thread has a CUDA context.
[[nodiscard]] bool is_chosen();
// Makes the context of the current GPU current; what is wrong with it, weft_device_init says.
void choose();
// Otherwise CUDA loads a kernel at its first launch, and that may wait for kernels that wait for
// this PE.
[[nodiscard]] int load_kernels();

// One that does not wait for the default stream.
[[nodiscard]] int make_stream(cudaStream_t* stream);
void drop_stream(cudaStream_t stream);
[[nodiscard]] int wait_for(cudaStream_t stream);

// `value` is host memory and is read before the call returns.
[[nodiscard]] int put_value(
    void* dest, const void* value, std::size_t bytes, int pe, cudaStream_t stream);
// Waits for the stream.
[[nodiscard]] int get_value(
    void* value, const void* source, std::size_t bytes, int pe, cudaStream_t stream);
[[nodiscard]] int iput(
    void* dest, const void* source, const Strided& strided, int pe, cudaStream_t stream);
[[nodiscard]] int iget(
    void* dest, const void* source, const Strided& strided, int pe, cudaStream_t stream);
// `wait.values` of one value is host memory, and is read before the call returns.
[[nodiscard]] int wait(const Wait& wait, cudaStream_t stream);

// Those that weft_team_reduce_on_stream does not have: elements of 1 and 2 bytes. `team` is its
// number in kernels.
[[nodiscard]] int reduce(const Reduction& reduction, cudaStream_t stream);

// Host memory for kernels; only of memory that is not GPU memory.
[[nodiscard]] int pin(void* address, std::size_t bytes);
void unpin(void* address);
[[nodiscard]] bool is_gpu_memory(const void* address);

// Copies Weft's state to the module's variable. `is_there` says whether it has one.
struct ModuleResult {
  int error = 0;
  bool is_there = false;
};

[[nodiscard]] ModuleResult upload_state(CUmodule module);
[[nodiscard]] ModuleResult upload_state(CUlibrary library);

}  // namespace weft::nvshmem::gpu
