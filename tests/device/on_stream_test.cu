// What the host puts on a stream, each against a host reference, and all of it in a CUDA graph that
// is replayed many times.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/device/device_tools.cuh"

namespace {

using suite::Array;
using suite::random_at;
using suite::require_cuda;
using suite::require_weft;

constexpr std::size_t kLength = 5000;

class Stream {
 public:
  Stream() { require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  ~Stream() { cudaStreamDestroy(stream_); }

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

std::vector<std::uint64_t> words_of(int pe, std::size_t count) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = random_at(suite::seed(), pe, i);
  }
  return values;
}

void expect(const Array<std::uint64_t>& array,
            const std::vector<std::uint64_t>& expected,
            const char* what) {
  const std::vector<std::uint64_t> got = array.read();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] != expected[i]) {
      suite::fail("%s: word %zu is 0x%llx, not 0x%llx", what, i,
                  static_cast<unsigned long long>(got[i]),
                  static_cast<unsigned long long>(expected[i]));
      return;
    }
  }
}

// A source with this PE's words, and a dest of a row for each PE.
struct Memory {
  Array<std::uint64_t> source{kLength * static_cast<std::size_t>(suite::pe_count())};
  Array<std::uint64_t> dest{kLength * static_cast<std::size_t>(suite::pe_count())};
  Array<std::uint64_t> word{1};
  Stream stream;

  Memory() {
    source.write(words_of(suite::me(), source.count()));
    require_weft(weft_barrier_all(), "all have written");
  }
};

DEVICE_TEST(put, "put and quiet on a stream: the data is at every peer") {
  const Memory m;
  for (int d = 0; d < suite::pe_count(); ++d) {
    require_weft(weft_put_on_stream(m.dest.get() + kLength * static_cast<std::size_t>(suite::me()),
                                    m.source.get(), kLength * 8, suite::to_at(d), m.stream.get()),
                 "weft_put_on_stream");
  }
  require_weft(weft_quiet_on_stream(m.stream.get()), "weft_quiet_on_stream");
  suite::finish("put");
  std::vector<std::uint64_t> expected;
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    const auto words = words_of(pe, kLength);
    expected.insert(expected.end(), words.begin(), words.end());
  }
  expect(m.dest, expected, "dest");
}

DEVICE_TEST(get,
            "get on a stream: the data of every peer is here when the stream has come so far") {
  const Memory m;
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    require_weft(weft_get_on_stream(m.dest.get() + kLength * static_cast<std::size_t>(pe),
                                    m.source.get(), kLength * 8 - 3, pe, m.stream.get()),
                 "weft_get_on_stream");
  }
  suite::finish("get");
  std::vector<std::uint64_t> expected;
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    auto words = words_of(pe, kLength);
    words.back() &= 0xFFFFFFFFFFU;  // 3 bytes less
    expected.insert(expected.end(), words.begin(), words.end());
  }
  expect(m.dest, expected, "dest");
}

DEVICE_TEST(put_signal,
            "put_signal on a stream, and a stream that waits for it, at every distance") {
  const Memory m;
  const Array<std::uint64_t> copy(kLength, suite::Where::Own);
  for (int d = 0; d < suite::pe_count(); ++d) {
    const auto row = static_cast<std::size_t>(d) * kLength;
    const weft_signal add{m.word.get(), 1, WEFT_SIGNAL_ADD};
    require_weft(weft_put_signal_on_stream(m.dest.get() + row, m.source.get() + row, kLength * 8,
                                           add, suite::to_at(d), m.stream.get()),
                 "weft_put_signal_on_stream");
    require_weft(weft_signal_wait_until_on_stream(
                     m.word.get(), WEFT_GE, static_cast<std::uint64_t>(d) + 1, m.stream.get()),
                 "weft_signal_wait_until_on_stream");
    // Behind the wait: what came is taken by the stream itself.
    require_cuda(cudaMemcpyAsync(copy.get(), m.dest.get() + row, kLength * 8,
                                 cudaMemcpyDeviceToDevice, m.stream.get()),
                 "cudaMemcpyAsync");
    require_cuda(cudaStreamSynchronize(m.stream.get()), "put_signal");
    const auto words =
        words_of(suite::from_at(d), kLength * static_cast<std::size_t>(suite::pe_count()));
    expect(copy,
           {words.begin() + static_cast<std::ptrdiff_t>(row),
            words.begin() + static_cast<std::ptrdiff_t>(row + kLength)},
           "behind the wait");
    // Nobody is a distance ahead: any PE's signals would count.
    suite::finish("put_signal");
  }
  require_weft(
      weft_signal_on_stream({m.word.get(), 77, WEFT_SIGNAL_SET}, suite::to_at(1), m.stream.get()),
      "weft_signal_on_stream");
  require_weft(weft_signal_wait_until_on_stream(m.word.get(), WEFT_EQ, 77, m.stream.get()),
               "waiting");
  suite::finish("signal");
}

