// The GPU that this PE has opened: its properties, and whether Weft can use it. No header of this
// folder exposes a CUDA type, so everything above compiles identically with and without CUDA.
// gpu/cuda implements it; gpu/none reports that there is no GPU.
//
// Threads: any. Errors: Error, one message with CUDA's error text and what to do.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::gpu {

// GPUs by what their kernels see of what a NIC has written to one of them: none, that one, and all.
enum class Seers : std::uint8_t { Nobody, Owner, AllGpus };

struct Device {
  std::int32_t index = -1;  // CUDA's index among the GPUs visible to this process
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::string pci;  // "0000:1b:00.0"
  std::uint64_t bytes = 0;
  std::int32_t driver_version = 0;  // CUDA's encoding: 13000 is 13.0
  bool has_posix_handles = false;   // memory whose handle is a file descriptor
  bool has_fabric_handles =
      false;                 // memory whose handle other nodes of an NVLink domain may import
  bool has_rdma = false;     // NICs may read and write its memory
  bool has_dma_buf = false;  // and can register it as a dma-buf
  Seers nic_writes_seen_by = Seers::Nobody;  // without a flush
  Seers nic_writes_read_by = Seers::Owner;   // AllGpus where others of the node map its memory
};

// The calling thread's current device. Throws if there is none, or if the driver is older than
// 12.4.
[[nodiscard]] Device current_device();

// The number of GPUs that this process sees. Throws as current_device does.
[[nodiscard]] std::int32_t device_count();

// The GPU with CUDA's index `index`; creates no context on it. Throws if there is no such GPU.
[[nodiscard]] Device describe_device(std::int32_t index);

// False if libweft was built without CUDA.
[[nodiscard]] bool is_built_in();

// Makes `device` current in the calling thread. Throws.
void use_device(const Device& device);
// The same for hot paths: calls CUDA only the first time in each thread.
void use_device_once(const Device& device) noexcept;

// While a thread of the process captures a CUDA graph in CUDA's default mode, CUDA refuses
// "potentially unsafe" calls of all threads (a query of an event, an allocation), and the refused
// call also makes the capture fail: CUDA Runtime API, "Stream Management",
// cudaThreadExchangeStreamCaptureMode. After this, calls of the calling thread do neither. For
// threads of our own; call it before any other CUDA call of the thread.
void ignore_captures() noexcept;

// While it lives, our CUDA calls on a thread of the program are exempt in the same way. At its end
// the thread has the program's mode and the program's current context again: that may be one that
// is no device's own, as of a green context.
class BorrowedThread {
 public:
  BorrowedThread() noexcept;
  BorrowedThread(const BorrowedThread&) = delete;
  BorrowedThread& operator=(const BorrowedThread&) = delete;
  ~BorrowedThread();

 private:
  void* context_ = nullptr;  // a CUcontext; null: the thread had none
  int mode_ = -1;            // a CUstreamCaptureMode; -1: there is no driver
};

// Whether `address` is GPU memory. False also without CUDA.
[[nodiscard]] bool is_device_memory(const void* address);
// Also managed memory, and memory of the host that CUDA has registered: what kernels may read and
// write there.
[[nodiscard]] bool is_reached_by_kernels(const void* address);

}  // namespace weft::gpu
