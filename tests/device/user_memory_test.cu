// GPU memory of the program: registered as a local side of puts and gets, and made symmetric.
// Memory of cudaMalloc and of virtual memory management; what is refused, each with its sentence.
#include <string>
#include <vector>

#include "tests/device/device_tools.cuh"
#include "tests/device/virtual_memory.cuh"

namespace {

namespace wd = weft::device;

using suite::VirtualMemory;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kCount = kMiB;  // elements of a buffer

// `in` and `word` are symmetric; `out` and `back` are this GPU's.
struct Talk {
  std::uint32_t* in;
  std::uint32_t* out;
  std::uint32_t* back;
  std::uint64_t* word;
  std::size_t count;
  std::uint64_t arrivals;  // that the word counts by the end
  int to;
};

__global__ void __launch_bounds__(256, 1) exchange(Talk talk) {
  wd::put_signal<wd::Block>(talk.in, talk.out, talk.count, {talk.word, 1, wd::SignalOp::Add},
                            talk.to);
  wd::signal_wait_until<wd::Block>(talk.word, wd::Comparison::Ge, talk.arrivals);
  if (threadIdx.x == 0) {
    wd::quiet();  // what is got next was put first
  }
  __syncthreads();
  wd::get<wd::Block>(talk.back, talk.in, talk.count, talk.to);
  wd::quiet();
}

std::uint32_t element(int sender, std::uint64_t round, std::size_t i) {
  return static_cast<std::uint32_t>(suite::random_at(suite::seed() + round, sender, i));
}

std::vector<std::uint32_t> pattern(int sender, std::uint64_t round, std::size_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = element(sender, round, i);
  }
  return values;
}

void write(std::uint32_t* to, const std::vector<std::uint32_t>& values) {
  suite::require_cuda(cudaMemcpy(to, values.data(), values.size() * 4, cudaMemcpyHostToDevice),
                      "to the GPU");
  suite::require_cuda(cudaStreamSynchronize(nullptr), "to the GPU");
}

void expect(const char* what,
            std::size_t count,
            const std::uint32_t* at,
            const std::vector<std::uint32_t>& values) {
  std::vector<std::uint32_t> seen(count);
  suite::require_cuda(cudaMemcpy(seen.data(), at, count * 4, cudaMemcpyDeviceToHost),
                      "from the GPU");
  for (std::size_t i = 0; i < count; ++i) {
    if (seen[i] != values[i]) {
      suite::fail("%s: element %zu of %zu is 0x%x, not 0x%x", what, i, count, seen[i], values[i]);
      return;
    }
  }
}

// Sizes by which a command carries its data, and above; with a start that is aligned to nothing but
// an element.
constexpr std::size_t kCounts[] = {1, 127, 128, 129, 5000, kCount / 4 + 3, kCount - 2};

// With the peers at each distance: put from `mine`, and get into it. `in` is where peers put.
void talk_through(const char* what, std::uint32_t* in, std::uint32_t* mine, std::uint32_t* back) {
  const suite::Array<std::uint64_t> word(1);
  std::uint64_t round = 0;
  for (int d = 0; d < suite::pe_count(); ++d) {
    for (const std::size_t count : kCounts) {
      ++round;
      write(mine + 1, pattern(suite::me(), round, count));
      suite::require_cuda(cudaMemset(back, suite::kPoison, kCount * 4), "cudaMemset");
      suite::require_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
      suite::require_weft(weft_barrier_all(), what);
      exchange<<<1, 256>>>({in + 1, mine + 1, back + 1, word.get(), count, round, suite::to_at(d)});
      suite::finish(what);
      expect(what, count, in + 1, pattern(suite::from_at(d), round, count));
      expect(what, count, back + 1, pattern(suite::me(), round, count));
      suite::require_weft(weft_barrier_all(), what);
    }
  }
}

void expect_error(int taken, const char* words) {
  const std::string said = weft_last_error();
  weft_take_error();
  if (taken != WEFT_INVALID_ARGUMENT || said.find(words) == std::string::npos) {
    suite::fail("expected '%s', got %d: %.200s", words, taken, said.c_str());
  }
}

DEVICE_TEST(windows,
            "memory of cudaMalloc that is registered is put from and got into, and again after it "
            "was unregistered") {
  const suite::Array<std::uint32_t> in(kCount);
  const suite::Array<std::uint32_t> mine(kCount, suite::Where::Own);
  const suite::Array<std::uint32_t> back(kCount, suite::Where::Own);
  suite::require_weft(weft_device_register(mine.get(), kCount * 4), "weft_device_register");
  suite::require_weft(weft_window_register(back.get() + 1, (kCount - 1) * 4),
                      "weft_window_register");
  talk_through("registered", in.get(), mine.get(), back.get());
  suite::require_weft(weft_window_unregister(back.get() + 1), "weft_window_unregister");
  suite::require_weft(weft_device_unregister(mine.get()), "weft_device_unregister");
  talk_through("unregistered", in.get(), mine.get(), back.get());
}

