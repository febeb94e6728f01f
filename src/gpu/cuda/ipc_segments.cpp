#include "src/gpu/cuda/ipc_segments.hpp"

#include <cstring>
#include <vector>

#include <unistd.h>

#include "src/base/units.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

class IpcSegments final : public Segments {
 public:
  IpcSegments(const Device& device, const SegmentPlan& plan) : plan_(plan) {
    void* memory = nullptr;
    if (const cudaError_t error = cudaMalloc(&memory, plan.bytes); error != cudaSuccess) {
      fail_allocation(device, plan, words(error));
    }
    base_ = static_cast<std::byte*>(memory);
    clear(base_, plan.bytes);
  }

  ~IpcSegments() override {
    for (void* peer : opened_) {
      cudaIpcCloseMemHandle(peer);
    }
    cudaFree(base_);
  }

  [[nodiscard]] std::byte* base() const override { return base_; }

  [[nodiscard]] std::uint64_t size() const override { return plan_.bytes; }

  [[nodiscard]] std::uint64_t stride() const override { return 0; }

  [[nodiscard]] DeviceSegmentOffer offer() const override {
    DeviceSegmentOffer offer{.kind = HandleKind::Ipc, .pid = ::getpid(), .bytes = plan_.bytes};
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof(handle) == sizeof(offer.handle));
    check(cudaIpcGetMemHandle(&handle, base_), "exporting the device heap as an IPC handle");
    std::memcpy(offer.handle.data(), &handle, sizeof(handle));
    return offer;
  }

  std::byte* map(std::uint32_t /*slot*/,
                 const DeviceSegmentOffer& offer,
                 std::string_view whose) override {
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, offer.handle.data(), sizeof(handle));
    void* memory = nullptr;
    check(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess),
          fmt::format("mapping the device heap of {} (where peer-to-peer is missing or forbidden, "
                      "set WEFT_NODE_SIZE=1 and the PEs use the rails)",
                      whose),
          Status::InvalidArgument);
    opened_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  void close_offer() override {}

  DeviceSegmentOffer add_part(const SegmentPart& part) override {
    fail("cudaMalloc gives no memory at a chosen address ({} bytes at {})", part.bytes,
         part.offset);
  }

  DeviceSegmentOffer adopt_part(const SegmentPart& /*part*/, std::byte* memory) override {
    fail("cudaMalloc's heap maps no memory of the program ({})", static_cast<void*>(memory));
  }

  void map_part(std::uint32_t /*slot*/,
                const SegmentPart& part,
                const DeviceSegmentOffer& /*offer*/,
                std::string_view whose) override {
    fail("IPC handles map no memory of {} at a chosen address ({})", whose, part.offset);
  }

  void drop_part(const SegmentPart& /*part*/) noexcept override {}

 private:
  SegmentPlan plan_;
  std::byte* base_ = nullptr;
  std::vector<void*> opened_;
};

}  // namespace

std::string memory_words(const Device& device) {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free_bytes, &total);
  return fmt::format("GPU {} ({}), of whose {} {} are free", device.index, device.name,
                     format_bytes(total), format_bytes(free_bytes));
}

void fail_allocation(const Device& device, const SegmentPlan& plan, std::string_view why) {
  fail(Status::OutOfMemory,
       "WEFT_DEVICE_HEAP_SIZE: {}, and {} for Weft itself, do not fit onto {}: {}; lower it",
       format_bytes(plan.bytes - plan.own_bytes), format_bytes(plan.own_bytes),
       memory_words(device), why);
}

std::unique_ptr<Segments> make_ipc_segments(const Device& device, const SegmentPlan& plan) {
  return std::make_unique<IpcSegments>(device, plan);
}

}  // namespace weft::gpu
