// Collectives on a stream that move bytes; sync and barrier.
#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {
namespace {

// Enough for one flag per PE of a node; with more PEs a thread handles several.
constexpr int kMeetingThreads = 128;

__global__ void __launch_bounds__(kMeetingThreads, 1) barrier_kernel() {
  device::barrier<device::Block>(device::kWorld);
}

__global__ void __launch_bounds__(kMeetingThreads, 1) sync_kernel(device::Team team) {
  device::sync<device::Block>(team);
}

// The kernel derives the widest unit that both sides and the size allow from the byte count.
template <typename Scope>
__global__ void __launch_bounds__(kThreads, 1) alltoall_kernel(device::Team team,
                                                               std::byte* dest,
                                                               const std::byte* source,
                                                               std::size_t bytes) {
  device::alltoall<Scope>(team, dest, source, bytes);
}

template <typename Scope>
__global__ void __launch_bounds__(kThreads, 1) fcollect_kernel(device::Team team,
                                                               std::byte* dest,
                                                               const std::byte* source,
                                                               std::size_t bytes) {
  device::fcollect<Scope>(team, dest, source, bytes);
}

template <typename Scope>
__global__ void __launch_bounds__(kThreads, 1) broadcast_kernel(
    device::Team team, std::byte* dest, const std::byte* source, std::size_t bytes, int root) {
  device::broadcast<Scope>(team, dest, source, bytes, root);
}

template <typename Kernel, typename... More>
int launch_bytes(Kernel by_block,
                 Kernel by_grid,
                 std::size_t received,
                 const Collective& call,
                 weft_stream_t stream,
                 More... more) {
  const device::Team team{call.number};
  auto* dest = static_cast<std::byte*>(call.dest);
  const auto* source = static_cast<const std::byte*>(call.source);
  const unsigned blocks = blocks_for(received);
  return blocks == 1
             ? launch(by_block, 1, kThreads, stream, team, dest, source, call.bytes, more...)
             : launch_together(by_grid, blocks, stream, team, dest, source, call.bytes, more...);
}

}  // namespace

int barrier_all(weft_stream_t stream) {
  return launch(&barrier_kernel, 1, kMeetingThreads, stream);
}

int sync(int number, weft_stream_t stream) {
  return launch(&sync_kernel, 1, kMeetingThreads, stream, device::Team{number});
}

int alltoall(const Collective& call, weft_stream_t stream) {
  return launch_bytes(&alltoall_kernel<device::Block>, &alltoall_kernel<device::Grid>,
                      call.bytes * call.size, call, stream);
}

int broadcast(const Collective& call, int root, weft_stream_t stream) {
  return launch_bytes(&broadcast_kernel<device::Block>, &broadcast_kernel<device::Grid>, call.bytes,
                      call, stream, root);
}

int fcollect(const Collective& call, weft_stream_t stream) {
  return launch_bytes(&fcollect_kernel<device::Block>, &fcollect_kernel<device::Grid>,
                      call.bytes * call.size, call, stream);
}

int preload_exchanges() {
  return preload(&barrier_kernel, &sync_kernel, &alltoall_kernel<device::Block>,
                 &alltoall_kernel<device::Grid>, &fcollect_kernel<device::Block>,
                 &fcollect_kernel<device::Grid>, &broadcast_kernel<device::Block>,
                 &broadcast_kernel<device::Grid>);
}

}  // namespace weft::gpu::on_stream
