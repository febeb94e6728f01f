// Reductions on a stream for one type, instantiated by the files reduce_*.cu. One file per type,
// since each kernel takes seconds to compile.
//
// Threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

// A reduction keeps more in registers than cold calls preserve: 4 KiB in a graph took 4.9 us with
// them, 4.3 us without.
#define WEFT_DEVICE_DIRECT_CALLS

#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {

// Both reductions in one kernel, since they differ only in the stride.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    reduce_kernel(device::Team team, device::detail::ReduceCall<T> call) {
  device::detail::reduce<device::detail::WholeKernel, Op, T>(team, call);
}

// A reduction of so few bytes that each parcel has a group of lanes.
template <typename Op, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    reduce_few_kernel(device::Team team, device::detail::ReduceCall<T> call) {
  const device::TeamState& members = device::detail::members_of(team);
  device::detail::reduce_few<Op, T>(members, device::detail::control_of(members),
                                    device::detail::blocks_of(call), call.operation);
}

// Threads that combine a parcel: a group of lanes, or, of more members, as many as would receive
// them.
inline std::size_t threads_for_parcel(std::uint32_t members) {
  return members <= device::detail::kLaneMembersMax
             ? std::size_t{1} << device::detail::lane_bits_of(members)
             : members;
}

// Whether each parcel has its group in one pass, and the buffers hold what every member sends.
inline bool are_few(const StreamCollective& call, bool is_mapped, unsigned blocks) {
  if (!is_mapped || call.size > device::detail::kLaneMembersMax || call.bytes == 0 ||
      call.bytes > kBytesPerBlock * blocks) {
    return false;
  }
  const auto number = static_cast<std::uint32_t>(call.number);
  const std::uint32_t room =
      device::detail::grid_parcels_of(number, device::control_place_of(number).parcels);
  const std::size_t parcels = device::detail::parcels_of(call.bytes);
  return parcels * threads_for_parcel(call.size) <= std::size_t{blocks} * kThreads &&
         parcels * (call.size - 1) <= room;
}

template <typename Op, typename T>
int launch_reduce(const StreamCollective& call,
                  const ReduceOptions& options,
                  weft_stream_t stream) {
  const device::Team team{call.number};
  const std::size_t count = call.bytes / sizeof(T);
  const device::detail::ReduceCall<T> what{
      static_cast<T*>(call.dest), static_cast<const T*>(call.source), count,
      options.scatters ? count : 0,
      options.scatters ? device::OperationName::ReduceScatter : device::OperationName::Reduce};
  const unsigned blocks = blocks_for(call.bytes * threads_for_parcel(call.size));
  const bool is_few = are_few(call, options.is_mapped, blocks);
  return launch_together(is_few ? &reduce_few_kernel<Op, T> : &reduce_kernel<Op, T>, blocks, stream,
                         team, what);
}

template <typename T, typename... Ops>
int preload_reduce() {
  int error = 0;
  const auto load = [&error](int result) { error = error == 0 ? result : error; };
  (load(preload(&reduce_kernel<Ops, T>, &reduce_few_kernel<Ops, T>)), ...);
  return error;
}

// The operations that all types support.
template <typename T>
int launch_arithmetic(const StreamCollective& call,
                      const ReduceOptions& options,
                      weft_stream_t stream) {
  switch (options.reduction) {
    case WEFT_MIN:
      return launch_reduce<device::Min, T>(call, options, stream);
    case WEFT_MAX:
      return launch_reduce<device::Max, T>(call, options, stream);
    case WEFT_SUM:
      return launch_reduce<device::Sum, T>(call, options, stream);
    case WEFT_PROD:
      return launch_reduce<device::Prod, T>(call, options, stream);
    case WEFT_AND:
    case WEFT_OR:
    case WEFT_XOR:
      break;
  }
  return cudaErrorInvalidValue;
}

template <typename T>
int launch_integer(const StreamCollective& call,
                   const ReduceOptions& options,
                   weft_stream_t stream) {
  switch (options.reduction) {
    case WEFT_AND:
      return launch_reduce<device::And, T>(call, options, stream);
    case WEFT_OR:
      return launch_reduce<device::Or, T>(call, options, stream);
    case WEFT_XOR:
      return launch_reduce<device::Xor, T>(call, options, stream);
    case WEFT_MIN:
    case WEFT_MAX:
    case WEFT_SUM:
    case WEFT_PROD:
      break;
  }
  return launch_arithmetic<T>(call, options, stream);
}

template <typename T>
ReduceOfType integers() {
  using namespace device;
  return {&launch_integer<T>, &preload_reduce<T, And, Or, Xor, Min, Max, Sum, Prod>};
}

template <typename T>
ReduceOfType reals() {
  using namespace device;
  return {&launch_arithmetic<T>, &preload_reduce<T, Min, Max, Sum, Prod>};
}

}  // namespace weft::gpu::on_stream
