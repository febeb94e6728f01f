// paged_write: PE 0, the client, asks its partner to fill a buffer in its GPU's memory. The
// partner's kernel puts the pages out of its own GPU's memory, each with a signal, in an order that
// is drawn anew for each pass; the client notes each 10 ms how many have arrived since it asked.
// Every pass writes the same bytes. As paged_write of the host (../paged_write.cpp).
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBufferBytes = std::size_t{64} << 20U;
constexpr std::chrono::milliseconds kInterval{10};

// Symmetric words: the first is the server's, the second the client's.
struct PagedWords {
  std::uint64_t* asked;
  std::uint64_t* arrived;
};

struct Pages {
  std::byte* memory;
  std::size_t bytes;    // of a page
  std::uint64_t count;  // a power of two
};

struct Look {
  double seconds;  // since the client asked
  std::uint64_t arrived;
};

// Each page once a pass: an odd factor permutes the numbers below a power of two.
inline __device__ std::uint64_t page_of(std::uint64_t index,
                                        std::uint64_t pass,
                                        std::uint64_t count) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  const std::uint64_t odd = (kFactor * (2 * pass + 1)) >> 20U | 1U;
  return (index * odd + pass * kFactor) & (count - 1);
}

__global__ void __launch_bounds__(kTimedThreadsMax, 1)
    serve(Pages pages, PagedWords words, int client, std::uint64_t passes) {
  if (threadIdx.x == 0) {
    wd::signal_wait_until<wd::Thread>(words.asked, wd::Comparison::Ge, 1);
  }
  __syncthreads();
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::uint64_t i = first; i < passes * pages.count; i += threads) {
    std::byte* page =
        pages.memory + page_of(i % pages.count, i / pages.count, pages.count) * pages.bytes;
    wd::put_signal_nbi<wd::Thread>(page, page, pages.bytes, {words.arrived, 1, wd::SignalOp::Add},
                                   client);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    wd::quiet();
  }
}

__global__ void ask(PagedWords words, int server) {
  wd::signal({words.asked, 1, wd::SignalOp::Add}, server);
}

// Looks each interval until all pages have arrived. From the host: a kernel of the client that
// waits would take turns with the server's where PEs share a GPU.
std::vector<Look> watch(PagedWords words, std::uint64_t pages) {
  std::vector<Look> looks;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t arrived = 0; arrived < pages;) {
    std::this_thread::sleep_until(start + (looks.size() + 1) * kInterval);
    check(cudaMemcpy(&arrived, words.arrived, sizeof arrived, cudaMemcpyDefault), "reading a word");
    looks.push_back({std::chrono::duration<double>(Clock::now() - start).count(), arrived});
  }
  return looks;
}

void print_looks(Session& session, const Pages& pages, const std::vector<Look>& looks) {
  Look before{0, 0};
  for (const Look& look : looks) {
    session.add_interval({.milliseconds = look.seconds * 1e3,
                          .page_bytes = pages.bytes,
                          .bytes = (look.arrived - before.arrived) * pages.bytes,
                          .seconds = look.seconds - before.seconds});
    before = look;
  }
}

void run_size(Session& session, const DeviceBlock& buffer, std::size_t page_bytes, Shape shape) {
  Pages pages{static_cast<std::byte*>(buffer.data()), page_bytes, 1};
  while (2 * pages.count * page_bytes <= kBufferBytes) {
    pages.count *= 2;
  }
  const std::size_t bytes = pages.count * page_bytes;
  const Options& options = session.options();
  const std::uint64_t passes =
      std::clamp<std::uint64_t>(options.paged_bytes / bytes, 1, options.iterations);
  const bool is_client = session.me() == 0;
  const bool is_server = session.me() == session.partner();
  const PagedWords words{session.words(), session.words() + 1};
  check(cudaMemset(words.asked, 0, sizeof(std::uint64_t)), "clearing a word");
  check(cudaMemset(words.arrived, 0, sizeof(std::uint64_t)), "clearing a word");
  fill<std::uint8_t>(pages.memory, 1, bytes, session.me());
  Session::barrier();
  Row row;
  row.layout = Layout::Bandwidth;
  row.title = "paged_write_total";
  row.scope = "thread";
  row.bytes = passes * bytes;
  row.count = passes * pages.count;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  row.iterations = passes;
  if (is_server) {
    serve<<<shape.ctas, shape.threads>>>(pages, words, 0, passes);
    check_launch();
  } else if (is_client) {
    ask<<<1, 1>>>(words, session.partner());
    check_launch();
    const std::vector<Look> looks = watch(words, passes * pages.count);
    print_looks(session, pages, looks);
    row.latency_us = looks.back().seconds * 1e6;
  }
  Session::barrier();
  const Expected expected{Pattern::One, session.me(), session.pe_count(), session.partner()};
  session.add(row, is_client ? count_wrong<std::uint8_t>(pages.memory, 1, bytes, expected) : 0);
}

}  // namespace

void run_paged_write(Session& session) {
  const Options& options = session.options();
  const auto* kernel = reinterpret_cast<const void*>(&serve);
  const std::uint32_t threads = threads_for(kernel, options.threads);
  const Shape shape{ctas_for(kernel, {options.ctas, threads}), threads};
  // Loaded before it may wait for the server.
  static_cast<void>(threads_for(reinterpret_cast<const void*>(&ask), 1));
  const DeviceBlock buffer(kBufferBytes);
  for (const std::size_t size : size_sequence(options.sizes)) {
    if (size > kBufferBytes) {
      throw JobError("paged_write: a page is at most 64 MiB, the size of the buffer", kStatusUsage);
    }
    run_size(session, buffer, size, shape);
  }
}

}  // namespace weft::perf::gpu
