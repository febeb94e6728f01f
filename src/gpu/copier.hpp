// Copies between pinned host memory and device memory by the GPU's copy engines, on two dedicated
// streams (one per direction) of a CUDA context of their own, which neither kernels nor CUDA calls
// of the program delay. Memory that was not mapped by cuMemMap is an exception: CUDA calls of the
// program may delay its copies.
//
// Copies of one direction complete in the order in which they were started.
//
// Threads: one at a time; each calls ignore_captures before. Errors: a failed copy never completes,
// nor do those after it; failure() says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/gpu/device.hpp"

namespace weft::gpu {

enum class CopyDirection : std::uint8_t { ToGpu, FromGpu };

class Copier {
 public:
  // Creates its context and streams on `device`. The context takes about 300 MiB there; without it
  // a warning is logged. `is_heap` says of an address whether it is mapped memory of the heap; of
  // others CUDA is asked, which may wait for kernels.
  explicit Copier(const Device& device, std::function<bool(const void* address)> is_heap = {});
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier();

  // Returns the copy's number; the numbers of a direction start at 1.
  [[nodiscard]] std::uint64_t start(CopyDirection direction,
                                    void* dest,
                                    const void* source,
                                    std::size_t bytes) noexcept;
  // To the GPU, in one piece however short: beside a kernel that runs it may take milliseconds.
  [[nodiscard]] std::uint64_t start_whole(void* dest,
                                          const void* source,
                                          std::size_t bytes) noexcept;
  [[nodiscard]] bool is_done(CopyDirection direction, std::uint64_t number) noexcept;
  // Null if none has failed. What was copied, and CUDA's words.
  [[nodiscard]] const std::string* failure() const noexcept;

 private:
  struct Streams;
  struct Request;

  std::uint64_t start(const Request& request) noexcept;

  std::unique_ptr<Streams> streams_;
};

}  // namespace weft::gpu
