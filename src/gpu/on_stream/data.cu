// put, get, signals and quiet on a stream.
#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {
namespace {

// From this size on a copy engine transfers data to or from a mapped peer. It takes no SM from the
// program's kernels and has higher NVLink throughput (397 against 371 GB/s on an H200), but starts
// some microseconds later: it is ahead from about 24 MiB on (docs/PERFORMANCE.md).
constexpr std::size_t kCopyEngineBytesMin = std::size_t{32} << 20U;
// Up to this size one block puts with a signal; one kernel is faster than two.
constexpr std::size_t kOneBlockBytes = std::size_t{64} << 10U;

struct CopyPart {
  std::byte* dest;
  const std::byte* source;
  std::size_t bytes;
};

// This block's share, in multiples of the widest copy unit.
__device__ CopyPart part_of_block(void* dest, const void* source, std::size_t bytes) {
  constexpr std::size_t kUnit = 128;
  const std::size_t each = ((bytes + gridDim.x - 1) / gridDim.x + kUnit - 1) / kUnit * kUnit;
  const std::size_t begin = min(each * blockIdx.x, bytes);
  return {static_cast<std::byte*>(dest) + begin, static_cast<const std::byte*>(source) + begin,
          min(each, bytes - begin)};
}

__global__ void __launch_bounds__(kThreads, 1)
    put_kernel(void* dest, const void* source, std::size_t bytes, int pe) {
  const CopyPart part = part_of_block(dest, source, bytes);
  if (part.bytes != 0) {
    device::put<device::Block>(part.dest, part.source, part.bytes, pe);
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    get_kernel(void* dest, const void* source, std::size_t bytes, int pe) {
  const CopyPart part = part_of_block(dest, source, bytes);
  if (part.bytes != 0) {
    device::get<device::Block>(part.dest, part.source, part.bytes, pe);
  }
}

__global__ void __launch_bounds__(kThreads, 1) put_signal_kernel(
    void* dest, const void* source, std::size_t bytes, device::Signal signal, int pe) {
  device::put_signal<device::Block>(static_cast<std::byte*>(dest),
                                    static_cast<const std::byte*>(source), bytes, signal, pe);
}

__global__ void signal_kernel(device::Signal signal, int pe) {
  device::signal(signal, pe);
}

// Follows data that an earlier kernel or a copy engine has moved.
__global__ void quiet_signal_kernel(device::Signal signal, int pe) {
  device::quiet();
  device::signal(signal, pe);
}

__global__ void wait_kernel(const std::uint64_t* word,
                            device::Comparison comparison,
                            std::uint64_t value) {
  device::signal_wait_until(word, comparison, value);
}

__global__ void quiet_kernel() {
  device::quiet();
}

// Commands carry any size: one block posts the whole transfer as one command.
unsigned blocks_of(const StreamTransfer& transfer) {
  return transfer.mapped == nullptr ? 1 : blocks_for(transfer.bytes);
}

bool takes_copy_engine(const StreamTransfer& transfer) {
  return transfer.mapped != nullptr && transfer.bytes >= kCopyEngineBytesMin;
}

device::Signal signal_of(const weft_signal& signal) {
  return {signal.word, signal.value, static_cast<device::SignalOp>(signal.operation)};
}

static_assert(static_cast<int>(device::SignalOp::Set) == WEFT_SIGNAL_SET &&
                  static_cast<int>(device::SignalOp::Add) == WEFT_SIGNAL_ADD &&
                  static_cast<int>(device::Comparison::Eq) == WEFT_EQ &&
                  static_cast<int>(device::Comparison::Le) == WEFT_LE,
              "the words of device.h and of kernels are one list");

}  // namespace

int put(const StreamTransfer& transfer, weft_stream_t stream) {
  if (transfer.bytes == 0) {
    return cudaSuccess;
  }
  if (takes_copy_engine(transfer)) {
    return cudaMemcpyAsync(transfer.mapped, transfer.source, transfer.bytes, cudaMemcpyDefault,
                           stream);
  }
  return launch(&put_kernel, blocks_of(transfer), kThreads, stream, transfer.dest, transfer.source,
                transfer.bytes, transfer.pe);
}

int get(const StreamTransfer& transfer, weft_stream_t stream) {
  if (transfer.bytes == 0) {
    return cudaSuccess;
  }
  if (takes_copy_engine(transfer)) {
    return cudaMemcpyAsync(transfer.dest, transfer.mapped, transfer.bytes, cudaMemcpyDefault,
                           stream);
  }
  return launch(&get_kernel, blocks_of(transfer), kThreads, stream, transfer.dest, transfer.source,
                transfer.bytes, transfer.pe);
}

int put_signal(const StreamTransfer& transfer, const weft_signal& signal, weft_stream_t stream) {
  if (transfer.mapped == nullptr || transfer.bytes <= kOneBlockBytes) {
    return launch(&put_signal_kernel, 1, kThreads, stream, transfer.dest, transfer.source,
                  transfer.bytes, signal_of(signal), transfer.pe);
  }
  const int error = put(transfer, stream);
  return error != 0 ? error
                    : launch(&quiet_signal_kernel, 1, 1, stream, signal_of(signal), transfer.pe);
}

int signal(const weft_signal& signal, int pe, weft_stream_t stream) {
  return launch(&signal_kernel, 1, 1, stream, signal_of(signal), pe);
}

int wait_until(const std::uint64_t* word,
               weft_comparison comparison,
               std::uint64_t value,
               weft_stream_t stream) {
  return launch(&wait_kernel, 1, 1, stream, word, static_cast<device::Comparison>(comparison),
                value);
}

int quiet(weft_stream_t stream) {
  return launch(&quiet_kernel, 1, 1, stream);
}

int preload_data() {
  return preload(&put_kernel, &get_kernel, &put_signal_kernel, &signal_kernel, &quiet_signal_kernel,
                 &wait_kernel, &quiet_kernel);
}

}  // namespace weft::gpu::on_stream