// 400 rows, of which every seventh is empty, in reverse order; the list is the host's, and changes
// when the call returns.
DEVICE_TEST(putv, "putv and putv_signal on a stream: each segment is in its place") {
  constexpr std::size_t kRows = 400;
  constexpr std::size_t kWords = 60;
  const Array<std::uint64_t> dest(kRows * kWords);
  Array<std::uint64_t> source(kRows * kWords, suite::Where::Own);
  const Array<std::uint64_t> word(1);
  const Stream stream;
  const auto words_in = [](std::size_t row) { return row % 7 == 0 ? 0 : 1 + row % kWords; };
  for (int d = 0; d < suite::pe_count(); ++d) {
    source.write(words_of(suite::me() + d * suite::pe_count(), kRows * kWords));
    require_cuda(cudaMemset(dest.get(), 0, dest.count() * 8), "cudaMemset");
    suite::finish("dest is empty");
    std::vector<weft_segment> list;
    for (std::size_t row = 0; row < kRows; ++row) {
      list.push_back({dest.get() + (kRows - 1 - row) * kWords, source.get() + row * kWords,
                      words_in(row) * 8});
    }
    const auto expected_signals = static_cast<std::uint64_t>(d) + 1;
    if (d % 2 == 0) {
      require_weft(weft_putv_signal_on_stream(list.data(), kRows, {word.get(), 1, WEFT_SIGNAL_ADD},
                                              suite::to_at(d), stream.get()),
                   "weft_putv_signal_on_stream");
    } else {
      require_weft(weft_putv_on_stream(list.data(), kRows, suite::to_at(d), stream.get()),
                   "weft_putv_on_stream");
      require_weft(weft_quiet_on_stream(stream.get()), "quiet");
      require_weft(weft_putv_signal_on_stream(nullptr, 0, {word.get(), 1, WEFT_SIGNAL_ADD},
                                              suite::to_at(d), stream.get()),
                   "weft_putv_signal_on_stream of nothing");
    }
    list.assign(kRows, {});
    require_weft(
        weft_signal_wait_until_on_stream(word.get(), WEFT_EQ, expected_signals, stream.get()),
        "wait");
    suite::finish("putv");
    const auto sent = words_of(suite::from_at(d) + d * suite::pe_count(), kRows * kWords);
    std::vector<std::uint64_t> expected(kRows * kWords);
    for (std::size_t row = 0; row < kRows; ++row) {
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(row * kWords), words_in(row),
                  expected.begin() + static_cast<std::ptrdiff_t>((kRows - 1 - row) * kWords));
    }
    expect(dest, expected, "dest");
  }
}

DEVICE_TEST(exchanges, "alltoall, broadcast and fcollect of the world on a stream") {
  const Memory m;
  const int root = suite::pe_count() - 1;
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  std::vector<std::uint64_t> every, turned;
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    const auto words = words_of(pe, kLength * pes);
    every.insert(every.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(kLength));
    const auto mine = words.begin() +
                      static_cast<std::ptrdiff_t>(kLength * static_cast<std::size_t>(suite::me()));
    turned.insert(turned.end(), mine, mine + static_cast<std::ptrdiff_t>(kLength));
  }
  require_weft(weft_team_alltoall_on_stream(WEFT_TEAM_WORLD, m.dest.get(), m.source.get(),
                                            kLength * 8, m.stream.get()),
               "alltoall");
  suite::finish("alltoall");
  expect(m.dest, turned, "alltoall");
  require_weft(weft_team_fcollect_on_stream(WEFT_TEAM_WORLD, m.dest.get(), m.source.get(),
                                            kLength * 8, m.stream.get()),
               "fcollect");
  suite::finish("fcollect");
  expect(m.dest, every, "fcollect");
  require_weft(weft_team_broadcast_on_stream(WEFT_TEAM_WORLD, m.dest.get(), m.source.get(),
                                             kLength * 8, root, m.stream.get()),
               "broadcast");
  suite::finish("broadcast");
  expect(m.dest, words_of(root, kLength), "broadcast");
}

