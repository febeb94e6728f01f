// atomic_latency and atomic_bw: atomics of PE 0 on words of its partner. Latency: one thread, one
// word; what returns nothing has a quiet each time. Bandwidth: all threads, each on words of its
// own, one quiet.
#include <utility>

#include "tools/perf/gpu/memory.cuh"
#include "tools/perf/option_names.hpp"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

constexpr std::size_t kBudget = std::size_t{256} << 20U;

// The old value; 0 of those that do not fetch.
template <AtomicKind kKind, typename T>
__device__ T call(T* word, int pe) {
  if constexpr (kKind == AtomicKind::Fetch) {
    return wd::atomic_fetch(word, pe);
  } else if constexpr (kKind == AtomicKind::FetchAdd) {
    return wd::atomic_fetch_add(word, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::FetchInc) {
    return wd::atomic_fetch_inc(word, pe);
  } else if constexpr (kKind == AtomicKind::Swap) {
    return wd::atomic_swap(word, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::CompareSwap) {
    return wd::atomic_compare_swap(word, T{0}, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::Set) {
    wd::atomic_set(word, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::Add) {
    wd::atomic_add(word, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::Inc) {
    wd::atomic_inc(word, pe);
  } else if constexpr (kKind == AtomicKind::And) {
    wd::atomic_and(word, T{1}, pe);
  } else if constexpr (kKind == AtomicKind::Or) {
    wd::atomic_or(word, T{1}, pe);
  } else {
    wd::atomic_xor(word, T{1}, pe);
  }
  return T{0};
}

constexpr bool fetches(AtomicKind kind) {
  return kind == AtomicKind::Fetch || kind == AtomicKind::FetchAdd ||
         kind == AtomicKind::FetchInc || kind == AtomicKind::Swap ||
         kind == AtomicKind::CompareSwap;
}

// What a word that was 0 is after `count` of them.
std::uint64_t after(AtomicKind kind, std::uint64_t count) {
  switch (kind) {
    case AtomicKind::Add:
    case AtomicKind::FetchAdd:
    case AtomicKind::Inc:
    case AtomicKind::FetchInc:
      return count;
    case AtomicKind::Xor:
      return count % 2;
    case AtomicKind::Fetch:
    case AtomicKind::And:
      return 0;
    case AtomicKind::Set:
    case AtomicKind::Swap:
    case AtomicKind::CompareSwap:
    case AtomicKind::Or:
    case AtomicKind::All:
      break;
  }
  return 1;
}

struct AtomicWords {
  void* first;  // of the target
  void* result;
  std::size_t count;
  int peer;
};

template <AtomicKind kKind, typename T>
__global__ void time_one(AtomicWords words, Loop loop, Span* spans) {
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    const T old = call<kKind>(static_cast<T*>(words.first), words.peer);
    if constexpr (fetches(kKind)) {
      wd::store_relaxed(static_cast<T*>(words.result), old);  // waits for it; nobody looks at it
    } else {
      wd::quiet();
    }
  }
  end_span(spans);
}

template <AtomicKind kKind, typename T>
__global__ void __launch_bounds__(kThreadsMax, 1)
    time_many(AtomicWords words, Loop loop, Span* spans) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  T sum{0};
  begin_span(spans);
  for (int round = 0; round < loop.iterations; ++round) {
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words.count;
         i += step) {
      sum += call<kKind>(static_cast<T*>(words.first) + i, words.peer);
    }
  }
  if (fetches(kKind) && sum == T{0} - T{1}) {
    *static_cast<T*>(words.result) = sum;  // so that the values are wanted
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

using Kernel = void (*)(AtomicWords, Loop, Span*);

struct Kernels {
  Kernel one, many;
};

template <typename T, std::size_t... kKinds>
Kernels kernels_of(AtomicKind kind, std::index_sequence<kKinds...>) {
  Kernels found{};
  ((kind == static_cast<AtomicKind>(kKinds)
        ? void(found = {&time_one<static_cast<AtomicKind>(kKinds), T>,
                        &time_many<static_cast<AtomicKind>(kKinds), T>})
        : void()),
   ...);
  return found;
}

Kernels kernels_of(AtomicKind kind, std::size_t bytes) {
  constexpr auto kAll = std::make_index_sequence<static_cast<std::size_t>(AtomicKind::All)>();
  return bytes == 4 ? kernels_of<std::uint32_t>(kind, kAll) : kernels_of<std::uint64_t>(kind, kAll);
}

std::uint64_t count_wrong_words(const Session& session, std::uint64_t expected) {
  if (!session.options().verifies || session.me() != session.partner()) {
    return 0;
  }
  // AtomicWords begin as zeros, so the lower half says it for both widths.
  const auto* word = static_cast<const std::uint32_t*>(session.dest());
  return read_word(word) == static_cast<std::uint32_t>(expected) ? 0 : 1;
}

void clear(const Session& session, std::size_t bytes) {
  check(cudaMemset(session.dest(), 0, bytes), "clearing memory of the GPU");
  Session::barrier();
}

Row row_of(const Options& options, AtomicKind kind, const char* what) {
  Row row;
  row.title = "shmem_atomic_" + std::string(perf::name_of(kind)) + what;
  row.scope = "thread";
  row.type = width_of(options.type);
  row.iterations = options.iterations;
  return row;
}

void latency(Session& session, AtomicKind kind) {
  const Options& options = session.options();
  const Loop loop{static_cast<int>(options.warmup_iterations),
                  static_cast<int>(options.iterations)};
  Row row = row_of(options, kind, "_latency");
  row.bytes = options.type.bytes;
  row.count = 1;
  clear(session, sizeof(std::uint64_t));
  if (session.me() == 0) {
    kernels_of(kind, options.type.bytes)
        .one<<<1, 1>>>({session.dest(), session.source(), 1, session.partner()}, loop,
                       spans_of_process());
    check_launch();
    row.latency_us = microseconds(1, options.iterations);
  }
  Session::barrier();
  session.add(
      row, count_wrong_words(session, after(kind, options.warmup_iterations + options.iterations)));
}

void bandwidth(Session& session, AtomicKind kind, std::size_t bytes) {
  const Options& options = session.options();
  const Kernel kernel = kernels_of(kind, options.type.bytes).many;
  const std::size_t count = std::max<std::size_t>(1, bytes / options.type.bytes);
  Row row = row_of(options, kind, "_bw");
  row.layout = Layout::Bandwidth;
  row.bytes = count * options.type.bytes;
  row.count = count;
  row.iterations = iterations_for(options, bytes, kBudget);
  row.ctas = options.ctas;
  row.threads = threads_for(reinterpret_cast<const void*>(kernel), options.threads);
  clear(session, row.bytes);
  if (session.me() == 0) {
    for (const int iterations : {1, static_cast<int>(row.iterations)}) {
      kernel<<<row.ctas, row.threads>>>(
          {session.dest(), session.source(), count, session.partner()}, {0, iterations},
          spans_of_process());
      check_launch();
    }
    row.latency_us = microseconds(row.ctas, row.iterations);
  }
  Session::barrier();
  session.add(row, count_wrong_words(session, after(kind, row.iterations + 1)));
}

void run_kind(Session& session, AtomicKind kind) {
  if (session.options().kind == Kind::AtomicLatency) {
    return latency(session, kind);
  }
  for (const std::size_t size : size_sequence(session.options().sizes)) {
    bandwidth(session, kind, size);
  }
}

}  // namespace

void run_atomics(Session& session) {
  for (int i = 0; i < static_cast<int>(AtomicKind::All); ++i) {
    const auto kind = static_cast<AtomicKind>(i);
    if (session.options().atomic == AtomicKind::All || session.options().atomic == kind) {
      run_kind(session, kind);
    }
  }
}

}  // namespace weft::perf::gpu
