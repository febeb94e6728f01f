// ring_rate: commands that do nothing, by PE 0, through the rings to its proxy. Rate: all threads
// post, and the time ends when the proxy has taken all. Latency: one thread, from before it posts
// until the proxy has the command: the time until its answer is here, less half of what a word and
// a bare answer take in the same run, as GPU and CPU have no clock in common.
// Needs rings: a job of several nodes (WEFT_NODE_SIZE=1 makes some).
#include <atomic>
#include <vector>

#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

__global__ void ring_count(std::uint32_t* count) {
  *count = wd::state().ring_count;
}

__global__ void __launch_bounds__(kThreadsMax, 1) post_many(int iterations, Span* spans) {
  begin_span(spans);
  for (int i = 0; i < iterations; ++i) {
    wd::remote::post(wd::Command{}, wd::OperationName::Put);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

// `cycles`: of each round trip.
__global__ void post_one(Loop loop, std::uint64_t* cycles, Span* spans) {
  wd::Command command;
  command.flags = wd::kReplyWanted;
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    const long long start = clock64();
    wd::remote::post(command, wd::OperationName::Put);
    if (i >= 0) {
      cycles[i] = static_cast<std::uint64_t>(clock64() - start);
    }
  }
  end_span(spans);
}

// Two words in pinned memory, one for each direction.
struct RingWords {
  std::uint64_t* there;
  std::uint64_t* back;
  // In GPU memory: each question first takes its number from here, as a command takes its place in
  // a ring. Null: it knows it.
  std::uint64_t* numbers;
};

__global__ void ask(RingWords words, Loop loop, std::uint64_t* cycles, Span* spans) {
  std::uint64_t value = 0;
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    const long long start = clock64();
    value = words.numbers == nullptr ? value + 1 : wd::GpuMemory::add_near(words.numbers, 1);
    wd::store_relaxed(words.there, value);
    while (wd::load_relaxed(words.back) != value) {
    }
    if (i >= 0) {
      cycles[i] = static_cast<std::uint64_t>(clock64() - start);
    }
  }
  end_span(spans);
}

struct Percentiles {
  double p50 = 0;
  double p99 = 0;
};

// The span says how long a cycle takes.
Percentiles percentiles_of(const std::uint64_t* measured, std::size_t count) {
  std::vector<std::uint64_t> cycles(count);
  const double us = microseconds(1, 1);
  check(
      cudaMemcpy(cycles.data(), measured, cycles.size() * sizeof(std::uint64_t), cudaMemcpyDefault),
      "reading times");
  double all = 0;
  for (const std::uint64_t one : cycles) {
    all += static_cast<double>(one);
  }
  std::sort(cycles.begin(), cycles.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(cycles[(cycles.size() - 1) * percent / 100]) / all * us;
  };
  return {at(50), at(99)};
}

// As many as dest has room for.
Loop loop_of(const Options& options) {
  return {static_cast<int>(options.warmup_iterations),
          static_cast<int>(std::min<std::size_t>(options.iterations,
                                                 kLeastBufferBytes / sizeof(std::uint64_t)))};
}

Percentiles time_answers(const Session& session) {
  const Loop loop = loop_of(session.options());
  auto* measured = static_cast<std::uint64_t*>(session.dest());
  post_one<<<1, 1>>>(loop, measured, spans_of_process());
  check_launch();
  return percentiles_of(measured, static_cast<std::size_t>(loop.iterations));
}

enum class Number : bool { Known, Taken };

// The same with this thread in the proxy's place, which has nothing else to do.
Percentiles time_bare_answers(const Session& session, Number number) {
  constexpr std::size_t kApart = 16;  // in words: a cache line each, and more
  const Loop loop = loop_of(session.options());
  auto* measured = static_cast<std::uint64_t*>(session.dest());
  std::uint64_t* pinned = nullptr;
  check(cudaHostAlloc(&pinned, 2 * kApart * sizeof(std::uint64_t), cudaHostAllocMapped),
        "allocating pinned memory");
  RingWords words{pinned, pinned + kApart, nullptr};
  *words.there = *words.back = 0;
  if (number == Number::Taken) {
    constexpr std::uint64_t kFirst = 1;
    check(cudaMalloc(&words.numbers, sizeof(std::uint64_t)), "allocating a word");
    check(cudaMemcpy(words.numbers, &kFirst, sizeof kFirst, cudaMemcpyDefault), "writing a word");
  }
  ask<<<1, 1>>>(words, loop, measured, spans_of_process());
  check_launch();
  const auto last = static_cast<std::uint64_t>(loop.warmup + loop.iterations);
  for (std::uint64_t value = 1; value <= last; ++value) {
    while (std::atomic_ref(*words.there).load(std::memory_order_relaxed) != value) {
    }
    std::atomic_ref(*words.back).store(value, std::memory_order_relaxed);
  }
  const Percentiles bare = percentiles_of(measured, static_cast<std::size_t>(loop.iterations));
  check(cudaFreeHost(pinned), "freeing pinned memory");
  check(cudaFree(words.numbers), "freeing a word");
  return bare;
}

double time_rate(const Session& session, Shape shape, std::uint64_t iterations) {
  for (const std::uint64_t count : {std::uint64_t{4}, iterations}) {
    post_many<<<shape.ctas, shape.threads>>>(static_cast<int>(count), spans_of_process());
    check_launch();
  }
  return microseconds(shape.ctas, iterations * shape.ctas * shape.threads);
}

void require_rings(const Session& session) {
  auto* count = static_cast<std::uint32_t*>(session.dest());
  ring_count<<<1, 1>>>(count);
  check_launch();
  if (read_word(count) == 0) {
    throw JobError(session.me() == 0 ? "ring_rate: all PEs are on one node, so there are no rings; "
                                       "start it with WEFT_NODE_SIZE=1"
                                     : "",
                   kStatusUsage);
  }
}

}  // namespace

void run_ring_rate(Session& session) {
  require_rings(session);
  const Options& options = session.options();
  constexpr std::uint64_t kCommands = 4'000'000;
  const auto* kernel = reinterpret_cast<const void*>(&post_many);
  Row row;
  row.layout = Layout::Rate;
  row.title = "ring_rate";
  row.scope = "thread";
  row.bytes = sizeof(wd::CommandSlot);
  row.count = 1;
  row.threads = threads_for(kernel, options.threads);
  row.ctas = ctas_for(kernel, {options.ctas, row.threads});
  row.iterations = std::max<std::uint64_t>(1, kCommands / row.ctas / row.threads);
  if (session.me() == 0) {
    const Percentiles answers = time_answers(session);
    const Percentiles bare = time_bare_answers(session, Number::Known);
    row.answer_p50_us = answers.p50;
    row.answer_p99_us = answers.p99;
    row.bare_answer_p50_us = bare.p50;
    row.numbered_answer_p50_us = time_bare_answers(session, Number::Taken).p50;
    row.p50_us = answers.p50 - bare.p50 / 2;
    row.p99_us = answers.p99 - bare.p50 / 2;
    row.latency_us = time_rate(session, {row.ctas, row.threads}, row.iterations);
  }
  Session::barrier();
  session.add(row, 0);
}

}  // namespace weft::perf::gpu
