// NVSHMEM over libfabric on emulated NICs (loom/): the all-to-all, the put bandwidth and the rate
// of put_signals that weft-perf measures, by NVSHMEM's own library. Where its heap lies, NVSHMEM's
// settings say. Prints one JSON line. Written from NVSHMEM's public documentation alone.
// `loom run ... -- nvshmem_emulated alltoall|put_bw|put_signal BYTES STEPS NIC_GBITS NICS_OF_A_PE`
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "tools/balance/max_over_mean.hpp"

namespace {

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t code = (call);                                     \
    if (code != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code)); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

constexpr size_t kPlaces = size_t{8} << 20;

struct Place {
  int rank, size, local, local_size;
};

int number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    std::fprintf(stderr, "%s is not set; start this with loom run\n", name);
    std::exit(2);
  }
  return std::atoi(text);
}

// The id goes by a file beside the fabric; it belongs to this job alone.
void join(const Place& place) {
  const std::string path =
      std::string(std::getenv("LOOM_DIR")) + "/" + std::getenv("LOOM_JOB") + ".id";
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (place.rank == 0) {
    nvshmemx_get_uniqueid(&id);
    std::ofstream(path + ".new", std::ios::binary)
        .write(reinterpret_cast<const char*>(&id), sizeof(id));
    std::filesystem::rename(path + ".new", path);
  }
  while (!std::filesystem::exists(path)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&id), sizeof(id));
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(place.rank, place.size, &id, &attributes);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
    std::exit(3);
  }
}

using Bytes = std::map<std::string, double>;  // by NIC

Bytes carried(const char* counter) {
  Bytes bytes;
  for (const auto& nic : std::filesystem::directory_iterator("/sys/class/infiniband")) {
    std::ifstream(nic.path() / "ports/1/hw_counters" / counter) >> bytes[nic.path().filename()];
  }
  return bytes;
}

// Of this node's NICs, those that carried nothing included.
double evenness(const Bytes& before, const Bytes& after) {
  std::vector<double> carried;
  for (const auto& [nic, bytes] : after) {
    carried.push_back(bytes - before.at(nic));
  }
  return weft::max_over_mean(carried).value_or(0);
}

__global__ void fill(unsigned* words, size_t count, unsigned value) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
    words[i] = value + static_cast<unsigned>(i);
  }
}

__global__ void check(const unsigned* words, size_t count, unsigned value, unsigned* wrong) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (words[i] != value + static_cast<unsigned>(i)) {
      atomicAdd(wrong, 1U);
    }
  }
}

// One thread issues a put to each peer of another node, from the next one on, and waits for all.
__global__ void exchange(char* to, const char* from, size_t bytes, int me, int size, int per_node) {
  for (int k = 1; k < size; ++k) {
    const int peer = (me + k) % size;
    if (peer / per_node != me / per_node) {
      nvshmem_putmem_nbi(to + me * bytes, from, bytes, peer);
    }
  }
  nvshmem_quiet();
}

__global__ void stream_to(char* to, const char* from, size_t bytes, int peer, int times) {
  for (int i = 0; i < times; ++i) {
    nvshmem_putmem_nbi(to, from, bytes, peer);
  }
  nvshmem_quiet();
}

// As weft-perf device put_signal_rate: each thread sends `times` put_signals, which share 8 MiB of
// places.
__global__ void send_many(
    char* to, const char* from, size_t bytes, uint64_t* word, int peer, int times) {
  const size_t places = max(size_t{1}, kPlaces / bytes);
  const size_t place = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) % places * bytes;
  for (int i = 0; i < times; ++i) {
    nvshmem_putmem_signal_nbi(to + place, from + place, bytes, word, 1, NVSHMEM_SIGNAL_ADD, peer);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    nvshmem_quiet();
  }
}

__global__ void receive_many(uint64_t* word, uint64_t count) {
  nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, count);
}

struct Plan {
  bool is_exchange;
  size_t bytes;
  int steps;
  double nic_rate;  // bytes/s
  int nics;         // of a PE
};

constexpr int kWindow = 16;  // puts of a step of put_bw

// Words that differ from what their senders have.
unsigned count_wrong(const Plan& plan, const Place& place, const char* to) {
  unsigned* wrong = nullptr;
  CHECK(cudaMallocManaged(&wrong, sizeof(*wrong)));
  *wrong = 0;
  for (int peer = 0; peer < place.size; ++peer) {
    const bool writes = plan.is_exchange ? peer / place.local_size != place.rank / place.local_size
                                         : peer == 0 && place.rank == place.size - 1;
    if (writes) {
      check<<<1, 256>>>(
          reinterpret_cast<const unsigned*>(to + (plan.is_exchange ? peer * plan.bytes : 0)),
          plan.bytes / 4, static_cast<unsigned>(peer) << 20U, wrong);
    }
  }
  CHECK(cudaDeviceSynchronize());
  return *wrong;
}

