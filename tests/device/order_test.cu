// Litmus tests of what MEMORY_MODEL.md promises between two PEs: message passing through fence and
// quiet, store buffering, and the order of signals to one peer.
#include <cooperative_groups.h>

#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;

// Rounds have places of their own, zero at first, so that a late store of one cannot pass for
// another's.
struct Litmus {
  std::uint64_t* x;  // symmetric, as y: a word for each round
  std::uint64_t* y;
  std::uint64_t* word;
  std::uint64_t* seen;  // own: what was read in each round
  std::uint32_t rounds;
  int to, from;
};

enum class Order { Fence, Quiet };

template <Order kOrder>
__device__ void order() {
  if constexpr (kOrder == Order::Fence) {
    wd::fence();
  } else {
    wd::quiet();
  }
}

// Block 0: x, order, y. Block 1: waits for y of the other side, and x must be there.
template <Order kOrder>
__global__ void message_passing(Litmus t, Finding* finding) {
  const std::uint32_t step = blockDim.x;
  for (std::uint32_t r = threadIdx.x; r < t.rounds; r += step) {
    if (blockIdx.x == 0) {
      wd::p(t.x + r, std::uint64_t{r} + 1, t.to);
      order<kOrder>();
      wd::p(t.y + r, std::uint64_t{r} + 1, t.to);
    } else {
      wd::wait_until(t.y + r, wd::Comparison::Ne, std::uint64_t{0});
      suite::expect_equal(finding, r, r + 1ULL, wd::g(t.x + r, wd::pe()));
    }
  }
  wd::quiet();
}

// One thread; put_nbi of several words, fence, a signal that only grows. Who sees r sees all
// messages to r.
__global__ void growing_signal(Litmus t, Finding* finding) {
  if (blockIdx.x == 0) {
    for (std::uint32_t r = 0; r < t.rounds; ++r) {
      t.seen[r] = r + 1ULL;  // a draft that stays
      wd::put_nbi(t.x + r, t.seen + r, 1, t.to);
      wd::p(t.y + r, std::uint64_t{r} + 1, t.to);
      wd::fence();
      wd::signal({t.word, r + 1ULL, wd::SignalOp::Set}, t.to);
    }
    wd::quiet();
    return;
  }
  std::uint64_t last = 0;
  for (std::uint32_t r = 0; r < t.rounds; ++r) {
    const std::uint64_t now = wd::signal_wait_until(t.word, wd::Comparison::Ge, r + 1ULL);
    suite::expect_equal(finding, r, 1, now >= last ? 1 : 0);
    suite::expect_equal(finding, r, now, wd::g(t.x + now - 1, wd::pe()));
    suite::expect_equal(finding, r, r + 1ULL, wd::g(t.x + r, wd::pe()));
    suite::expect_equal(finding, r, r + 1ULL, wd::g(t.y + r, wd::pe()));
    last = now;
  }
}

// Pairs of PEs, after meeting: mine at the peer, quiet, theirs here.
__global__ void store_buffering(Litmus t) {
  for (std::uint32_t r = 0; r < t.rounds; ++r) {
    wd::sync_all();
    if (t.to < wd::pe_count()) {
      wd::p(t.x + r, std::uint64_t{1}, t.to);
      wd::quiet();
      t.seen[r] = wd::g(t.x + r, wd::pe());
    }
  }
}

class Memory {
 public:
  explicit Memory(std::uint32_t rounds) : x_(rounds), y_(rounds), word_(1), seen_(rounds) {}

  [[nodiscard]] Litmus at(int to, int from) const {
    return {x_.get(), y_.get(), word_.get(), seen_.get(), static_cast<std::uint32_t>(x_.count()),
            to,       from};
  }

  void clear() {
    x_.fill(0);
    y_.fill(0);
    word_.fill(0);
    suite::require_weft(weft_barrier_all(), "all have cleared");
  }

  [[nodiscard]] const Array<std::uint64_t>& seen() const { return seen_; }

 private:
  Array<std::uint64_t> x_, y_, word_, seen_;
};

using Kernel = void (*)(Litmus, Finding*);

void at_all_distances(Kernel kernel, std::uint32_t threads) {
  Memory memory(suite::rounds(1e5, 64));
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    memory.clear();
    kernel<<<2, threads>>>(memory.at(suite::to_at(d), suite::from_at(d)), findings.get());
    suite::finish("two blocks");
    findings.report("rounds");
  }
}

DEVICE_TEST(by_fence, "p, fence, p: who sees the second sees the first, from one thread") {
  at_all_distances(&message_passing<Order::Fence>, 1);
}

DEVICE_TEST(by_fence_many, "p, fence, p: who sees the second sees the first, from many threads") {
  at_all_distances(&message_passing<Order::Fence>, 64);
}

DEVICE_TEST(by_quiet, "p, quiet, p: who sees the second sees the first") {
  at_all_distances(&message_passing<Order::Quiet>, 64);
}

DEVICE_TEST(
    growing,
    "signals to one peer with fences between keep their order, and all before them is there") {
  at_all_distances(&growing_signal, 1);
}

