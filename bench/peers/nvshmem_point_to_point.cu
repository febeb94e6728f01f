// NVSHMEM between PE 0 and PE 1: bandwidth of puts and gets by many CTAs, latency of single
// operations, ping-pongs. Other PEs only take part in what is collective.
#include <algorithm>

#include "nvshmem_session.cuh"

namespace peers {
namespace {
constexpr int kThreadsMax = 512;
constexpr int kThreadsDefault = 256;
constexpr size_t kBudget = size_t{8} << 30;
// Which symmetric words are whose.
constexpr int kPingWord = 0;
constexpr int kAtomicWord = 8;

struct Transfer {
  char* destination;
  const char* source;
  size_t bytes;
  int peer;
};

// Each CTA moves its slice, the same one in every iteration; complete when the kernel ends.
template <bool kGet>
__global__ void __launch_bounds__(kThreadsMax)
    move_slices(Transfer transfer, int iterations, Span* spans) {
  const size_t share = (transfer.bytes + gridDim.x - 1) / gridDim.x;
  const size_t slice = (share + 15) / 16 * 16;
  const size_t begin = slice * blockIdx.x;
  const size_t bytes = begin < transfer.bytes ? min(slice, transfer.bytes - begin) : 0;
  begin_span(spans);
  for (int i = 0; i < iterations && bytes != 0; ++i) {
    if constexpr (kGet) {
      nvshmemx_getmem_nbi_block(transfer.destination + begin, transfer.source + begin, bytes,
                                transfer.peer);
    } else {
      nvshmemx_putmem_nbi_block(transfer.destination + begin, transfer.source + begin, bytes,
                                transfer.peer);
    }
  }
  nvshmem_quiet();
  end_span(spans);
}

template <bool kGet>
__global__ void __launch_bounds__(kThreadsMax)
    move_alone(Transfer transfer, Loop loop, Span* spans) {
  for (int i = -loop.warm_up; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    if constexpr (kGet) {
      nvshmemx_getmem_block(transfer.destination, transfer.source, transfer.bytes, transfer.peer);
    } else {
      nvshmemx_putmem_block(transfer.destination, transfer.source, transfer.bytes, transfer.peer);
      __syncthreads();
      nvshmem_quiet();
      __syncthreads();
    }
  }
  end_span(spans);
}

struct P {
  static constexpr const char* kTitle = "shmem_p_latency";
  int* value;
  int peer;

  __device__ void operator()(int i) const {
    nvshmem_int_p(value, i, peer);
    nvshmem_quiet();
  }
};

// Each get stores what it brought, so that no call can be dropped.
struct G {
  static constexpr const char* kTitle = "shmem_g_latency";
  int* value;
  int peer;
  int* result;

  __device__ void operator()(int) const {
    *static_cast<volatile int*>(result) = nvshmem_int_g(value, peer);
  }
};

struct AtomicInc {
  static constexpr const char* kTitle = "shmem_atomic_inc_latency";
  uint64_t* word;
  int peer;

  __device__ void operator()(int) const {
    nvshmem_uint64_atomic_inc(word, peer);
    nvshmem_quiet();
  }
};

struct AtomicFetchInc {
  static constexpr const char* kTitle = "shmem_atomic_fetch_inc_latency";
  uint64_t* word;
  int peer;
  uint64_t* result;

  __device__ void operator()(int) const {
    *static_cast<volatile uint64_t*>(result) = nvshmem_uint64_atomic_fetch_inc(word, peer);
  }
};

template <class Operation>
__global__ void time_operation(Operation operation, Loop loop, Span* spans) {
  for (int i = -loop.warm_up; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    operation(i);
  }
  end_span(spans);
}

// One side of a ping-pong: the data if any, the word that the peer waits for, my number, the first
// value.
struct Side {
  char* destination;
  const char* source;
  size_t bytes;
  uint64_t* word;
  int me;
  unsigned long long base;
};

struct PutPing {
  static constexpr const char* kTitle = "shmem_put_ping_pong_latency";
  static constexpr const char* kScope = "thread";
  static constexpr bool kSignals = false;

  __device__ static void send(const Side& side, uint64_t value, int peer) {
    nvshmem_putmem(side.destination, side.source, side.bytes, peer);
    nvshmem_fence();
    nvshmem_uint64_p(side.word, value, peer);
  }
};

struct PutSignalPing {
  static constexpr const char* kTitle = "shmem_put_signal_ping_pong_latency";
  static constexpr const char* kScope = "thread";
  static constexpr bool kSignals = true;

  __device__ static void send(const Side& side, uint64_t value, int peer) {
    nvshmem_putmem_signal(side.destination, side.source, side.bytes, side.word, value,
                          NVSHMEM_SIGNAL_SET, peer);
  }
};

struct PutSignalBlockPing {
  static constexpr const char* kTitle = "shmem_put_signal_ping_pong_latency";
  static constexpr const char* kScope = "block";
  static constexpr bool kSignals = true;

