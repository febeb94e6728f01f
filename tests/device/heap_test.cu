// A heap that starts with 64 MiB and grows: peers reach late blocks as they reach the first ones,
// freed memory returns to the GPU, and what cannot be had changes nothing. With --scale 20 the
// three blocks have 20 GiB each.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Finding;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Before main, and so before weft_init.
[[maybe_unused]] const int kEnvironment = setenv("WEFT_DEVICE_HEAP_SIZE", "64M", 1);

constexpr std::uint32_t kWindows = 3;  // of a block: at its start, in its middle, at its end
constexpr std::uint32_t kCount = 1U << 20U;

bool grows() {
  const char* kind = std::getenv("WEFT_DEVICE_MEMORY");
  const char* most = std::getenv("WEFT_DEVICE_HEAP_MAX");
  const bool is_static =
      (kind != nullptr && std::strcmp(kind, "ipc") == 0) || (most != nullptr && most[0] == '0');
  if (is_static) {
    suite::skip("WEFT_DEVICE_MEMORY or WEFT_DEVICE_HEAP_MAX keep the heap from growing");
  }
  return !is_static;
}

// 1 GiB by --scale; at least so much that each block gets a chunk of its own.
std::size_t block_bytes() {
  const auto scaled = static_cast<std::size_t>(suite::options().scale * 1024.0);
  return std::max<std::size_t>(scaled, 256) * kMiB;
}

// A block of the heap, not cleared.
class Block {
 public:
  explicit Block(std::size_t bytes) : data_(weft_device_malloc(bytes)) {
    suite::require(data_ != nullptr, "weft_device_malloc");
  }

  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  ~Block() { free(); }

  void free() {
    suite::require_weft(weft_device_free(data_), "weft_device_free");
    data_ = nullptr;
  }

  [[nodiscard]] std::uint32_t* get() const { return static_cast<std::uint32_t*>(data_); }

 private:
  void* data_;
};

// All of these but `back` are symmetric.
struct Talk {
  std::uint32_t* in;
  std::uint32_t* out;
  std::uint32_t* back;      // of this GPU, kWindows * kCount
  std::uint64_t* words;     // a signal for each window
  std::uint32_t* small;     // an element for each window
  std::uint32_t* sums;      // an atomic for each window
  std::size_t middle, end;  // where the windows are, in elements
  int to, from;
  std::uint64_t arrivals;  // that a word counts by the end
  std::uint64_t seed;
};

inline __device__ std::uint32_t element(const Talk& talk, int sender, std::uint32_t i) {
  return static_cast<std::uint32_t>(
      suite::random_at(talk.seed, sender, std::uint64_t{blockIdx.x} << 32U | i));
}

// A block of threads for each window.
__global__ void talk_in_windows(Talk talk, Finding* finding) {
  const std::uint32_t window = blockIdx.x;
  const std::size_t at = window == 0 ? 0 : window == 1 ? talk.middle : talk.end;
  std::uint32_t* in = talk.in + at;
  std::uint32_t* out = talk.out + at;
  std::uint32_t* back = talk.back + std::size_t{window} * kCount;
  for (std::uint32_t i = threadIdx.x; i < kCount; i += blockDim.x) {
    out[i] = element(talk, wd::pe(), i);
    back[i] = 0;
  }
  __syncthreads();
  wd::put_signal<wd::Block>(in, out, kCount, {talk.words + window, 1, wd::SignalOp::Add}, talk.to);
  wd::signal_wait_until<wd::Block>(talk.words + window, wd::Comparison::Ge, talk.arrivals);
  for (std::uint32_t i = threadIdx.x; i < kCount; i += blockDim.x) {
    suite::expect_equal(finding, std::uint64_t{window} << 32U | i, element(talk, talk.from, i),
                        in[i]);
  }
  wd::quiet();
  __syncthreads();
  wd::get<wd::Block>(back, in, kCount, talk.to);
  for (std::uint32_t i = threadIdx.x; i < kCount; i += blockDim.x) {
    suite::expect_equal(finding, std::uint64_t{window + 10} << 32U | i, element(talk, wd::pe(), i),
                        back[i]);
  }
  if (threadIdx.x == 0) {
    suite::expect_equal(finding, std::uint64_t{window + 20} << 32U, element(talk, wd::pe(), 7),
                        wd::g(in + 7, talk.to));
    wd::p(talk.small + window, element(talk, wd::pe(), 9), talk.to);
    wd::atomic_add(talk.sums + window, window + 1, talk.to);
    wd::quiet();
  }
}