std::vector<std::uint64_t> sum_of_all(std::size_t first, std::size_t count) {
  std::vector<std::uint64_t> sum(count);
  for (int pe = 0; pe < suite::pe_count(); ++pe) {
    const auto words = words_of(pe, first + count);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += words[first + i];
    }
  }
  return sum;
}

DEVICE_TEST(reductions, "reduce, also in place, and reduce_scatter on a stream") {
  const Memory m;
  const weft_elements elements{WEFT_UINT64, kLength};
  require_weft(weft_team_reduce_scatter_on_stream(WEFT_TEAM_WORLD, m.dest.get(), m.source.get(),
                                                  elements, WEFT_SUM, m.stream.get()),
               "reduce_scatter");
  suite::finish("reduce_scatter");
  expect(m.dest, sum_of_all(kLength * static_cast<std::size_t>(suite::me()), kLength),
         "reduce_scatter");
  require_weft(weft_team_reduce_on_stream(WEFT_TEAM_WORLD, m.dest.get(), m.source.get(), elements,
                                          WEFT_SUM, m.stream.get()),
               "reduce");
  suite::finish("reduce");
  expect(m.dest, sum_of_all(0, kLength), "reduce");
  require_weft(weft_team_reduce_on_stream(WEFT_TEAM_WORLD, m.source.get(), m.source.get(), elements,
                                          WEFT_SUM, m.stream.get()),
               "reduce");
  suite::finish("reduce");
  expect(m.source, sum_of_all(0, kLength), "reduce in place");
}

DEVICE_TEST(barriers, "what was put before a barrier on a stream is there behind it") {
  const Memory m;
  const std::uint32_t rounds = suite::turns(1000, 8);
  const Array<std::uint64_t> copy(rounds, suite::Where::Own);
  for (std::uint32_t r = 0; r < rounds; ++r) {
    require_weft(weft_put_on_stream(m.dest.get() + r % 2, m.source.get() + r % 100, 8,
                                    suite::to_at(1), m.stream.get()),
                 "put");
    require_weft(weft_barrier_all_on_stream(m.stream.get()), "weft_barrier_all_on_stream");
    require_cuda(cudaMemcpyAsync(copy.get() + r, m.dest.get() + r % 2, 8, cudaMemcpyDeviceToDevice,
                                 m.stream.get()),
                 "cudaMemcpyAsync");
  }
  require_weft(weft_team_sync_on_stream(WEFT_TEAM_WORLD, m.stream.get()),
               "weft_team_sync_on_stream");
  suite::finish("barriers");
  std::vector<std::uint64_t> expected(rounds);
  for (std::uint32_t r = 0; r < rounds; ++r) {
    expected[r] = random_at(suite::seed(), suite::from_at(1), r % 100);
  }
  expect(copy, expected, "behind the barrier");
}