DEVICE_TEST(virtual_windows,
            "memory of virtual memory management is registered as that of cudaMalloc is") {
  const suite::Array<std::uint32_t> in(kCount);
  const VirtualMemory mine(kCount * 4);
  const VirtualMemory back(kCount * 4);
  suite::require_weft(weft_device_register(mine.get(), mine.bytes()), "weft_device_register");
  suite::require_weft(weft_device_register(back.get(), back.bytes()), "weft_device_register");
  talk_through("virtual", in.get(), mine.get(), back.get());
  suite::require_weft(weft_device_unregister(back.get()), "weft_device_unregister");
  suite::require_weft(weft_device_unregister(mine.get()), "weft_device_unregister");
}

DEVICE_TEST(collectives, "collectives read and fill registered memory where it is a local side") {
  const auto n = static_cast<std::size_t>(suite::pe_count());
  const suite::Array<std::uint32_t> dest(n * 4096);
  const suite::Array<std::uint32_t> source(4096);
  const suite::Array<std::uint32_t> mine(4096, suite::Where::Own);
  suite::require_weft(weft_window_register(mine.get(), 4096 * 4), "weft_window_register");
  write(mine.get(), pattern(suite::me(), 1, 4096));
  suite::require_weft(weft_barrier_all(), "before");
  const int next = suite::to_at(1);
  suite::require_weft(weft_put_on_stream(source.get(), mine.get(), 4096 * 4, next, nullptr), "put");
  suite::require_weft(weft_barrier_all_on_stream(nullptr), "barrier");
  suite::require_weft(
      weft_team_fcollect_on_stream(WEFT_TEAM_WORLD, dest.get(), source.get(), 4096 * 4, nullptr),
      "fcollect");
  suite::require_weft(weft_get_on_stream(mine.get(), source.get(), 4096 * 4, next, nullptr), "get");
  suite::finish("collectives");
  for (std::size_t pe = 0; pe < n; ++pe) {
    const int from = static_cast<int>((pe + n - 1) % n);
    expect("fcollect", 4096, dest.get() + pe * 4096, pattern(from, 1, 4096));
  }
  expect("get", 4096, mine.get(), pattern(suite::me(), 1, 4096));
  suite::require_weft(weft_window_unregister(mine.get()), "weft_window_unregister");
}

DEVICE_TEST(no_windows, "memory that cannot be registered is refused with a sentence") {
  static std::uint32_t host[64];
  const suite::Array<std::uint32_t> symmetric(64);
  const suite::Array<std::uint32_t> mine(4096, suite::Where::Own);
  std::uint32_t* managed = nullptr;
  suite::require_cuda(cudaMallocManaged(&managed, 4096), "cudaMallocManaged");
  expect_error(weft_device_register(host, sizeof host), "is not GPU memory");
  expect_error(weft_device_register(managed, 4096), "is managed memory");
  expect_error(weft_device_register(nullptr, 64), "are no memory");
  expect_error(weft_device_register(mine.get(), 0), "are no memory");
  expect_error(weft_device_register(symmetric.get(), 256), "are in the device heap");
  expect_error(weft_device_register(mine.get(), std::size_t{1} << 40U), "only the first");
  suite::require_weft(weft_device_register(mine.get(), 8192), "weft_device_register");
  expect_error(weft_device_register(mine.get(), 8192), "overlap the window of 8192 bytes");
  expect_error(weft_device_register(mine.get() + 100, 8), "overlap the window of 8192 bytes");
  expect_error(weft_device_unregister(mine.get() + 1), "no window of GPU memory starts at");
  suite::require_weft(weft_device_unregister(mine.get()), "weft_device_unregister");
  expect_error(weft_device_unregister(mine.get()), "no window of GPU memory starts at");
  expect_error(weft_put(symmetric.get(), host, 8, 0), "is device memory");
  suite::require_cuda(cudaFree(managed), "cudaFree");
  int gpus = 0;
  int own = 0;
  suite::require_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  suite::require_cuda(cudaGetDevice(&own), "cudaGetDevice");
  if (gpus > 1) {
    std::uint32_t* other = nullptr;
    suite::require_cuda(cudaSetDevice((own + 1) % gpus), "cudaSetDevice");
    suite::require_cuda(cudaMalloc(&other, 4096), "cudaMalloc");
    suite::require_cuda(cudaSetDevice(own), "cudaSetDevice");
    expect_error(weft_device_register(other, 4096), "a window must be memory of the PE's own GPU");
    suite::require_cuda(cudaFree(other), "cudaFree");
  }
  suite::finish("no windows");
}