// Words, small elements and sums lie at the end of `third`.
struct Tail {
  std::uint64_t words[kWindows];
  std::uint32_t small[kWindows];
  std::uint32_t sums[kWindows];
};

std::uint32_t small_of(std::uint64_t seed, int sender, std::uint32_t window) {
  return static_cast<std::uint32_t>(
      suite::random_at(seed, sender, std::uint64_t{window} << 32U | 9));
}

// All PEs with those at each distance, themselves included.
void talk_through(const char* name, const Block& in, const Block& out, const Block& third) {
  const std::size_t bytes = block_bytes();
  const suite::Array<std::uint32_t> back(std::size_t{kWindows} * kCount, suite::Where::Own);
  auto* tail = reinterpret_cast<Tail*>(reinterpret_cast<char*>(third.get()) + bytes - sizeof(Tail));
  suite::require_cuda(cudaMemset(tail, 0, sizeof(Tail)), "cudaMemset");
  suite::require_cuda(cudaDeviceSynchronize(), "cudaMemset");
  suite::require_weft(weft_barrier_all(), name);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    const std::uint64_t seed = suite::seed() + static_cast<std::uint64_t>(d);
    talk_in_windows<<<kWindows, 256>>>(
        {in.get(), out.get(), back.get(), tail->words, tail->small, tail->sums,
         bytes / sizeof(std::uint32_t) / 2, bytes / sizeof(std::uint32_t) - kCount, suite::to_at(d),
         suite::from_at(d), static_cast<std::uint64_t>(d) + 1, seed},
        findings.get());
    suite::finish(name);
    findings.report(name);
    Tail seen{};
    suite::require_cuda(cudaMemcpy(&seen, tail, sizeof(Tail), cudaMemcpyDeviceToHost),
                        "cudaMemcpy of a late block");
    for (std::uint32_t w = 0; w < kWindows; ++w) {
      const bool is_right = seen.words[w] == static_cast<std::uint64_t>(d) + 1 &&
                            seen.small[w] == small_of(seed, suite::from_at(d), w) &&
                            seen.sums[w] == (w + 1) * (static_cast<std::uint32_t>(d) + 1);
      if (!is_right) {
        suite::fail("%s: window %u, distance %d: word %llu, element 0x%x, sum %u", name, w, d,
                    static_cast<unsigned long long>(seen.words[w]), seen.small[w], seen.sums[w]);
      }
    }
    suite::require_weft(weft_barrier_all(), name);
  }
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  suite::require_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

// A call that must fail, on all PEs: `status`, and `words` in the message.
void expect_error(const void* address, int status, const char* words) {
  const std::string said = weft_last_error();
  const int taken = weft_take_error();
  if (address != nullptr || taken != status || said.find(words) == std::string::npos) {
    suite::fail("expected status %d and '%s', got %d: %.150s", status, words, taken, said.c_str());
  }
}

DEVICE_TEST(three_late_blocks,
            "peers put to, get from and update three blocks of a heap that grows") {
  if (!grows()) {
    return;
  }
  const Block in(block_bytes());
  const Block out(block_bytes());
  const Block third(block_bytes());
  if (weft_device_ptr(in.get(), suite::me()) != in.get()) {
    suite::fail("weft_device_ptr of the own block: %s", weft_last_error());
  }
  talk_through("three blocks", in, out, third);
}

