// The proxy's interface to its GPU, implemented with CUDA: copies by the copy engines, and the
// kernel that applies the inbox when no thread of the GPU waits.
//
// Threads: the proxy's.
#pragma once

#include <functional>
#include <utility>

#include "src/base/error.hpp"
#include "src/gpu/applier.hpp"
#include "src/gpu/copier.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/proxy/copier.hpp"

namespace weft::proxy {

class GpuCopier final : public Copier {
 public:
  GpuCopier(const gpu::Device& device, std::function<bool(const void* address)> is_heap)
      : device_(device), copier_(device, std::move(is_heap)) {}

  Ticket copy(CopyDirection direction,
              void* dest,
              const void* source,
              std::size_t bytes) noexcept override {
    return copier_.start(direction, dest, source, bytes);
  }

  [[nodiscard]] bool is_done(CopyDirection direction, Ticket ticket) noexcept override {
    return copier_.is_done(direction, ticket);
  }

  [[nodiscard]] const std::string* failure() const noexcept override { return copier_.failure(); }

  void show_nic_writes() noexcept override {
    // If this fails, kernels might see a signal before its data, without any means to detect it.
    WEFT_CHECK(gpu::show_nic_writes(device_), "GPU {} did not flush what NICs wrote",
               device_.index);
  }

 private:
  gpu::Device device_;
  gpu::Copier copier_;
};

class GpuApplier final : public Applier {
 public:
  explicit GpuApplier(const gpu::Device& device) : applier_(device) {}

  void wake_applier() noexcept override { applier_.wake(); }

 private:
  gpu::Applier applier_;
};

}  // namespace weft::proxy
