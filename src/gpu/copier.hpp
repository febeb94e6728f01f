// Copies between pinned host memory and device memory by the GPU's copy engines, on two streams of their own
// (one for each direction), which no kernel of the program delays.
//
// Copies of one direction end in the order in which they were started.
//
// Threads: one at a time. Errors: a failed copy is never done, and has_failed says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/gpu/device.hpp"

namespace weft::gpu {

enum class Direction : std::uint8_t { ToDevice, FromDevice };

class Copier {
 public:
  // Makes its streams on `device`.
  explicit Copier(const Device& device);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier();

  // Numbers of a direction count from 1.
  [[nodiscard]] std::uint64_t start(Direction direction,
                                    void* dest,
                                    const void* source,
                                    std::size_t bytes) noexcept;
  [[nodiscard]] bool is_done(Direction direction, std::uint64_t number) noexcept;
  [[nodiscard]] bool has_failed() const noexcept;

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

}  // namespace weft::gpu
