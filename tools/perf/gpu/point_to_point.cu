// shmem_put_bw, shmem_get_bw, shmem_p_bw: between PE 0 and its partner, in the pattern of
// bench/peers. The other PEs wait.
#include "tools/perf/gpu/memory.cuh"
#include "tools/perf/gpu/transfer.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

template <typename Scope, bool kGet>
__device__ void move_nbi(const Transfer& transfer) {
  if constexpr (kGet) {
    wd::get_nbi<Scope>(transfer.dest, transfer.source, transfer.bytes, transfer.peer);
  } else {
    wd::put_nbi<Scope>(transfer.dest, transfer.source, transfer.bytes, transfer.peer);
  }
}

// Each scope moves its slice, the same one in every iteration; complete when the kernel ends.
template <typename Scope, bool kGet>
__global__ void __launch_bounds__(kThreadsMax, 1)
    move_slices(Transfer transfer, int iterations, Span* spans) {
  const std::uint32_t per_cta = blockDim.x / Scope::size();
  const std::size_t share =
      (transfer.bytes + std::size_t{gridDim.x} * per_cta - 1) / (std::size_t{gridDim.x} * per_cta);
  const std::size_t slice = (share + 15) / 16 * 16;
  const std::size_t begin = slice * (blockIdx.x * per_cta + threadIdx.x / Scope::size());
  const std::size_t bytes = begin < transfer.bytes ? min(slice, transfer.bytes - begin) : 0;
  const Transfer mine{transfer.dest + begin, transfer.source + begin, bytes, transfer.peer};
  begin_span(spans);
  for (int i = 0; i < iterations && bytes != 0; ++i) {
    move_nbi<Scope, kGet>(mine);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

template <typename T>
__global__ void __launch_bounds__(kThreadsMax, 1)
    put_elements(T* dest, std::size_t count, int peer, int iterations, Span* spans) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  begin_span(spans);
  for (int round = 0; round < iterations; ++round) {
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
      wd::p(dest + i, static_cast<T>(value_of(0, 0, i)), peer);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

using MoveSlices = void (*)(Transfer, int, Span*);

template <bool kGet>
MoveSlices slices_in(Scope scope) {
  return scope == Scope::Thread ? &move_slices<wd::Thread, kGet>
         : scope == Scope::Warp ? &move_slices<wd::Warp, kGet>
                                : &move_slices<wd::Block, kGet>;
}

std::string title_of(const Session& session, const char* name) {
  return std::string(name) + (session.options().bidirectional ? "_bi" : "_uni");
}

// A loop of `launch(iterations)`, first to warm up.
template <typename Launch>
double time_launches(const Session& session,
                     Shape shape,
                     std::uint64_t iterations,
                     const Launch& launch) {
  const std::uint64_t warmup =
      std::max<std::uint64_t>(1, std::min(iterations, session.options().warmup_iterations));
  for (const std::uint64_t count : {warmup, iterations}) {
    launch(static_cast<int>(count));
    check_launch();
  }
  return microseconds(shape.ctas, iterations);
}

template <bool kGet>
void bandwidth(Session& session, Scope scope) {
  const Options& options = session.options();
  const MoveSlices kernel = slices_in<kGet>(scope);
  const Shape shape{options.ctas,
                    threads_for(reinterpret_cast<const void*>(kernel), options.threads)};
  for (const std::size_t size : size_sequence(options.sizes)) {
    const std::uint64_t iterations = iterations_for(options, size, kTransferBudget);
    prepare_bytes(session, size);
    Row row = row_of(session, size, shape, iterations);
    if (takes_part(session)) {
      row.latency_us = time_launches(session, shape, iterations, [&](int count) {
        kernel<<<shape.ctas, shape.threads>>>(transfer_of(session, size), count,
                                              spans_of_process());
      });
    }
    Session::barrier();
    row.layout = Layout::Bandwidth;
    row.title = title_of(session, kGet ? "shmem_get_bw" : "shmem_put_bw");
    row.scope = name_of(scope);
    session.add(row, wrong_bytes(session, kGet, size));
  }
}

template <typename T>
void bandwidth_of_p(Session& session) {
  const Options& options = session.options();
  const auto kernel = &put_elements<T>;
  const Shape shape{options.ctas,
                    threads_for(reinterpret_cast<const void*>(kernel), options.threads)};
  for (const std::size_t size : size_sequence(options.sizes)) {
    const std::size_t count = size / sizeof(T);
    const std::uint64_t iterations = iterations_for(options, size, kTransferBudget);
    prepare_bytes(session, size);
    Row row = row_of(session, count * sizeof(T), shape, iterations);
    if (takes_part(session)) {
      row.latency_us = time_launches(session, shape, iterations, [&](int rounds) {
        kernel<<<shape.ctas, shape.threads>>>(static_cast<T*>(session.dest()), count,
                                              session.other(), rounds, spans_of_process());
      });
    }
    Session::barrier();
    row.layout = Layout::Bandwidth;
    row.title = title_of(session, "shmem_p_bw");
    row.scope = "thread";
    row.type = sizeof(T) == 4 ? "32-bit" : "64-bit";
    row.count = count;
    const bool receives = options.verifies && (session.me() == session.partner() ||
                                               (options.bidirectional && session.me() == 0));
    session.add(row, receives ? count_wrong<T>(session.dest(), 1, count,
                                               {Pattern::One, session.me(), session.pe_count(), 0})
                              : 0);
  }
}

}  // namespace

void run_bandwidth(Session& session) {
  if (session.options().kind == Kind::PBw) {
    return session.options().type.bytes == 4 ? bandwidth_of_p<std::uint32_t>(session)
                                             : bandwidth_of_p<std::uint64_t>(session);
  }
  for (const Scope scope : session.options().scopes) {
    if (session.options().kind == Kind::GetBw) {
      bandwidth<true>(session, scope);
    } else {
      bandwidth<false>(session, scope);
    }
  }
}

}  // namespace weft::perf::gpu
