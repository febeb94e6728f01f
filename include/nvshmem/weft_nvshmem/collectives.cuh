// Synchronization, exchanges and reductions by a thread, a warp or a block of each PE of a team.
// They return 0: what goes wrong in a kernel ends it (weft/device/failure.cuh).
//
// Order and completion: as weft::device's, which begin with a synchronization of the scope.
#ifndef WEFT_NVSHMEM_COLLECTIVES_CUH
#define WEFT_NVSHMEM_COLLECTIVES_CUH

#include <weft/device.cuh>
#include <weft/device/collectives.cuh>

#include <weft_nvshmem/reduce_operations.cuh>
#include <weft_nvshmem/words.cuh>

#if defined(__CUDACC_RDC__) && !defined(WEFT_NVSHMEM_DEVICE_LIBRARY)
#define WEFT_NVSHMEM_SHARED_CODE __device__
#else
#define WEFT_NVSHMEM_SHARED_CODE __device__ __noinline__
#endif

namespace weft_nvshmem {

template <typename Scope>
struct Collectives {
  using Team = weft::device::Team;

  static __device__ void barrier_all() { weft::device::barrier_all<Scope>(); }

  static __device__ void sync_all() { weft::device::sync_all<Scope>(); }

  static __device__ int barrier(nvshmem_team_t team) {
    weft::device::barrier<Scope>(Team{team});
    return 0;
  }

  static __device__ int sync(nvshmem_team_t team) {
    weft::device::sync<Scope>(Team{team});
    return 0;
  }

  static __device__ int alltoall(nvshmem_team_t team,
                                 void* dest,
                                 const void* source,
                                 std::size_t bytes) {
    weft::device::alltoall<Scope>(Team{team}, static_cast<std::byte*>(dest),
                                  static_cast<const std::byte*>(source), bytes);
    return 0;
  }

  static __device__ int fcollect(nvshmem_team_t team,
                                 void* dest,
                                 const void* source,
                                 std::size_t bytes) {
    weft::device::fcollect<Scope>(Team{team}, static_cast<std::byte*>(dest),
                                  static_cast<const std::byte*>(source), bytes);
    return 0;
  }

  static __device__ int broadcast(
      nvshmem_team_t team, void* dest, const void* source, std::size_t bytes, int root) {
    weft::device::broadcast<Scope>(Team{team}, static_cast<std::byte*>(dest),
                                   static_cast<const std::byte*>(source), bytes, root);
    return 0;
  }

// T: one of the types that stand for all of a size (words.cuh), so that few functions are made.
#define WEFT_NVSHMEM_REDUCTION(name, Op)                                                          \
  template <typename T>                                                                           \
  static __device__ int name##_reduce(nvshmem_team_t team, void* dest, const void* source,        \
                                      std::size_t count) {                                        \
    return run<Op, T>(team, dest, source, {count, 0, weft::device::OperationName::Reduce});       \
  }                                                                                               \
  template <typename T>                                                                           \
  static __device__ int name##_reducescatter(nvshmem_team_t team, void* dest, const void* source, \
                                             std::size_t count) {                                 \
    return run<Op, T>(team, dest, source,                                                         \
                      {count, count, weft::device::OperationName::ReduceScatter});                \
  }
  WEFT_NVSHMEM_REDUCTION(and, And)
  WEFT_NVSHMEM_REDUCTION(or, Or)
  WEFT_NVSHMEM_REDUCTION(xor, Xor)
  WEFT_NVSHMEM_REDUCTION(min, Min)
  WEFT_NVSHMEM_REDUCTION(max, Max)
  WEFT_NVSHMEM_REDUCTION(sum, Sum)
  WEFT_NVSHMEM_REDUCTION(prod, Prod)
#undef WEFT_NVSHMEM_REDUCTION

 private:
  struct Shape {
    std::size_t count;
    std::size_t source_stride;
    weft::device::OperationName operation;
  };

  // Names of several types share it, but in programs with -rdc=true: it has more registers than a
  // kernel of 1,024 threads, which then would not link.
  template <typename Op, typename T>
  static WEFT_NVSHMEM_SHARED_CODE int run(nvshmem_team_t team,
                                          void* dest,
                                          const void* source,
                                          const Shape& shape) {
    weft::device::detail::reduce<Scope, Op, T>(
        Team{team}, {static_cast<T*>(dest), static_cast<const T*>(source), shape.count,
                     shape.source_stride, shape.operation});
    return 0;
  }
};

using ThreadCollectives = Collectives<weft::device::Thread>;
using WarpCollectives = Collectives<weft::device::Warp>;
using BlockCollectives = Collectives<weft::device::Block>;

}  // namespace weft_nvshmem

#endif  // WEFT_NVSHMEM_COLLECTIVES_CUH
