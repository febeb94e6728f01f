// Collectives on a stream that move bytes; sync and barrier.
#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {
namespace {

using device::detail::WholeKernel;

// One flag for each PE of a node; with more PEs a thread handles several.
constexpr int kMeetingThreads = 32;

__global__ void __launch_bounds__(kMeetingThreads, 1) barrier_kernel() {
  device::barrier<device::Warp>(device::kWorld);
}

__global__ void __launch_bounds__(kMeetingThreads, 1) sync_kernel(device::Team team) {
  device::sync<device::Warp>(team);
}

// The world's state is in constant memory, that of other teams is not.
__global__ void __launch_bounds__(kMeetingThreads, 1) sync_all_kernel() {
  device::sync<device::Warp>(device::kWorld);
}

// The kernel derives the widest unit that both sides and the size allow from the byte count.
__global__ void __launch_bounds__(kThreads, 1) alltoall_kernel(device::Team team,
                                                               std::byte* dest,
                                                               const std::byte* source,
                                                               std::size_t bytes) {
  device::alltoall<WholeKernel>(team, dest, source, bytes);
}

__global__ void __launch_bounds__(kThreads, 1) fcollect_kernel(device::Team team,
                                                               std::byte* dest,
                                                               const std::byte* source,
                                                               std::size_t bytes) {
  device::fcollect<WholeKernel>(team, dest, source, bytes);
}

__global__ void __launch_bounds__(kThreads, 1) broadcast_kernel(
    device::Team team, std::byte* dest, const std::byte* source, std::size_t bytes, int root) {
  device::broadcast<WholeKernel>(team, dest, source, bytes, root);
}

template <typename Kernel, typename... More>
int launch_bytes(Kernel kernel,
                 std::size_t received,
                 const StreamCollective& call,
                 weft_stream_t stream,
                 More... more) {
  return launch_together(kernel, blocks_for(received), stream, device::Team{call.number},
                         static_cast<std::byte*>(call.dest),
                         static_cast<const std::byte*>(call.source), call.bytes, more...);
}

// Of a call in which every other member sends this PE `call.bytes`.
std::size_t received_from_all(const StreamCollective& call) {
  return call.bytes * (std::max<std::size_t>(call.size, 1) - 1);
}

}  // namespace

int barrier_all(weft_stream_t stream) {
  return launch(&barrier_kernel, 1, kMeetingThreads, stream);
}

int sync(int number, weft_stream_t stream) {
  return number == device::kWorld.number
             ? launch(&sync_all_kernel, 1, kMeetingThreads, stream)
             : launch(&sync_kernel, 1, kMeetingThreads, stream, device::Team{number});
}

int alltoall(const StreamCollective& call, weft_stream_t stream) {
  return launch_bytes(&alltoall_kernel, received_from_all(call), call, stream);
}

int broadcast(const StreamCollective& call, int root, weft_stream_t stream) {
  return launch_bytes(&broadcast_kernel, call.bytes, call, stream, root);
}

int fcollect(const StreamCollective& call, weft_stream_t stream) {
  return launch_bytes(&fcollect_kernel, received_from_all(call), call, stream);
}

int preload_exchanges() {
  return preload(&barrier_kernel, &sync_kernel, &sync_all_kernel, &alltoall_kernel,
                 &fcollect_kernel, &broadcast_kernel);
}

}  // namespace weft::gpu::on_stream
