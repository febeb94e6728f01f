// put_ping_pong, put_signal_ping_pong, signal_ping_pong, tagged_ping_pong: PE 0 and its partner
// answer each other; a round trip. The word that is waited for grows from one kernel to the next
// and is never reset.
#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

constexpr std::size_t kBudget = std::size_t{4} << 20U;

// One side: the data if any, the word that the peer waits for, and the value before the first one.
struct Half {
  std::byte* dest;
  const std::byte* source;
  std::size_t bytes;
  std::uint64_t* word;
  int peer;
  bool serves;
  std::uint64_t base;
};

// What a side waits for where the flag is a word of its own.
struct WordPing {
  template <typename Scope>
  static __device__ void wait(const Half& side, std::uint64_t value) {
    wd::signal_wait_until<Scope>(side.word, wd::Comparison::Ge, value);
  }
};

struct PutPing : WordPing {
  template <typename Scope>
  static __device__ void send(const Half& side, std::uint64_t value) {
    wd::put<Scope>(side.dest, side.source, side.bytes, side.peer);
    if (wd::is_leader<Scope>()) {
      wd::fence();
      wd::p(side.word, value, side.peer);
    }
  }
};

struct PutSignalPing : WordPing {
  template <typename Scope>
  static __device__ void send(const Half& side, std::uint64_t value) {
    wd::put_signal<Scope>(side.dest, side.source, side.bytes, {side.word, value, wd::SignalOp::Set},
                          side.peer);
  }
};

struct SignalPing : WordPing {
  template <typename Scope>
  static __device__ void send(const Half& side, std::uint64_t value) {
    if (wd::is_leader<Scope>()) {
      wd::signal({side.word, value, wd::SignalOp::Set}, side.peer);
    }
  }
};

// Data and flag in one word, which lies where the others' data do. The data is the number too: a
// wrong one ends the kernel.
struct TaggedPing {
  template <typename Scope>
  static __device__ void send(const Half& side, std::uint64_t value) {
    wd::put_tagged(word_of(side), value, value, side.peer);
  }

  template <typename Scope>
  static __device__ void wait(const Half& side, std::uint64_t value) {
    if (wd::tagged_wait<std::uint64_t>(word_of(side), value) != value) {
      __trap();
    }
  }

 private:
  static __device__ wd::Tagged* word_of(const Half& side) {
    return reinterpret_cast<wd::Tagged*>(side.dest);
  }
};

template <typename Ping, typename Scope>
__global__ void __launch_bounds__(kTimedThreadsMax, 1)
    ping_pong(Half side, Loop loop, Span* spans) {
  std::uint64_t value = side.base + 1;
  bool sends = side.serves;
  for (int half = -2 * loop.warmup; half < 2 * loop.iterations; ++half, sends = !sends) {
    if (half == 0) {
      begin_span(spans);
    }
    if (sends) {
      Ping::template send<Scope>(side, value);
    } else {
      Ping::template wait<Scope>(side, value);
    }
    value += half & 1;
  }
  end_span(spans);
}

using Kernel = void (*)(Half, Loop, Span*);

template <typename Ping>
Kernel kernel_in(Scope scope) {
  return scope == Scope::Thread ? &ping_pong<Ping, wd::Thread>
         : scope == Scope::Warp ? &ping_pong<Ping, wd::Warp>
                                : &ping_pong<Ping, wd::Block>;
}

Kernel kernel_of(Kind kind, Scope scope) {
  if (kind == Kind::PutPingPong) {
    return kernel_in<PutPing>(scope);
  }
  if (kind == Kind::TaggedPingPong) {
    return &ping_pong<TaggedPing, wd::Thread>;
  }
  return kind == Kind::PutSignalPingPong ? kernel_in<PutSignalPing>(scope)
                                         : &ping_pong<SignalPing, wd::Thread>;
}

struct Measured {
  double us = 0;
  std::uint32_t threads = 1;
};

// `sequence` is how far the words have come.
Measured measure(
    const Session& session, Scope scope, std::size_t bytes, Loop loop, std::uint64_t& sequence) {
  constexpr std::uint32_t kWarpThreads = 32;
  const Options& options = session.options();
  const Kernel kernel = kernel_of(options.kind, scope);
  const std::uint32_t wanted = scope == Scope::Thread ? 1
                               : scope == Scope::Warp ? kWarpThreads
                                                      : options.threads;
  Measured measured{.threads = threads_for(reinterpret_cast<const void*>(kernel), wanted)};
  const Half side{static_cast<std::byte*>(session.dest()),
                  static_cast<const std::byte*>(session.source()),
                  bytes,
                  session.words(),
                  session.other(),
                  session.me() == 0,
                  sequence};
  sequence += static_cast<std::uint64_t>(loop.warmup + loop.iterations);
  if (session.is_one_of_two()) {
    kernel<<<1, measured.threads>>>(side, loop, spans_of_process());
    check_launch();
    measured.us = microseconds(1, static_cast<std::uint64_t>(loop.iterations));
  }
  Session::barrier();
  return measured;
}

void run_size(Session& session, Scope scope, std::size_t bytes, std::uint64_t& sequence) {
  const Options& options = session.options();
  const std::uint64_t iterations = iterations_for(options, bytes, kBudget);
  const Loop loop{static_cast<int>(std::min(iterations, options.warmup_iterations)),
                  static_cast<int>(iterations)};
  prepare_bytes(session, std::max(bytes, sizeof(wd::Tagged)));
  const Measured measured = measure(session, scope, bytes, loop, sequence);
  Row row;
  row.title = "shmem_" + options.name + "_latency";
  row.scope = name_of(scope);
  row.bytes = row.count = bytes;
  row.latency_us = measured.us;
  row.iterations = iterations;
  row.threads = measured.threads;
  std::uint64_t wrong = 0;
  if (options.verifies && session.is_one_of_two() && options.kind != Kind::TaggedPingPong) {
    wrong = count_wrong<std::uint8_t>(
        session.dest(), 1, bytes,
        {Pattern::One, session.me(), session.pe_count(), session.other()});
  }
  session.add(row, wrong);
}

}  // namespace

void run_ping_pong(Session& session) {
  std::uint64_t sequence = 0;
  const Options& options = session.options();
  if (options.kind == Kind::SignalPingPong || options.kind == Kind::TaggedPingPong) {
    return run_size(session, Scope::Thread, 0, sequence);
  }
  for (const Scope scope : options.scopes) {
    for (const std::size_t size : size_sequence(options.sizes)) {
      run_size(session, scope, size, sequence);
    }
  }
}

}  // namespace weft::perf::gpu