DEVICE_TEST(arguments,
            "wrong arguments are refused at the call, and nothing is put on the stream") {
  const Memory m;
  const int pes = suite::pe_count();
  int own = 0;
  const weft_segment good{m.dest.get(), m.source.get(), 8};
  const weft_segment lists[][2] = {{good, {&own, m.source.get(), 4}},
                                   {good, {m.dest.get(), &own, 4}}};
  for (const auto& list : lists) {
    if (weft_putv_on_stream(list, 2, 0, m.stream.get()) != WEFT_INVALID_ARGUMENT ||
        std::strstr(weft_last_error(), "weft_putv_on_stream: segment 1 of 2: ") == nullptr) {
      suite::fail("putv said: %s", weft_last_error());
    }
  }
  const int statuses[] = {weft_putv_on_stream(nullptr, 2, 0, m.stream.get()),
                          weft_putv_on_stream(nullptr, 0, pes, m.stream.get()),
                          weft_put_on_stream(m.dest.get(), m.source.get(), 8, pes, m.stream.get()),
                          weft_put_on_stream(&own, m.source.get(), 4, 0, m.stream.get()),
                          weft_get_on_stream(m.dest.get(), &own, 4, 0, m.stream.get()),
                          weft_signal_on_stream({nullptr, 1, WEFT_SIGNAL_SET}, 0, m.stream.get()),
                          weft_team_broadcast_on_stream(WEFT_TEAM_WORLD, m.dest.get(),
                                                        m.source.get(), 8, pes, m.stream.get()),
                          weft_team_sync_on_stream(WEFT_TEAM_INVALID, m.stream.get())};
  for (std::size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i) {
    if (statuses[i] != WEFT_INVALID_ARGUMENT) {
      suite::fail("call %zu returned %d", i, statuses[i]);
    }
  }
  suite::finish("nothing");
}

// ---- Calls of the host that wait for kernels

constexpr std::size_t kBulk = 40001;  // bytes: between nodes the proxy copies them

// Sends late, so that the host is in its call by then; ends when the peer's data is here.
__global__ void exchange_late(std::uint8_t* dest,
                              const std::uint8_t* source,
                              std::uint64_t* word,
                              int to,
                              std::uint64_t turn) {
  if (threadIdx.x == 0) {
    const std::uint64_t begin_ns = suite::wd::now_ns();
    while (suite::wd::now_ns() - begin_ns < 50'000'000) {
      __nanosleep(1000);
    }
  }
  __syncthreads();
  suite::wd::put_signal<suite::wd::Block>(dest, source, kBulk, {word, 1, suite::wd::SignalOp::Add},
                                          to);
  suite::wd::signal_wait_until<suite::wd::Block>(word, suite::wd::Comparison::Ge, turn);
}

template <int kNumber>
__global__ void launched_first(std::uint8_t* bytes) {
  bytes[threadIdx.x] = static_cast<std::uint8_t>(bytes[threadIdx.x] * kNumber + 1);
}

