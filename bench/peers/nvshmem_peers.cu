// Benchmarks of NVSHMEM's device API, one process for each GPU, for comparison with Weft in the
// same run; README.md says what each row measures. `run` starts the processes.
#include <algorithm>
#include <string>
#include <vector>

#include "nvshmem_session.cuh"

namespace peers {
namespace {
std::string nvshmem_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

void join_job(const Place& place) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (place.rank == 0 && nvshmemx_get_uniqueid(&id) != 0) {
    fail("nvshmemx_get_uniqueid failed");
  }
  exchange_id(place, &id, sizeof id);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  if (nvshmemx_set_attr_uniqueid_args(place.rank, place.count, &id, &attributes) != 0) {
    fail("nvshmemx_set_attr_uniqueid_args failed");
  }
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
    fail("nvshmemx_init_attr failed");
  }
  if (nvshmem_my_pe() != place.rank || nvshmem_n_pes() != place.count) {
    fail("NVSHMEM numbers the PEs in another way than PEER_RANK and PEER_COUNT");
  }
}

template <class T>
T* symmetric(size_t count) {
  void* memory = nvshmem_malloc(count * sizeof(T));
  if (memory == nullptr) {
    fail("nvshmem_malloc of " + std::to_string(count * sizeof(T)) +
         " bytes failed; raise NVSHMEM_SYMMETRIC_SIZE");
  }
  return static_cast<T*>(memory);
}
}  // namespace

Session::Session(const Place& place, const Options& options)
    : place(place), options(options), report(place, options, "nvshmem", nvshmem_version()) {
  join_job(place);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaMalloc(&spans, kCtasMax * sizeof(Span)), "cudaMalloc");
  check(cudaMalloc(&errors, sizeof *errors), "cudaMalloc");
  source_ = symmetric<char>(kBufferBytes);
  destination_ = symmetric<char>(kBufferBytes);
  agreement_ = symmetric<double>(4);
  words = symmetric<unsigned long long>(kWordCount);
  check(cudaMemset(words, 0, kWordCount * sizeof *words), "cudaMemset");
  barrier();
}

void Session::close() {
  barrier();
  nvshmem_free(words);
  nvshmem_free(agreement_);
  nvshmem_free(destination_);
  nvshmem_free(source_);
  check(cudaFree(errors), "cudaFree");
  check(cudaFree(spans), "cudaFree");
  check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  nvshmem_finalize();
}

void Session::launch_collective(const void* kernel, Shape shape, void** arguments) {
  const dim3 grid(static_cast<unsigned>(shape.ctas));
  const dim3 block(static_cast<unsigned>(shape.threads));
  if (nvshmemx_collective_launch(kernel, grid, block, arguments, 0, stream_) != 0) {
    fail("nvshmemx_collective_launch failed");
  }
  check(cudaGetLastError(), "nvshmemx_collective_launch");
  check(cudaStreamSynchronize(stream_), "a collective kernel");
}

int Session::threads_for(const void* kernel, int wanted) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  return std::min(wanted, attributes.maxThreadsPerBlock);
}

void Session::barrier() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  nvshmem_barrier_all();
}

double Session::microseconds(int ctas, int iterations) const {
  std::vector<Span> host(static_cast<size_t>(ctas));
  check(cudaMemcpy(host.data(), spans, host.size() * sizeof(Span), cudaMemcpyDeviceToHost),
        "cudaMemcpy of the spans");
  Span whole = host[0];
  for (const Span& span : host) {
    whole.begin = std::min(whole.begin, span.begin);
    whole.end = std::max(whole.end, span.end);
  }
  return static_cast<double>(whole.end - whole.begin) * 1e-3 / iterations;
}

void Session::clear_destination(size_t bytes) {
  check(cudaMemset(destination_, 0xff, bytes), "cudaMemset");
  barrier();
}

void Session::add(Layout layout, Row row, unsigned error_count) {
  double values[2] = {row.latency_us, static_cast<double>(error_count)};
  check(cudaMemcpy(agreement_, values, sizeof values, cudaMemcpyHostToDevice), "cudaMemcpy");
  barrier();
  if (nvshmemx_double_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, agreement_ + 2, agreement_, 2,
                                           stream_) != 0) {
    fail("nvshmemx_double_max_reduce_on_stream failed");
  }
  check(cudaStreamSynchronize(stream_), "nvshmemx_double_max_reduce_on_stream");
  check(cudaMemcpy(values, agreement_ + 2, sizeof values, cudaMemcpyDeviceToHost), "cudaMemcpy");
  row.latency_us = values[0];
  row.verified = values[1] == 0;
  report.add(layout, row);
}
}  // namespace peers

int main(int count, char** arguments) {
  using namespace peers;
  require_environment("NVSHMEM_DISABLE_NVLS", "1", "multicast state can outlive a crashed program");
  const Place place = Place::from_environment();
  const Options options = Options::parse(count, arguments);
  check(cudaSetDevice(place.rank), "cudaSetDevice");
  Session session(place, options);
  run_latency(session);
  run_ping_pong(session);
  run_bandwidth(session);
  run_collectives(session);
  run_on_stream(session);
  session.close();
  return session.report.all_verified() ? 0 : 1;
}
