// What the rates of puts with signals share: PE 0 sends to its partner, where a kernel waits until
// a word has counted all signals. Time: from the first call until all of them are at the target,
// which quiet says. None may be missing.
#pragma once

#include <type_traits>
#include <utility>

#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {

struct Flow {
  std::byte* dest;  // places of `bytes`, which the puts share if there are fewer
  const std::byte* source;
  std::size_t bytes;
  std::uint64_t* word;
  int peer;
};

// How often all threads send, and what they send each time.
struct Sent {
  std::uint64_t iterations;
  std::uint64_t puts;
  std::uint64_t signals;
};

namespace {

template <typename Waiting>
__global__ void await_signals(std::uint64_t* word, std::uint64_t count) {
  weft::device::signal_wait_until<Waiting>(word, weft::device::Comparison::Ge, count);
}

// So that it is loaded before the sender may wait for it.
template <typename Waiting>
void load_await_signals() {
  static_cast<void>(threads_for(reinterpret_cast<const void*>(&await_signals<Waiting>), 32));
}

// `row` has title, scope, bytes and shape; launch(flow, iterations) starts the sender. The word has
// counted `before` signals; returns how many it has counted then.
template <typename Waiting, typename Launch>
std::uint64_t measure_rate(
    Session& session, Row row, const Sent& sent, std::uint64_t before, Launch&& launch) {
  const std::uint64_t after = before + (sent.iterations + 1) * sent.signals;
  prepare_bytes(session, row.bytes);
  row.layout = Layout::Rate;
  row.count = row.bytes;
  row.iterations = sent.iterations;
  if (session.me() == 0) {
    const Flow flow{static_cast<std::byte*>(session.dest()),
                    static_cast<const std::byte*>(session.source()), row.bytes, session.words(),
                    session.other()};
    for (const std::uint64_t count : {std::uint64_t{1}, sent.iterations}) {
      launch(flow, static_cast<int>(count));
      check_launch();
    }
    row.latency_us = microseconds(row.ctas, sent.iterations * sent.puts);
  } else if (session.me() == session.partner()) {
    await_signals<Waiting>
        <<<1, std::is_same_v<Waiting, weft::device::Warp> ? 32 : 1>>>(session.words(), after);
    check_launch();
  }
  Session::barrier();
  const bool is_missing = session.me() == session.partner() && read_word(session.words()) != after;
  session.add(std::move(row), is_missing ? 1 : 0);
  return after;
}

}  // namespace
}  // namespace weft::perf::gpu
