// Copies between pinned host memory and device memory by the GPU's copy engines, on two dedicated streams (one per
// direction), which no kernel of the program delays.
//
// Copies of one direction complete in the order in which they were started.
//
// Threads: one at a time. Errors: a failed copy never completes, nor do those after it; failure() says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/gpu/device.hpp"

namespace weft::gpu {

enum class Direction : std::uint8_t { ToGpu, FromGpu };

class Copier {
 public:
  // Creates its streams on `device`.
  explicit Copier(const Device& device);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier();

  // Returns the copy's number; the numbers of a direction start at 1.
  [[nodiscard]] std::uint64_t start(Direction direction,
                                    void* dest,
                                    const void* source,
                                    std::size_t bytes) noexcept;
  [[nodiscard]] bool is_done(Direction direction, std::uint64_t number) noexcept;
  // Null if none has failed. What was copied, and CUDA's words.
  [[nodiscard]] const std::string* failure() const noexcept;

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

}  // namespace weft::gpu