// Each waits for the kernel, or may: CUDA loads a kernel when it is launched first.
const std::vector<std::pair<const char*, void (*)(std::uint8_t*)>> kHostCalls{
    {"the first launch of a kernel", [](std::uint8_t* own) { launched_first<1><<<1, 32>>>(own); }},
    {"cudaMemcpy to pageable memory",
     [](std::uint8_t* own) {
       std::vector<std::uint8_t> here(std::size_t{1} << 20);
       require_cuda(cudaMemcpy(here.data(), own, here.size(), cudaMemcpyDeviceToHost),
                    "cudaMemcpy");
     }},
    {"cudaMalloc and cudaFree",
     [](std::uint8_t* /*own*/) {
       void* memory = nullptr;
       require_cuda(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
       require_cuda(cudaFree(memory), "cudaFree");
     }},
    {"cudaDeviceSynchronize",
     [](std::uint8_t* /*own*/) { require_cuda(cudaDeviceSynchronize(), "synchronizing"); }},
};

DEVICE_TEST(host_calls,
            "kernels that wait for bulk data end while the host waits for them in CUDA") {
  Array<std::uint8_t> source(kBulk);
  const Array<std::uint8_t> dest(kBulk);
  const Array<std::uint64_t> word(1);
  const Array<std::uint8_t> own(std::size_t{1} << 20, suite::Where::Own);
  std::uint64_t turn = 0;
  for (const auto& [name, call] : kHostCalls) {
    const auto byte_of = [&turn](int pe) { return static_cast<std::uint8_t>(16 * turn + pe); };
    ++turn;
    source.fill(byte_of(suite::me()));
    require_weft(weft_barrier_all(), "all have written");
    exchange_late<<<1, 64>>>(dest.get(), source.get(), word.get(), suite::to_at(1), turn);
    call(own.get());
    suite::finish(name);
    const std::vector<std::uint8_t> got = dest.read();
    const auto wrong = std::count_if(got.begin(), got.end(), [&](std::uint8_t byte) {
      return byte != byte_of(suite::from_at(1));
    });
    if (wrong != 0) {
      suite::fail("%s: %td of %zu bytes are not the peer's", name, wrong, kBulk);
    }
  }
}

// ---- Graphs

__global__ void count_up(std::uint64_t* source, std::uint64_t* word) {
  for (std::size_t i = threadIdx.x; i < 64; i += blockDim.x) {
    source[i] += 1;
  }
  if (threadIdx.x == 0) {
    *word = 0;  // this replay's signal is waited for
  }
}

// Puts one round on the stream: counts up, meets, sends to the right, waits for the left, and
// combines.
void capture_round(const Memory& m,
                   const Array<std::uint64_t>& wide,
                   const Array<std::uint64_t>& sum) {
  cudaStream_t stream = m.stream.get();
  count_up<<<1, 64, 0, stream>>>(m.source.get(), m.word.get());
  require_weft(weft_barrier_all_on_stream(stream), "barrier");
  require_weft(
      weft_put_signal_on_stream(m.dest.get(), m.source.get(), 64 * 8,
                                {m.word.get(), 1, WEFT_SIGNAL_ADD}, suite::to_at(1), stream),
      "put_signal");
  require_weft(weft_signal_wait_until_on_stream(m.word.get(), WEFT_EQ, 1, stream), "wait");
  // All of a reduction's members have read what came, so the next round may overwrite it.
  require_weft(weft_team_reduce_on_stream(WEFT_TEAM_WORLD, sum.get(), m.dest.get(),
                                          {WEFT_UINT64, 64}, WEFT_SUM, stream),
               "reduce");
  require_weft(weft_team_alltoall_on_stream(WEFT_TEAM_WORLD, wide.get(), m.source.get(), 8, stream),
               "alltoall");
}

DEVICE_TEST(graph,
            "a CUDA graph of put_signal, wait, alltoall, reduce and barrier, replayed 1e4 times") {
  Memory m;
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const Array<std::uint64_t> wide(pes);
  const Array<std::uint64_t> sum(64);
  m.source.fill(0);
  require_weft(weft_barrier_all(), "all are at zero");
  cudaStream_t stream = m.stream.get();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
  capture_round(m, wide, sum);
  require_cuda(cudaStreamEndCapture(stream, &graph), "capturing");
  require_cuda(cudaGraphInstantiate(&runnable, graph, 0), "making the graph");
  const std::uint32_t replays = suite::turns(1e4, 20);
  for (std::uint32_t r = 0; r < replays; ++r) {
    require_cuda(cudaGraphLaunch(runnable, stream), "replaying");
  }
  suite::finish("the graph");
  expect(sum, std::vector<std::uint64_t>(64, std::uint64_t{replays} * pes), "reduce");
  expect(wide, std::vector<std::uint64_t>(pes, replays), "alltoall");
  require_cuda(cudaGraphExecDestroy(runnable), "the graph");
  require_cuda(cudaGraphDestroy(graph), "the graph");
}

// ---- Sizes: a call's parcels or stores must not meet those of the calls around it

// One size in a graph that is replayed; every replay has other words, and checks what came on the
// GPU.
struct Sized {
  std::uint64_t* source;  // a block for each PE
  std::uint64_t* dest;
  std::uint32_t* replay;  // how many there were
  std::size_t count;      // words of a block
};

inline __device__ std::uint64_t sized_word(int pe, std::size_t index, std::uint32_t replay) {
  return static_cast<std::uint64_t>(pe + 1) * 1000003 + index * 7 + std::uint64_t{replay} * 7919;
}

__global__ void next_words(Sized sized, std::size_t words) {
  const std::uint32_t replay = *sized.replay + 1;
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) {
    sized.source[i] = sized_word(suite::wd::pe(), i, replay);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    *sized.replay = replay;
  }
}

enum class Came { Alltoall, Fcollect, Broadcast, Sum, SumScatter };