DEVICE_TEST(
    freed,
    "memory that is freed before it is unregistered is named when its place is registered again") {
  std::uint32_t* memory = nullptr;
  constexpr std::size_t kBytes = 64 * kMiB;
  suite::require_cuda(cudaMalloc(&memory, kBytes), "cudaMalloc");
  suite::require_weft(weft_device_register(memory, kBytes), "weft_device_register");
  suite::require_cuda(cudaFree(memory), "cudaFree");
  std::uint32_t* again = nullptr;
  suite::require_cuda(cudaMalloc(&again, kBytes), "cudaMalloc");
  if (again == memory) {
    expect_error(weft_device_register(again, kBytes), "was freed before it was unregistered");
  }
  suite::require_weft(weft_device_unregister(memory), "weft_device_unregister");
  suite::require_weft(weft_device_register(again, kBytes), "weft_device_register");
  suite::require_weft(weft_device_unregister(again), "weft_device_unregister");
  suite::require_cuda(cudaFree(again), "cudaFree");
  suite::finish("freed");
}

DEVICE_TEST(
    symmetric,
    "memory of virtual memory management becomes symmetric: peers put to it and get from it") {
  if (suite::heap_is_fixed()) {
    return;
  }
  const VirtualMemory mine(kCount * 4);
  const suite::Array<std::uint32_t> back(kCount, suite::Where::Own);
  for (int round = 0; round < 2; ++round) {
    auto* in =
        static_cast<std::uint32_t*>(weft_device_register_symmetric(mine.get(), mine.bytes()));
    suite::require(in != nullptr, "weft_device_register_symmetric");
    if (weft_device_ptr(in, suite::me()) != in) {
      suite::fail("weft_device_ptr of the symmetric address: %s", weft_last_error());
    }
    const suite::Array<std::uint32_t> out(kCount, suite::Where::Own);
    talk_through("symmetric", in, out.get(), back.get());
    const std::vector<std::uint32_t> last = pattern(suite::me(), 99, 1000);
    write(in + 5, last);
    expect("the program's own mapping", last.size(), mine.get() + 5, last);
    const suite::Array<std::uint32_t> heap(kCount);
    talk_through("from it into the heap", heap.get(), in, back.get());
    suite::require_weft(weft_device_unregister_symmetric(in), "weft_device_unregister_symmetric");
    if (weft_device_ptr(in, suite::me()) != nullptr) {
      suite::fail("weft_device_ptr still knows it");
    }
    weft_take_error();
    write(mine.get(), last);  // still the program's
  }
}

DEVICE_TEST(not_symmetric,
            "memory that cannot become symmetric is refused on all PEs, and nothing changes") {
  if (suite::heap_is_fixed()) {
    return;
  }
  const auto refuse = [](std::uint32_t* memory, std::size_t bytes, const char* words) {
    const void* got = weft_device_register_symmetric(memory, bytes);
    const std::string said = weft_last_error();
    const int status = weft_take_error();
    if (got != nullptr || status != WEFT_INVALID_ARGUMENT ||
        said.find(words) == std::string::npos) {
      suite::fail("expected '%s', got %d: %.300s", words, status, said.c_str());
    }
  };
  const suite::Array<std::uint32_t> plain(kCount, suite::Where::Own);
  const VirtualMemory mine(4 * kMiB);
  refuse(plain.get(), 4 * kMiB, "is not memory of virtual memory management");
  refuse(mine.get(), 2 * kMiB, "are not one whole allocation");
  refuse(mine.get(), 4 * kMiB - 8, "not a multiple of 2 MiB");
  refuse(mine.get(), 0, "not a multiple of 2 MiB");
  void* symmetric = weft_device_register_symmetric(mine.get(), mine.bytes());
  suite::require(symmetric != nullptr, "weft_device_register_symmetric");
  refuse(mine.get(), mine.bytes(), "are symmetric already");
  refuse(static_cast<std::uint32_t*>(symmetric), mine.bytes(), "are symmetric already");
  expect_error(weft_device_unregister_symmetric(mine.get()), "is not the start of memory");
  expect_error(weft_device_free(symmetric), "is not the start of a block");
  suite::require_weft(weft_device_unregister_symmetric(symmetric),
                      "weft_device_unregister_symmetric");
  expect_error(weft_device_unregister_symmetric(symmetric), "is not the start of memory");
  if (weft_node_pe_count() > 1 && weft_node_pe_count() == weft_pe_count()) {
    const VirtualMemory lonely(2 * kMiB, CU_MEM_HANDLE_TYPE_NONE);
    refuse(lonely.get(), lonely.bytes(), "without a handle");
  }
  suite::finish("not symmetric");
}

}  // namespace