void step(const Plan& plan, const Place& place, char* to, const char* from) {
  if (plan.is_exchange) {
    exchange<<<1, 1>>>(to, from, plan.bytes, place.rank, place.size, place.local_size);
  } else if (place.rank == 0) {
    stream_to<<<1, 1>>>(to, from, plan.bytes, place.size - 1, kWindow);
  }
  CHECK(cudaDeviceSynchronize());
  nvshmem_barrier_all();
}

void measure(const Plan& plan, const Place& place) {
  constexpr auto kCountersAreWritten = std::chrono::milliseconds(100);
  auto* from = static_cast<char*>(nvshmem_malloc(plan.bytes));
  auto* to = static_cast<char*>(nvshmem_malloc(plan.bytes * place.size));
  fill<<<1, 256>>>(reinterpret_cast<unsigned*>(from), plan.bytes / 4,
                   static_cast<unsigned>(place.rank) << 20U);
  CHECK(cudaDeviceSynchronize());
  nvshmem_barrier_all();
  step(plan, place, to, from);  // the first one opens what there is to open
  std::this_thread::sleep_for(kCountersAreWritten);
  const Bytes tx = carried("tx_bytes");
  const Bytes rx = carried("rx_bytes");
  nvshmem_barrier_all();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < plan.steps; ++i) {
    step(plan, place, to, from);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::this_thread::sleep_for(kCountersAreWritten);
  const double tx_evenness = evenness(tx, carried("tx_bytes"));
  const double rx_evenness = evenness(rx, carried("rx_bytes"));
  const unsigned wrong = count_wrong(plan, place, to);
  nvshmem_barrier_all();
  if (place.rank == 0 || wrong != 0) {
    const double each = static_cast<double>(plan.bytes) *
                        (plan.is_exchange ? place.size - place.local_size : kWindow);
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    std::printf(
        "{\"library\": \"NVSHMEM %d.%d.%d\", \"emulated\": true, \"benchmark\": \"%s\", \"bytes\": "
        "%zu, \"steps\": %d, "
        "\"pe\": %d, \"pes\": %d, \"seconds\": %.6f, \"share_of_rails\": %.4f, "
        "\"tx_max_over_mean\": %.3f, "
        "\"rx_max_over_mean\": %.3f, \"wrong\": %u}\n",
        major, minor, patch, plan.is_exchange ? "alltoall" : "put_bw", plan.bytes, plan.steps,
        place.rank, place.size, seconds, each * plan.steps / (plan.nics * plan.nic_rate) / seconds,
        tx_evenness, rx_evenness, wrong);
    std::fflush(stdout);
  }
}

// `steps` put_signals a thread, of 32 CTAs of 256 threads; the time until quiet returns.
void measure_signals(const Plan& plan, const Place& place) {
  constexpr int kCtas = 32, kThreads = 256;
  const size_t room = std::max(plan.bytes, kPlaces);
  auto* from = static_cast<char*>(nvshmem_malloc(room));
  auto* to = static_cast<char*>(nvshmem_malloc(room));
  auto* word = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  const int target = place.size - 1;
  const uint64_t each = uint64_t{kCtas} * kThreads;
  nvshmem_barrier_all();
  double seconds = 0;
  uint64_t sent = 0;
  for (const int times : {1, plan.steps}) {  // the first opens what there is to open
    nvshmem_barrier_all();
    sent += each * times;
    const auto begin = std::chrono::steady_clock::now();
    if (place.rank == 0) {
      send_many<<<kCtas, kThreads>>>(to, from, plan.bytes, word, target, times);
    } else if (place.rank == target) {
      receive_many<<<1, 1>>>(word, sent);
    }
    CHECK(cudaDeviceSynchronize());
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  nvshmem_barrier_all();
  if (place.rank == 0) {
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    std::printf(
        "{\"library\": \"NVSHMEM %d.%d.%d\", \"emulated\": true, \"benchmark\": \"put_signal\", "
        "\"bytes\": %zu, "
        "\"count\": %llu, \"seconds\": %.6f, \"per_second\": %.0f}\n",
        major, minor, patch, plan.bytes, static_cast<unsigned long long>(each * plan.steps),
        seconds, static_cast<double>(each * plan.steps) / seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(
        stderr,
        "usage: nvshmem_emulated alltoall|put_bw|put_signal BYTES STEPS NIC_GBITS NICS_OF_A_PE\n");
    return 2;
  }
  const Plan plan{std::strcmp(argv[1], "alltoall") == 0, std::strtoull(argv[2], nullptr, 10),
                  std::atoi(argv[3]), std::atof(argv[4]) * 1e9 / 8, std::atoi(argv[5])};
  const Place place{number("RANK"), number("WORLD_SIZE"), number("LOCAL_RANK"),
                    number("LOCAL_WORLD_SIZE")};
  int gpus = 1;
  CHECK(cudaGetDeviceCount(&gpus));
  CHECK(cudaSetDevice(place.rank % gpus));
  join(place);
  if (std::strcmp(argv[1], "put_signal") == 0) {
    measure_signals(plan, place);
  } else {
    measure(plan, place);
  }
  nvshmem_finalize();
  return 0;
}