  __device__ static void send(const Side& side, uint64_t value, int peer) {
    nvshmemx_putmem_signal_block(side.destination, side.source, side.bytes, side.word, value,
                                 NVSHMEM_SIGNAL_SET, peer);
  }
};

struct SignalPing {
  static constexpr const char* kTitle = "shmem_signal_ping_pong_latency";
  static constexpr const char* kScope = "thread";
  static constexpr bool kSignals = true;

  __device__ static void send(const Side& side, uint64_t value, int peer) {
    nvshmemx_signal_op(side.word, value, NVSHMEM_SIGNAL_SET, peer);
  }
};

// A word that a put writes and one that a signal writes are waited for by different functions.
template <bool kSignals>
__device__ void receive(const Side& side, uint64_t value) {
  if (threadIdx.x == 0) {
    if constexpr (kSignals) {
      nvshmem_signal_wait_until(side.word, NVSHMEM_CMP_GE, value);
    } else {
      nvshmem_uint64_wait_until(side.word, NVSHMEM_CMP_GE, value);
    }
  }
  __syncthreads();
}

template <class Ping>
__global__ void __launch_bounds__(kThreadsMax) ping_pong(Side side, Loop loop, Span* spans) {
  if (side.me > 1) {
    return;
  }
  uint64_t value = side.base;
  for (int i = -loop.warm_up; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    ++value;
    if (side.me == 0) {
      Ping::send(side, value, 1);
      receive<Ping::kSignals>(side, value);
    } else {
      receive<Ping::kSignals>(side, value);
      Ping::send(side, value, 0);
    }
  }
  end_span(spans);
}

int threads_of(const Session& session, int wanted_default, const void* kernel) {
  const int wanted = session.options.threads != 0 ? session.options.threads : wanted_default;
  return Session::threads_for(kernel, wanted);
}

void wait_for(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

// Where a transfer's data is looked at, and who made it: PE 1 receives puts, PE 0 gets.
unsigned verify_move(const Session& session, bool get, size_t bytes) {
  const int receiver = get ? 0 : 1;
  if (session.place.rank != receiver) {
    return 0;
  }
  const Expected expected{Pattern::One, receiver, session.place.count, 1 - receiver};
  return count_errors(session.destination<uint8_t>(), 1, bytes, expected, session.errors);
}

void prepare(Session& session, size_t bytes) {
  fill(session.source<uint8_t>(), 1, bytes, session.place.rank);
  session.clear_destination(bytes);
}

template <bool kGet>
void bandwidth(Session& session) {
  const auto kernel = reinterpret_cast<const void*>(&move_slices<kGet>);
  const Shape shape{std::min(session.options.ctas, kCtasMax),
                    threads_of(session, kThreadsDefault, kernel)};
  for (const size_t size : sizes_of(session.options, {1024, size_t{128} << 20}, kBufferBytes)) {
    const int iterations = iterations_of(session.options, size, kBudget);
    prepare(session, size);
    Row row;
    if (session.place.rank == 0) {
      const Transfer transfer{session.destination<char>(), session.source<char>(), size, 1};
      for (const int count : {std::min(iterations, session.options.warm_up), iterations}) {
        move_slices<kGet><<<shape.ctas, shape.threads>>>(transfer, count, session.spans);
        wait_for("move_slices");
      }
      row.latency_us = session.microseconds(shape.ctas, iterations);
    }
    session.barrier();
    row.bench = kGet ? "shmem_get_bw_uni" : "shmem_put_bw_uni";
    row.scope = "block";
    row.bytes = row.count = size;
    row.iterations = iterations;
    row.ctas = shape.ctas;
    row.threads = shape.threads;
    session.add(Layout::Bandwidth, row, verify_move(session, kGet, size));
  }
}

template <bool kGet>
void block_latency(Session& session) {
  const auto kernel = reinterpret_cast<const void*>(&move_alone<kGet>);
  const int threads = threads_of(session, kThreadsDefault, kernel);
  for (const size_t size : sizes_of(session.options, {8, size_t{64} << 10}, kBufferBytes)) {
    const Loop loop{session.options.warm_up, iterations_of(session.options, size, kBudget)};
    prepare(session, size);
    Row row;
    if (session.place.rank == 0) {
      const Transfer transfer{session.destination<char>(), session.source<char>(), size, 1};
      move_alone<kGet><<<1, threads>>>(transfer, loop, session.spans);
      wait_for("move_alone");
      row.latency_us = session.microseconds(1, loop.iterations);
    }
    session.barrier();
    row.bench = kGet ? "shmem_get_latency" : "shmem_put_latency";
    row.scope = "block";
    row.bytes = row.count = size;
    row.iterations = loop.iterations;
    row.threads = threads;
    session.add(Layout::Latency, row, verify_move(session, kGet, size));
  }
}

template <class Operation>
Row operation_row(Session& session, const Operation& operation, size_t bytes) {
  const Loop loop{session.options.warm_up, session.options.iterations};
  Row row;
  session.barrier();
  if (session.place.rank == 0) {
    time_operation<<<1, 1>>>(operation, loop, session.spans);
    wait_for(Operation::kTitle);
    row.latency_us = session.microseconds(1, loop.iterations);
  }
  session.barrier();
  row.bench = Operation::kTitle;
  row.scope = "thread";
  row.type = bytes == 8 ? "64-bit" : "32-bit";
  row.bytes = bytes;
  row.count = 1;
  row.iterations = loop.iterations;
  return row;
}

template <class T>
T read_word(const T* word) {
  T value{};
  check(cudaMemcpy(&value, word, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy of a word");
  return value;
}

void p_and_g(Session& session) {
  int* value = session.destination<int>();
  const int last = session.options.iterations - 1;
  prepare(session, 64);
  if (session.options.wants("p_latency")) {
    const Row row = operation_row(session, P{value, 1}, sizeof(int));
    const bool wrong = session.place.rank == 1 && read_word(value) != last;
    session.add(Layout::Latency, row, wrong ? 1 : 0);
  }
  if (session.options.wants("g_latency")) {
    prepare(session, 64);
    int* source = session.source<int>();
    int* result = value + 4;
    const Row row = operation_row(session, G{source, 1, result}, sizeof(int));
    int expected = 0;  // the first four bytes of PE 1's pattern
    for (int byte = 3; byte >= 0; --byte) {
      expected = expected * 256 + value_of(1, 0, static_cast<size_t>(byte));
    }
    const bool wrong = session.place.rank == 0 && read_word(result) != expected;
    session.add(Layout::Latency, row, wrong ? 1 : 0);
  }
}

template <class Operation>
void atomic_latency(Session& session, Operation operation) {
  auto* word = reinterpret_cast<uint64_t*>(session.words + kAtomicWord);
  const uint64_t before = read_word(word);
  operation.word = word;
  operation.peer = 1;
  const Row row = operation_row(session, operation, sizeof(uint64_t));
  const uint64_t count = static_cast<uint64_t>(row.iterations) + session.options.warm_up;
  const bool wrong = session.place.rank == 1 && read_word(word) != before + count;
  session.add(Layout::Latency, row, wrong ? 1 : 0);
}

template <class Ping>
void run_ping(Session& session, size_t bytes, int wanted_threads) {
  if (!session.options.wants_scope(Ping::kScope)) {
    return;
  }
  prepare(session, std::max<size_t>(bytes, 8));
  const auto kernel = reinterpret_cast<const void*>(&ping_pong<Ping>);
  const Shape shape{1, Session::threads_for(kernel, wanted_threads)};
  Loop loop{session.options.warm_up, session.options.iterations};
  Side side{session.destination<char>(),
            session.source<char>(),
            bytes,
            reinterpret_cast<uint64_t*>(session.words + kPingWord),
            session.place.rank,
            session.sequence};
  Span* spans = session.spans;
  void* arguments[] = {&side, &loop, &spans};
  session.launch_collective(kernel, shape, arguments);
  session.sequence += static_cast<unsigned long long>(loop.warm_up + loop.iterations);
  Row row;
  row.bench = Ping::kTitle;
  row.scope = Ping::kScope;
  row.bytes = row.count = bytes;
  row.iterations = loop.iterations;
  row.threads = shape.threads;
  unsigned errors = 0;
  if (session.place.rank < 2) {
    row.latency_us = session.microseconds(1, loop.iterations);
    const Expected expected{Pattern::One, session.place.rank, session.place.count,
                            1 - session.place.rank};
    errors = count_errors(session.destination<uint8_t>(), 1, bytes, expected, session.errors);
  }
  session.add(Layout::Latency, row, errors);
}
}  // namespace

void run_bandwidth(Session& session) {
  if (session.place.count < 2 || !session.options.wants_scope("block")) {
    return;
  }
  if (session.options.wants("put_bw")) {
    bandwidth<false>(session);
  }
  if (session.options.wants("get_bw")) {
    bandwidth<true>(session);
  }
}

void run_latency(Session& session) {
  const Options& options = session.options;
  if (session.place.count < 2) {
    return;
  }
  if (options.wants("put_latency") && options.wants_scope("block")) {
    block_latency<false>(session);
  }
  if (options.wants("get_latency") && options.wants_scope("block")) {
    block_latency<true>(session);
  }
  if (!options.wants_scope("thread")) {
    return;
  }
  p_and_g(session);
  if (options.wants("atomic_inc")) {
    atomic_latency(session, AtomicInc{});
  }
  if (options.wants("atomic_fetch_inc")) {
    AtomicFetchInc operation{};
    operation.result = session.destination<uint64_t>();
    atomic_latency(session, operation);
  }
}

void run_ping_pong(Session& session) {
  const Options& options = session.options;
  if (session.place.count < 2) {
    return;
  }
  if (options.wants("put_ping_pong")) {
    for (const size_t size : sizes_of(options, {8, 4096}, size_t{64} << 10)) {
      run_ping<PutPing>(session, size, 1);
    }
  }
  if (options.wants("put_signal_ping_pong")) {
    run_ping<PutSignalPing>(session, 16, 1);
    run_ping<PutSignalBlockPing>(session, 16, kThreadsDefault);
    run_ping<PutSignalBlockPing>(session, 4096, kThreadsDefault);
  }
  if (options.wants("signal_ping_pong")) {
    run_ping<SignalPing>(session, 0, 1);
  }
}
}  // namespace peers
