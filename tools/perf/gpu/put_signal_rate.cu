// put_signal_rate: put_signals a second from PE 0 to its partner, each by a thread of its own, over
// whatever lies between them. A warp of the partner waits, as a kernel that is sent to does, or a
// thread that is alone; each signal adds 1.
#include "tools/perf/gpu/signal_rate.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

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
std::uint64_t run_size(
    Session& session, const char* title, Shape shape, std::size_t bytes, std::uint64_t before) {
  constexpr std::uint64_t kSignals = 1'000'000;
  const std::uint64_t threads = std::uint64_t{shape.ctas} * shape.threads;
  Row row;
  row.title = title;
  row.scope = "thread";
  row.bytes = bytes;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  const Sent sent{std::max<std::uint64_t>(1, kSignals / threads), threads, threads};
  return measure_rate<Waiting>(session, row, sent, before, [&](const Flow& flow, int iterations) {
    send_many<<<shape.ctas, shape.threads>>>(flow, iterations, spans_of_process());
  });
}

}  // namespace

void run_put_signal_rate(Session& session) {
  const Options& options = session.options();
  const auto* kernel = reinterpret_cast<const void*>(&send_many);
  const std::uint32_t threads = threads_for(kernel, options.threads);
  const Shape shape{ctas_for(kernel, {options.ctas, threads}), threads};
  load_await_signals<wd::Warp>();
  load_await_signals<wd::Thread>();
  std::uint64_t signals = 0;
  for (const std::size_t size : size_sequence(options.sizes)) {
    signals = run_size<wd::Warp>(session, "put_signal_rate", shape, size, signals);
    signals = run_size<wd::Thread>(session, "put_signal_rate_one_waits", shape, size, signals);
  }
}

}  // namespace weft::perf::gpu
