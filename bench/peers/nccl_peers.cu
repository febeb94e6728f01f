// Benchmarks of NCCL's collectives, one process for each GPU, for comparison with Weft in the same
// run. Scope "stream" is many launches on a stream, "graph" the same captured in one CUDA graph, so
// that the CPU's part is gone. The longest of the ranks' times is the row's. `run` starts the
// processes.
#include <algorithm>
#include <string>

#include <dlfcn.h>
#include <nccl.h>

#include "pattern.cuh"
#include "peers.cuh"

namespace peers {
namespace {
constexpr size_t kBufferBytes = size_t{256} << 20;
constexpr size_t kBudget = size_t{4} << 30;
constexpr int kGraphNodes = 20;

void check_nccl(ncclResult_t result, const char* action) {
  if (result != ncclSuccess) {
    fail(std::string(action) + ": " + ncclGetErrorString(result) + ", " +
         ncclGetLastError(nullptr));
  }
}

struct Job {
  Place place;
  Options options;
  ncclComm_t communicator;
  cudaStream_t stream;
  void* source;
  void* destination;
  ncclWindow_t windows[2];  // of the two buffers, where they are registered
  double* agreement;        // 2 values in, 2 out
  unsigned* errors;
};

using AllToAllFunction =
    ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);

// NCCL has it since 2.28; the library that is loaded may be older than the header.
AllToAllFunction find_alltoall() {
  return reinterpret_cast<AllToAllFunction>(dlsym(RTLD_DEFAULT, "ncclAlltoAll"));
}

void alltoall_by_pairs(const Job& job, size_t count) {
  const auto* source = static_cast<const int32_t*>(job.source);
  auto* destination = static_cast<int32_t*>(job.destination);
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < job.place.count; ++peer) {
    const size_t offset = static_cast<size_t>(peer) * count;
    check_nccl(ncclSend(source + offset, count, ncclInt32, peer, job.communicator, job.stream),
               "ncclSend");
    check_nccl(ncclRecv(destination + offset, count, ncclInt32, peer, job.communicator, job.stream),
               "ncclRecv");
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

void alltoall(const Job& job, size_t count) {
  static const AllToAllFunction function = find_alltoall();
  check_nccl(function(job.source, job.destination, count, ncclInt32, job.communicator, job.stream),
             "ncclAlltoAll");
}

template <ncclDataType_t kType>
void allreduce(const Job& job, size_t count) {
  check_nccl(ncclAllReduce(job.source, job.destination, count, kType, ncclSum, job.communicator,
                           job.stream),
             "ncclAllReduce");
}

void allgather(const Job& job, size_t count) {
  check_nccl(
      ncclAllGather(job.source, job.destination, count, ncclInt32, job.communicator, job.stream),
      "ncclAllGather");
}

void broadcast(const Job& job, size_t count) {
  check_nccl(
      ncclBroadcast(job.source, job.destination, count, ncclInt32, 0, job.communicator, job.stream),
      "ncclBroadcast");
}

void reduce_scatter(const Job& job, size_t count) {
  check_nccl(ncclReduceScatter(job.source, job.destination, count, ncclInt32, ncclSum,
                               job.communicator, job.stream),
             "ncclReduceScatter");
}

struct Bench {
  const char* name;
  const char* title;
  const char* type;
  void (*call)(const Job&, size_t);
  Pattern pattern;
  bool source_has_blocks, destination_has_blocks;
  bool doubled;  // bus bandwidth counts 2 (n-1) / n
};

constexpr Bench kBenches[] = {
    {"alltoall", "alltoall_pairs", "32-bit", alltoall_by_pairs, Pattern::Exchange, true, true,
     false},
    {"alltoall", "alltoall", "32-bit", alltoall, Pattern::Exchange, true, true, false},
    {"allreduce", "allreduce", "int-sum", allreduce<ncclInt32>, Pattern::Sum, false, false, true},
    {"allreduce", "allreduce", "float-sum", allreduce<ncclFloat32>, Pattern::Sum, false, false,
     true},
    {"allgather", "allgather", "32-bit", allgather, Pattern::Gather, false, true, false},
    {"broadcast", "broadcast", "32-bit", broadcast, Pattern::One, false, false, false},
    {"reducescatter", "reducescatter", "int-sum", reduce_scatter, Pattern::SumScatter, true, false,
     false},
};

void barrier(const Job& job) {
  check(cudaMemsetAsync(job.agreement, 0, 4 * sizeof(double), job.stream), "cudaMemsetAsync");
  check_nccl(ncclAllReduce(job.agreement, job.agreement + 2, 2, ncclDouble, ncclMax,
                           job.communicator, job.stream),
             "ncclAllReduce as a barrier");
  check(cudaStreamSynchronize(job.stream), "a barrier");
}

struct Agreed {
  double microseconds, errors;
};

Agreed agree(const Job& job, Agreed mine) {
  Agreed result{};
  check(cudaMemcpy(job.agreement, &mine, sizeof mine, cudaMemcpyHostToDevice), "cudaMemcpy");
  check_nccl(ncclAllReduce(job.agreement, job.agreement + 2, 2, ncclDouble, ncclMax,
                           job.communicator, job.stream),
             "ncclAllReduce of the times");
  check(cudaStreamSynchronize(job.stream), "ncclAllReduce of the times");
  check(cudaMemcpy(&result, job.agreement + 2, sizeof result, cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return result;
}

// The time from the first to the last of what `work` puts on the stream.
template <class Work>
double timed(const Job& job, const Work& work) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  float milliseconds = 0;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  barrier(job);
  check(cudaEventRecord(begin, job.stream), "cudaEventRecord");
  work();
  check(cudaEventRecord(end, job.stream), "cudaEventRecord");
  check(cudaEventSynchronize(end), "the timed operations");
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  return static_cast<double>(milliseconds) * 1e3;
}

double time_stream(const Job& job, const Bench& bench, size_t count, int iterations) {
  for (int i = 0; i < std::min(iterations, job.options.warm_up); ++i) {
    bench.call(job, count);
  }
  const auto work = [&] {
    for (int i = 0; i < iterations; ++i) {
      bench.call(job, count);
    }
  };
  return timed(job, work) / iterations;
}

cudaGraphExec_t capture(const Job& job, const Bench& bench, size_t count, int nodes) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(job.stream, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) {
    bench.call(job, count);
  }
  check(cudaStreamEndCapture(job.stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return executable;
}

double time_graph(const Job& job, const Bench& bench, size_t count, int iterations) {
  const int nodes = std::min(iterations, kGraphNodes);
  const int launches = std::max(1, iterations / nodes);
  bench.call(job, count);  // connections are made outside the capture
  check(cudaStreamSynchronize(job.stream), "the first call");
  cudaGraphExec_t executable = capture(job, bench, count, nodes);
  check(cudaGraphLaunch(executable, job.stream), "cudaGraphLaunch");
  const auto work = [&] {
    for (int i = 0; i < launches; ++i) {
      check(cudaGraphLaunch(executable, job.stream), "cudaGraphLaunch");
    }
  };
  const double microseconds = timed(job, work) / (launches * nodes);
  check(cudaStreamSynchronize(job.stream), "the graphs");
  check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  return microseconds;
}

template <class T>
unsigned verify(const Job& job, const Bench& bench, size_t count) {
  const size_t blocks = bench.destination_has_blocks ? static_cast<size_t>(job.place.count) : 1;
  const Expected expected{bench.pattern, job.place.rank, job.place.count};
  return count_errors(static_cast<const T*>(job.destination), blocks, count, expected, job.errors);
}

// Clears the destination, times, compares the destination.
Agreed measure(const Job& job, const Bench& bench, size_t count, bool graph) {
  const bool floats = std::string(bench.type) == "float-sum";
  const size_t source_blocks = bench.source_has_blocks ? static_cast<size_t>(job.place.count) : 1;
  const size_t blocks = bench.destination_has_blocks ? static_cast<size_t>(job.place.count) : 1;
  if (floats) {
    fill(static_cast<float*>(job.source), source_blocks, count, job.place.rank);
  } else {
    fill(static_cast<int32_t*>(job.source), source_blocks, count, job.place.rank);
  }
  check(cudaMemset(job.destination, 0xff, blocks * count * 4), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");
  barrier(job);
  const int iterations = iterations_of(job.options, blocks * count * 4, kBudget);
  Agreed mine{};
  mine.microseconds = graph ? time_graph(job, bench, count, iterations)
                            : time_stream(job, bench, count, iterations);
  mine.errors = floats ? verify<float>(job, bench, count) : verify<int32_t>(job, bench, count);
  return agree(job, mine);
}

Row row_of(const Job& job, const Bench& bench, size_t count) {
  const size_t pes = static_cast<size_t>(job.place.count);
  const bool has_blocks = bench.source_has_blocks || bench.destination_has_blocks;
  const double share = (job.place.count - 1.0) / job.place.count;
  Row row;
  row.bench = bench.title;
  row.type = bench.type;
  row.count = count;
  row.bytes = count * 4 * (has_blocks ? pes : 1);
  row.bus_factor = bench.pattern == Pattern::One ? 1 : bench.doubled ? 2 * share : share;
  row.ctas = row.threads = 0;  // NCCL chooses
  const size_t destination_bytes = count * 4 * (bench.destination_has_blocks ? pes : 1);
  row.iterations = iterations_of(job.options, destination_bytes, kBudget);
  return row;
}

void run_bench(const Job& job, Report& report, const Bench& bench, bool graph) {
  const bool has_blocks = bench.source_has_blocks || bench.destination_has_blocks;
  const size_t blocks = has_blocks ? static_cast<size_t>(job.place.count) : 1;
  const Range own{has_blocks ? size_t{128} : 8,
                  bench.pattern == Pattern::Exchange ? kBufferBytes : kBufferBytes / 4};
  for (const size_t size : sizes_of(job.options, own, kBufferBytes)) {
    const size_t count = size / 4 / blocks;
    if (count == 0) {
      continue;
    }
    Row row = row_of(job, bench, count);
    const Agreed agreed = measure(job, bench, count, graph);
    row.scope = graph ? "graph" : "stream";
    row.latency_us = agreed.microseconds;
    row.verified = agreed.errors == 0;
    report.add(Layout::Collective, row);
  }
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// Memory of NCCL's own allocator in a symmetric window, which its symmetric kernels need.
void* allocate_window(const Job& job, ncclWindow_t* window) {
  void* memory = nullptr;
  check_nccl(ncclMemAlloc(&memory, kBufferBytes), "ncclMemAlloc");
  check_nccl(ncclCommWindowRegister(job.communicator, memory, kBufferBytes, window,
                                    NCCL_WIN_COLL_SYMMETRIC),
             "ncclCommWindowRegister");
  return memory;
}

void allocate(Job& job) {
  if (job.options.windows) {
    job.source = allocate_window(job, &job.windows[0]);
    job.destination = allocate_window(job, &job.windows[1]);
  } else {
    check(cudaMalloc(&job.source, kBufferBytes), "cudaMalloc");
    check(cudaMalloc(&job.destination, kBufferBytes), "cudaMalloc");
  }
}

void release(const Job& job) {
  if (job.options.windows) {
    for (const ncclWindow_t window : job.windows) {
      check_nccl(ncclCommWindowDeregister(job.communicator, window), "ncclCommWindowDeregister");
    }
    check_nccl(ncclMemFree(job.source), "ncclMemFree");
    check_nccl(ncclMemFree(job.destination), "ncclMemFree");
  } else {
    check(cudaFree(job.source), "cudaFree");
    check(cudaFree(job.destination), "cudaFree");
  }
}

Job join_job(const Place& place, const Options& options) {
  Job job{place, options};
  ncclUniqueId id{};
  if (place.rank == 0) {
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  }
  exchange_id(place, &id, sizeof id);
  check_nccl(ncclCommInitRank(&job.communicator, place.count, id, place.rank), "ncclCommInitRank");
  check(cudaStreamCreateWithFlags(&job.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  allocate(job);
  check(cudaMalloc(&job.agreement, 4 * sizeof(double)), "cudaMalloc");
  check(cudaMalloc(&job.errors, sizeof(unsigned)), "cudaMalloc");
  return job;
}

void leave_job(const Job& job) {
  barrier(job);
  release(job);
  check_nccl(ncclCommDestroy(job.communicator), "ncclCommDestroy");
  check(cudaFree(job.agreement), "cudaFree");
  check(cudaFree(job.errors), "cudaFree");
  check(cudaStreamDestroy(job.stream), "cudaStreamDestroy");
}
}  // namespace
}  // namespace peers

int main(int count, char** arguments) {
  using namespace peers;
  require_environment("NCCL_NVLS_ENABLE", "0", "multicast state can outlive a crashed program");
  const Place place = Place::from_environment();
  const Options options = Options::parse(count, arguments);
  check(cudaSetDevice(place.rank), "cudaSetDevice");
  const Job job = join_job(place, options);
  Report report(place, options, "nccl", nccl_version());
  for (const Bench& bench : kBenches) {
    const bool there = bench.call != alltoall || find_alltoall() != nullptr;
    for (const bool graph : {false, true}) {
      if (there && options.wants(bench.name) && options.wants_scope(graph ? "graph" : "stream")) {
        run_bench(job, report, bench, graph);
      }
    }
  }
  leave_job(job);
  return report.all_verified() ? 0 : 1;
}