template <Came kCame>
__global__ void check_words(Sized sized, int root, suite::Finding* finding) {
  const int pes = suite::wd::pe_count();
  const int me = suite::wd::pe();
  const bool has_blocks = kCame == Came::Alltoall || kCame == Came::Fcollect;
  const std::size_t words = sized.count * (has_blocks ? static_cast<std::size_t>(pes) : 1);
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) {
    const auto block = static_cast<int>(i / sized.count);
    const std::size_t index = i % sized.count;
    const std::size_t mine = static_cast<std::size_t>(me) * sized.count + index;
    std::uint64_t expected = 0;
    if (kCame == Came::Alltoall) {
      expected = sized_word(block, mine, *sized.replay);
    } else if (kCame == Came::Fcollect) {
      expected = sized_word(block, index, *sized.replay);
    } else if (kCame == Came::Broadcast) {
      expected = sized_word(root, index, *sized.replay);
    } else {
      for (int pe = 0; pe < pes; ++pe) {
        expected += sized_word(pe, kCame == Came::Sum ? index : mine, *sized.replay);
      }
    }
    suite::expect_equal(finding, std::uint64_t{*sized.replay} << 32U | i, expected, sized.dest[i]);
  }
}

// A PE that is behind would still write into dest: the call's own end shows that all are done with
// it.
template <Came kCame, typename Call>
void capture_checked(
    const Sized& sized, int root, suite::Finding* finding, cudaStream_t stream, Call&& call) {
  require_weft(call(), "a collective");
  check_words<kCame><<<1, 256, 0, stream>>>(sized, root, finding);
}

void capture_sizes(const Sized& sized, suite::Finding* finding, cudaStream_t stream) {
  const std::size_t bytes = sized.count * 8;
  const int pes = suite::pe_count();
  const weft_elements elements{WEFT_UINT64, sized.count};
  next_words<<<1, 512, 0, stream>>>(sized, sized.count * static_cast<std::size_t>(pes));
  capture_checked<Came::Alltoall>(sized, 0, finding, stream, [&] {
    return weft_team_alltoall_on_stream(WEFT_TEAM_WORLD, sized.dest, sized.source, bytes, stream);
  });
  for (int root = 0; root < pes && root < 3; ++root) {
    capture_checked<Came::Broadcast>(sized, root, finding, stream, [&] {
      return weft_team_broadcast_on_stream(WEFT_TEAM_WORLD, sized.dest, sized.source, bytes, root,
                                           stream);
    });
  }
  capture_checked<Came::Sum>(sized, 0, finding, stream, [&] {
    return weft_team_reduce_on_stream(WEFT_TEAM_WORLD, sized.dest, sized.source, elements, WEFT_SUM,
                                      stream);
  });
  capture_checked<Came::Fcollect>(sized, 0, finding, stream, [&] {
    return weft_team_fcollect_on_stream(WEFT_TEAM_WORLD, sized.dest, sized.source, bytes, stream);
  });
  capture_checked<Came::SumScatter>(sized, 0, finding, stream, [&] {
    return weft_team_reduce_scatter_on_stream(WEFT_TEAM_WORLD, sized.dest, sized.source, elements,
                                              WEFT_SUM, stream);
  });
}

void replay_size(std::size_t count, std::uint32_t replays) {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const Array<std::uint64_t> source(count * pes);
  const Array<std::uint64_t> dest(count * pes);
  const Array<std::uint32_t> replay(1, suite::Where::Own);
  const suite::Findings findings;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  require_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capturing");
  capture_sizes({source.get(), dest.get(), replay.get(), count}, findings.get(), stream.get());
  require_cuda(cudaStreamEndCapture(stream.get(), &graph), "capturing");
  require_cuda(cudaGraphInstantiate(&runnable, graph, 0), "making the graph");
  for (std::uint32_t r = 0; r < replays; ++r) {
    require_cuda(cudaGraphLaunch(runnable, stream.get()), "replaying");
  }
  suite::finish("the graph");
  findings.report(("blocks of " + std::to_string(count) + " words").c_str());
  require_cuda(cudaGraphExecDestroy(runnable), "the graph");
  require_cuda(cudaGraphDestroy(graph), "the graph");
}

DEVICE_TEST(sizes,
            "every collective with blocks of 8 B to 1 MiB in a CUDA graph, each replay checked") {
  for (const std::size_t count : {1, 100, 1000, 1025, 5000, 20000, 40000, 70000, 131072}) {
    replay_size(count, suite::turns(count < 5000 ? 2000 : 200, 5));
  }
}

}  // namespace
