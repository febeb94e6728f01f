// gdrcopy: a library and a kernel module that map memory of a GPU into the CPU's address space. The
// library is opened when it is asked for, by its name; Weft is built without its headers.
//
// Threads: making and destroying by one at a time; the mapped memory by any.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "src/gpu/device.hpp"
#include "src/gpu/word_memory.hpp"

namespace weft::gpu {

class Gdrcopy : public std::enable_shared_from_this<Gdrcopy> {
 public:
  // Throws Error if there is no such library, or its kernel module is not loaded.
  [[nodiscard]] static std::shared_ptr<Gdrcopy> open(const std::string& library = "libgdrapi.so.2");
  Gdrcopy(const Gdrcopy&) = delete;
  Gdrcopy& operator=(const Gdrcopy&) = delete;
  ~Gdrcopy();

  // Memory of `device`, which must outlive the result. Throws Error if it cannot be mapped.
  [[nodiscard]] std::unique_ptr<WordMemory> map(const Device& device, std::span<std::byte> memory);

 private:
  struct Functions;
  class Mapping;

  Gdrcopy();

  std::unique_ptr<Functions> functions_;
};

}  // namespace weft::gpu
