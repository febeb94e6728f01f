// Lists of segments on a stream. A kernel's parameters hold a part of the list, so nothing of the
// host is read later.
#include <algorithm>

#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {
namespace {

// As many as a kernel's parameters of 4 KiB have room for, with the rest.
constexpr std::uint32_t kPartSegments = 160;

struct ListPart {
  std::uint32_t count;
  device::Segment segments[kPartSegments];
};

// Blocks share the segments. With a signal there is one block.
__global__ void __launch_bounds__(kThreads, 1)
    putv_kernel(const __grid_constant__ ListPart part, device::Signal signal, int pe) {
  const std::uint32_t each = (part.count + gridDim.x - 1) / gridDim.x;
  const std::uint32_t begin = min(each * blockIdx.x, part.count);
  const std::uint32_t count = min(each, part.count - begin);
  if (signal.word != nullptr) {
    device::putv_signal<device::Block>(part.segments, part.count, signal, pe);
  } else if (count != 0) {
    device::putv<device::Block>(part.segments + begin, count, pe);
  }
}

// Commands follow each other in one ring: one block posts them all, and the last one has the
// signal. Where blocks store, a signal follows in a kernel of its own.
bool is_one_block(const StreamList& list) {
  return !list.is_mapped || list.bytes <= kBytesPerBlock;
}

int put_part(const StreamList& list,
             std::size_t first,
             const device::Signal& signal,
             weft_stream_t stream) {
  ListPart part{};
  part.count = static_cast<std::uint32_t>(std::min<std::size_t>(list.count - first, kPartSegments));
  for (std::uint32_t i = 0; i < part.count; ++i) {
    const weft_segment& segment = list.segments[first + i];
    part.segments[i] = {segment.dest, segment.source, segment.bytes};
  }
  const unsigned blocks =
      is_one_block(list) ? 1 : std::min<unsigned>(blocks_for(list.bytes), part.count);
  return launch(&putv_kernel, blocks, kThreads, stream, part, signal, list.pe);
}

}  // namespace

int putv(const StreamList& list, const weft_signal* signal, weft_stream_t stream) {
  const bool is_last_with_signal = signal != nullptr && is_one_block(list);
  for (std::size_t first = 0; first < list.count; first += kPartSegments) {
    const bool is_last = list.count - first <= kPartSegments;
    device::Signal own{};
    if (is_last && is_last_with_signal) {
      own = {signal->word, signal->value, static_cast<device::SignalOp>(signal->operation)};
    }
    if (const int error = put_part(list, first, own, stream); error != 0) {
      return error;
    }
  }
  if (signal == nullptr || (is_last_with_signal && list.count != 0)) {
    return cudaSuccess;
  }
  const int error = list.count == 0 ? 0 : quiet(stream);
  return error != 0 ? error : on_stream::signal(*signal, list.pe, stream);
}

int preload_lists() {
  return preload(&putv_kernel);
}

}  // namespace weft::gpu::on_stream
