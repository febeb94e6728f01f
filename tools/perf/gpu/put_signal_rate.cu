// put_signal_rate: put_signals a second from PE 0 to its partner, each by a thread of its own, over whatever lies between
// them. Time: from the first call until all signals are at the target, which quiet says. A warp of the partner waits, as a
// kernel that is sent to does, or a thread that is alone; each signal adds 1, and none may be missing.
#include <type_traits>

#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

struct Flow {
  std::byte* dest;  // places of `bytes`, which the threads share if there are fewer
  const std::byte* source;
  std::size_t bytes;
  std::uint64_t* word;
  int peer;
};

__global__ void __launch_bounds__(kTimedThreadsMax, 1)
    send_many(Flow flow, int iterations, Span* spans) {
  const std::size_t places = max(std::size_t{1}, kLeastBufferBytes / flow.bytes);
  const std::size_t place =
      (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) % places * flow.bytes;
  begin_span(spans);
  for (int i = 0; i < iterations; ++i) {
    wd::put_signal_nbi<wd::Thread>(flow.dest + place, flow.source + place, flow.bytes,
                                   {flow.word, 1, wd::SignalOp::Add}, flow.peer);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

template <typename Waiting>
__global__ void receive_many(std::uint64_t* word, std::uint64_t count) {
  wd::signal_wait_until<Waiting>(word, wd::Comparison::Ge, count);
}

template <typename Waiting>
std::uint64_t run_size(
    Session& session, const char* title, Shape shape, std::size_t bytes, std::uint64_t before) {
  constexpr std::uint64_t kSignals = 1'000'000;
  const std::uint64_t threads = std::uint64_t{shape.ctas} * shape.threads;
  const std::uint64_t iterations = std::max<std::uint64_t>(1, kSignals / threads);
  const std::uint64_t after = before + (iterations + 1) * threads;
  prepare_bytes(session, bytes);
  Row row;
  row.layout = Layout::Rate;
  row.title = title;
  row.scope = "thread";
  row.bytes = bytes;
  row.count = bytes;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  row.iterations = iterations;
  if (session.me() == 0) {
    const Flow flow{static_cast<std::byte*>(session.dest()),
                    static_cast<const std::byte*>(session.source()), bytes, session.words(),
                    session.other()};
    for (const std::uint64_t count : {std::uint64_t{1}, iterations}) {
      send_many<<<shape.ctas, shape.threads>>>(flow, static_cast<int>(count), spans_of_process());
      check_launch();
    }
    row.latency_us = microseconds(shape.ctas, iterations * threads);
  } else if (session.me() == session.partner()) {
    receive_many<Waiting>
        <<<1, std::is_same_v<Waiting, wd::Warp> ? 32 : 1>>>(session.words(), after);
    check_launch();
  }
  Session::barrier();
  session.add(row,
              session.me() == session.partner() && read_word(session.words()) != after ? 1 : 0);
  return after;
}

}  // namespace

void run_put_signal_rate(Session& session) {
  const Options& options = session.options();
  const auto* kernel = reinterpret_cast<const void*>(&send_many);
  const std::uint32_t threads = threads_for(kernel, options.threads);
  const Shape shape{ctas_for(kernel, {options.ctas, threads}), threads};
  // Loaded before the sender may wait for it.
  static_cast<void>(threads_for(reinterpret_cast<const void*>(&receive_many<wd::Warp>), 32));
  static_cast<void>(threads_for(reinterpret_cast<const void*>(&receive_many<wd::Thread>), 32));
  std::uint64_t signals = 0;
  for (const std::size_t size : size_sequence(options.sizes)) {
    signals = run_size<wd::Warp>(session, "put_signal_rate", shape, size, signals);
    signals = run_size<wd::Thread>(session, "put_signal_rate_one_waits", shape, size, signals);
  }
}

}  // namespace weft::perf::gpu
