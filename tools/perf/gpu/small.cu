// shmem_p_latency and shmem_g_latency: one thread of PE 0, one element of its partner at a time.
#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

template <typename T>
__global__ void time_p(T* dest, int peer, Loop loop, Span* spans) {
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    wd::p(dest, static_cast<T>(i), peer);
    wd::quiet();
  }
  end_span(spans);
}

// Each value is stored, which waits for it: the next g does not begin before.
template <typename T>
__global__ void time_g(const T* source, T* result, int peer, Loop loop, Span* spans) {
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    wd::store_relaxed(result, wd::g(source, peer));  // nobody else looks at it meanwhile
  }
  end_span(spans);
}

template <typename T>
std::uint64_t count_wrong_small(const Session& session, bool is_get) {
  const auto* dest = static_cast<const T*>(session.dest());
  if (!session.options().verifies) {
    return 0;
  }
  if (is_get) {
    const auto value = static_cast<T>(value_of(session.partner(), 0, 0));
    return session.me() == 0 && read_word(dest) != value ? 1 : 0;
  }
  const auto last = static_cast<T>(session.options().iterations - 1);
  return session.me() == session.partner() && read_word(dest) != last ? 1 : 0;
}

template <typename T>
void latency(Session& session, bool is_get) {
  const Options& options = session.options();
  const Loop loop{static_cast<int>(options.warmup_iterations),
                  static_cast<int>(options.iterations)};
  auto* source = static_cast<T*>(session.source());
  auto* dest = static_cast<T*>(session.dest());
  fill<T>(source, 1, 1, session.me());
  poison(dest, sizeof(T));
  Session::barrier();
  Row row;
  if (session.me() == 0) {
    if (is_get) {
      time_g<<<1, 1>>>(source, dest, session.partner(), loop, spans_of_process());
    } else {
      time_p<<<1, 1>>>(dest, session.partner(), loop, spans_of_process());
    }
    check_launch();
    row.latency_us = microseconds(1, options.iterations);
  }
  Session::barrier();
  row.title = is_get ? "shmem_g_latency" : "shmem_p_latency";
  row.scope = "thread";
  row.type = sizeof(T) == 4 ? "32-bit" : "64-bit";
  row.bytes = sizeof(T);
  row.count = 1;
  row.iterations = options.iterations;
  session.add(row, count_wrong_small<T>(session, is_get));
}

}  // namespace

void run_small(Session& session) {
  const bool is_get = session.options().kind == Kind::GLatency;
  return session.options().type.bytes == 4 ? latency<std::uint32_t>(session, is_get)
                                           : latency<std::uint64_t>(session, is_get);
}

}  // namespace weft::perf::gpu