DEVICE_TEST(freed_and_taken_again,
            "freed blocks return to the GPU, and new ones in their place work") {
  if (!grows()) {
    return;
  }
  const std::size_t bytes = block_bytes();
  for (int round = 0; round < 2; ++round) {
    suite::require_weft(weft_barrier_all(), "before");
    const std::size_t before = free_bytes();
    {
      const Block in(bytes);
      Block out(bytes);
      const Block third(bytes);
      const std::uint32_t* const middle = out.get();
      out.free();
      if (weft_device_ptr(middle, suite::me()) != nullptr) {
        suite::fail("weft_device_ptr still knows a block that was freed");
      }
      weft_take_error();
      const Block again(bytes);
      talk_through(round == 0 ? "taken again" : "taken again, second round", in, again, third);
      suite::require_weft(weft_barrier_all(), "with blocks");
      if (!suite::is_shared() && free_bytes() + 3 * bytes > before + bytes / 2) {
        suite::fail("three blocks of %zu MiB took %zu MiB", bytes / kMiB,
                    (before - free_bytes()) / kMiB);
      }
      suite::require_weft(weft_barrier_all(), "with blocks");
    }
    suite::require_weft(weft_barrier_all(), "after");
    // After the first launches CUDA keeps memory for itself, so the first round is no measure.
    if (!suite::is_shared() && round > 0 && free_bytes() + 64 * kMiB < before) {
      suite::fail("%zu MiB did not return to the GPU", (before - free_bytes()) / kMiB);
    }
    suite::require_weft(weft_barrier_all(), "after");
  }
}

DEVICE_TEST(alignments,
            "weft_device_align gives multiples of up to 1 GiB and refuses what no heap has") {
  if (!grows()) {
    return;
  }
  for (std::size_t alignment = 1; alignment <= 1024 * kMiB; alignment *= 2) {
    void* const odd = weft_device_malloc(300);
    void* const block = weft_device_align(alignment, 1000);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (block == nullptr || address % std::max<std::size_t>(alignment, 256) != 0) {
      suite::fail("alignment %zu: %p %s", alignment, block, weft_last_error());
    }
    suite::require_weft(weft_device_free(odd), "weft_device_free");
    suite::require_weft(weft_device_free(block), "weft_device_free");
  }
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{384}, std::size_t{1} << 50U}) {
    expect_error(weft_device_align(wrong, 64), WEFT_INVALID_ARGUMENT,
                 "weft_device_align: the alignment");
  }
}

DEVICE_TEST(too_much, "what no GPU has is refused with a message, and the heap stays as it was") {
  if (!grows()) {
    return;
  }
  expect_error(weft_device_malloc(std::size_t{1} << 40U), WEFT_OUT_OF_MEMORY,
               "and it cannot grow: ");
  const Block in(block_bytes());
  const Block out(block_bytes());
  const Block third(block_bytes());
  talk_through("after a refusal", in, out, third);
}

DEVICE_TEST(on_a_stream, "functions on a stream take late blocks, and refuse memory between them") {
  if (!grows()) {
    return;
  }
  const auto count = static_cast<std::size_t>(suite::pe_count());
  Block late(block_bytes());
  const Block last(block_bytes());
  std::uint32_t* const dest = last.get();
  const suite::Array<std::uint32_t> source(1);
  const auto mine = static_cast<std::uint32_t>(suite::me()) + 77;
  suite::require_cuda(cudaMemcpy(source.get(), &mine, sizeof mine, cudaMemcpyHostToDevice),
                      "source");
  suite::require_weft(
      weft_team_fcollect_on_stream(WEFT_TEAM_WORLD, dest, source.get(), sizeof mine, nullptr),
      "fcollect into a late block");
  suite::finish("fcollect");
  std::vector<std::uint32_t> seen(count);
  suite::require_cuda(cudaMemcpy(seen.data(), dest, count * sizeof mine, cudaMemcpyDeviceToHost),
                      "dest");
  for (std::size_t pe = 0; pe < count; ++pe) {
    if (seen[pe] != pe + 77) {
      suite::fail("fcollect: element %zu is %u", pe, seen[pe]);
    }
  }
  std::uint32_t* const gone = late.get();
  late.free();
  const int status = weft_put_on_stream(gone, source.get(), sizeof mine, 0, nullptr);
  if (status != WEFT_INVALID_ARGUMENT) {
    suite::fail("a put on a stream to a freed block: status %d", status);
  }
  weft_take_error();
  suite::finish("after a refused put");
}

}  // namespace
