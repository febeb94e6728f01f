// putv_rate: rows a second from PE 0 to its partner, over whatever lies between them. Each warp
// sends lists of 64 rows, each list with one signal; and in a second row of the table every thread
// sends rows with a signal each. 64 rows are what a rank has for a peer of 128 tokens that go to 8
// of 128 experts on 16 ranks.
#include "tools/perf/gpu/signal_rate.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

constexpr std::uint32_t kRows = 64;  // of a list
constexpr std::uint32_t kWarpsMax = 16;
static_assert(kWarpsMax * 32 == kTimedThreadsMax);

// Rows that lie apart: neighbours in the list are no neighbours in memory.
__device__ std::size_t place_of(const Flow& flow, std::uint32_t warp, std::uint32_t row) {
  const std::size_t places = max(std::size_t{1}, kLeastBufferBytes / flow.bytes);
  return (std::size_t{warp} * kRows + row * 37 % kRows) % places * flow.bytes;
}

template <bool kInLists>
__global__ void __launch_bounds__(kTimedThreadsMax, 1)
    send_rows(Flow flow, int iterations, Span* spans) {
  __shared__ wd::Segment lists[kWarpsMax][kRows];
  const std::uint32_t in_block = threadIdx.x / 32;
  const std::uint32_t warp = blockIdx.x * (blockDim.x / 32) + in_block;
  wd::Segment* list = lists[in_block];
  for (std::uint32_t row = wd::Warp::rank(); row < kRows; row += 32) {
    const std::size_t place = place_of(flow, warp, row);
    list[row] = {flow.dest + place, flow.source + place, flow.bytes};
  }
  wd::Warp::sync();
  const wd::Signal signal{flow.word, 1, wd::SignalOp::Add};
  begin_span(spans);
  for (int i = 0; i < iterations; ++i) {
    if constexpr (kInLists) {
      wd::putv_signal_nbi<wd::Warp>(list, kRows, signal, flow.peer);
    } else {
      for (std::uint32_t row = wd::Warp::rank(); row < kRows; row += 32) {
        wd::put_signal_nbi<wd::Thread>(static_cast<std::byte*>(list[row].dest),
                                       static_cast<const std::byte*>(list[row].source), flow.bytes,
                                       signal, flow.peer);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
  end_span(spans);
}

template <bool kInLists>
std::uint64_t run_size(Session& session, Shape shape, std::size_t bytes, std::uint64_t before) {
  constexpr std::uint64_t kRowsInAll = 400'000;
  const std::uint64_t warps = std::uint64_t{shape.ctas} * shape.threads / 32;
  Row row;
  row.title = kInLists ? "putv_rate" : "putv_rate_one_by_one";
  row.scope = kInLists ? "warp" : "thread";
  row.bytes = bytes;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  const Sent sent{std::max<std::uint64_t>(1, kRowsInAll / (warps * kRows)), warps * kRows,
                  warps * (kInLists ? 1 : kRows)};
  return measure_rate<wd::Warp>(session, row, sent, before, [&](const Flow& flow, int iterations) {
    send_rows<kInLists><<<shape.ctas, shape.threads>>>(flow, iterations, spans_of_process());
  });
}

Shape shape_of(const Options& options) {
  const auto* lists = reinterpret_cast<const void*>(&send_rows<true>);
  const auto* one_by_one = reinterpret_cast<const void*>(&send_rows<false>);
  const std::uint32_t threads =
      std::min(threads_for(lists, options.threads), threads_for(one_by_one, options.threads)) / 32 *
      32;
  return {std::min(ctas_for(lists, {options.ctas, threads}),
                   ctas_for(one_by_one, {options.ctas, threads})),
          threads};
}

}  // namespace

void run_putv_rate(Session& session) {
  const Shape shape = shape_of(session.options());
  load_await_signals<wd::Warp>();
  std::uint64_t signals = 0;
  for (const std::size_t size : size_sequence(session.options().sizes)) {
    signals = run_size<true>(session, shape, size, signals);
    signals = run_size<false>(session, shape, size, signals);
  }
}

}  // namespace weft::perf::gpu