DEVICE_TEST(buffering,
            "store buffering with quiet: of two PEs one at least sees the other's store") {
  if (suite::pe_count() < 2) {
    suite::skip("needs two PEs");
    return;
  }
  Memory memory(suite::turns(1e5, 16));
  memory.clear();
  store_buffering<<<1, 1>>>(memory.at(suite::me() ^ 1, suite::me() ^ 1));
  suite::finish("meeting");
  // What the peer saw comes through the hosts.
  const std::vector<std::uint64_t> mine = memory.seen().read();
  const std::size_t bytes = mine.size() * sizeof(std::uint64_t);
  auto* here = static_cast<std::uint64_t*>(weft_malloc(bytes));
  suite::require(here != nullptr, "weft_malloc");
  std::memcpy(here, mine.data(), bytes);
  suite::require_weft(weft_barrier_all(), "barrier");
  if (const int peer = suite::me() ^ 1; peer < suite::pe_count()) {
    std::vector<std::uint64_t> theirs(mine.size());
    suite::require_weft(weft_get(theirs.data(), here, bytes, peer), "weft_get");
    for (std::size_t r = 0; r < mine.size(); ++r) {
      if (mine[r] == 0 && theirs[r] == 0) {
        suite::fail("in round %zu neither saw the other's store", r);
        break;
      }
    }
  }
  suite::require_weft(weft_free(here), "weft_free");
}

// Blocks of one kernel: the others' puts, a counter in GPU memory, one thread's quiet and signal
// for all.
__global__ void last_block_signals(Litmus t, unsigned int* done) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < t.rounds) {
    wd::p(t.x + i, std::uint64_t{i} + 1, t.to);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
    __threadfence();
    if (atomicAdd(done, 1U) + 1 == gridDim.x) {
      __threadfence();
      wd::signal({t.word, 1, wd::SignalOp::Set}, t.to);
      wd::quiet();
    }
  }
}

// All blocks put, the grid meets, and one thread's fence and signal are for all. Its block changes
// with the round, so that every ring of commands has its turn.
__global__ void one_fence_for_the_grid(Litmus t) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t step = gridDim.x * blockDim.x;
  for (std::uint32_t r = 0; r * step < t.rounds; ++r) {
    if (const std::uint32_t at = r * step + i; at < t.rounds) {
      wd::p(t.x + at, std::uint64_t{at} + 1, t.to);
    }
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == r % gridDim.x && threadIdx.x == 0) {
      wd::fence();
      wd::signal({t.y + r, 1, wd::SignalOp::Set}, t.to);
    }
  }
  wd::quiet();
}

// The other side: one block, behind the grid in launch order.
__global__ void look_each_round(Litmus t, std::uint32_t step, Finding* finding) {
  for (std::uint32_t r = 0; r * step < t.rounds; ++r) {
    wd::signal_wait_until<wd::Block>(t.y + r, wd::Comparison::Eq, 1);
    const std::uint32_t end = min((r + 1) * step, t.rounds);
    for (std::uint32_t at = r * step + threadIdx.x; at < end; at += blockDim.x) {
      suite::expect_equal(finding, at, at + 1ULL, wd::g(t.x + at, wd::pe()));
    }
    __syncthreads();
  }
}

__global__ void look(Litmus t, Finding* finding) {
  if (threadIdx.x == 0) {
    wd::signal_wait_until(t.word, wd::Comparison::Eq, 1);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < t.rounds; i += blockDim.x) {
    suite::expect_equal(finding, i, i + 1ULL, t.x[i]);
  }
}

DEVICE_TEST(
    grid_fence,
    "the puts of all blocks are there when one thread has fenced for the grid and signals") {
  constexpr std::uint32_t kBlocks = 20;
  constexpr std::uint32_t kThreads = 8;
  Memory memory(suite::rounds(1e5, kBlocks * kThreads));
  const suite::Findings findings;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    suite::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  }
  for (int d = 0; d < suite::pe_count(); ++d) {
    memory.clear();
    const Litmus t = memory.at(suite::to_at(d), suite::from_at(d));
    suite::require_cuda(
        wd::launch_collective(&one_fence_for_the_grid, kBlocks, kThreads, 0, streams[0], t),
        "a grid");
    look_each_round<<<1, 128, 0, streams[1]>>>(t, kBlocks * kThreads, findings.get());
    suite::finish("two kernels");
    findings.report("words");
  }
  for (cudaStream_t stream : streams) {
    cudaStreamDestroy(stream);
  }
}

DEVICE_TEST(last_block,
            "the puts of all blocks are there when the last block signals after their quiets") {
  Memory memory(suite::rounds(1e5, 64));
  const suite::Findings findings;
  const std::uint32_t count = suite::rounds(1e5, 64);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    suite::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  }
  for (int d = 0; d < suite::pe_count(); ++d) {
    memory.clear();
    const Array<unsigned int> done(1, suite::Where::Own);
    const Litmus t = memory.at(suite::to_at(d), suite::from_at(d));
    last_block_signals<<<(count + 127) / 128, 128, 0, streams[0]>>>(t, done.get());
    look<<<1, 256, 0, streams[1]>>>(t, findings.get());
    suite::finish("two kernels");
    findings.report("words");
  }
  for (cudaStream_t stream : streams) {
    cudaStreamDestroy(stream);
  }
}

}  // namespace
