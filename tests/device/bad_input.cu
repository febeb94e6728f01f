// Does one thing wrong and prints what Weft says of it: device_bad_input CASE.
// test_device_programs.py knows what the sentences are. Each is a process of its own, since a
// kernel that fails takes its CUDA context with it.
#include <weft/device.cuh>
#include <weft/device.h>

#include <cuda_runtime.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <unistd.h>

namespace {

namespace wd = weft::device;

void say(const char* call, int status) {
  std::printf("PE %d: %s: %d: %s\n", weft_pe(), call, status,
              status == WEFT_OK ? "" : weft_last_error());
  std::fflush(stdout);
}

void open() {
  if (weft_init() != WEFT_OK) {
    std::exit(1);
  }
  int gpus = 1;
  if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0) {
    cudaSetDevice(weft_machine_pe() % gpus);
  }
  if (const int status = weft_device_init(); status != WEFT_OK) {
    say("weft_device_init", status);
    weft_finalize();
    std::exit(1);
  }
}

__global__ void put_to(int* dest, const int* source, int pe) {
  wd::put<wd::Block>(dest, source, 4, pe);
}

__global__ void put_list_to(int* dest, int* outside, int pe) {
  const wd::Segment list[] = {{dest, dest, 4}, {dest + 1, dest, 4}, {outside, dest, 12}};
  wd::putv<wd::Warp>(list, 3, pe);
}

__global__ void wait_for(std::uint64_t* word) {
  wd::signal_wait_until(word, wd::Comparison::Eq, 42);
}

__global__ void meet() {
  wd::sync_all<wd::Block>();
}

__global__ void add_at(std::uint32_t* word, int pe) {
  wd::atomic_add(word, 1U, pe);
}

// Waits for the kernel, which must fail, and prints its record. CUDA is lost then: no
// weft_finalize.
[[noreturn]] void end_of_kernel() {
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("PE %d: cuda: %s\n", weft_pe(), cudaGetErrorName(error));
  say("weft_device_check", weft_device_check());
  std::fflush(stdout);
  std::_Exit(error == cudaSuccess ? 1 : 0);
}

void no_gpu() {
  open();
  weft_finalize();
}

// As no-gpu: what is wrong comes by the environment or the number of PEs.
void just_open() {
  open();
  say("weft_device_init", WEFT_OK);
  weft_finalize();
}

void two_on_one() {
  if (weft_init() != WEFT_OK) {
    std::exit(1);
  }
  cudaSetDevice(0);
  say("weft_device_init", weft_device_init());
  weft_finalize();
}

void before_init() {
  static constexpr int kAny = 0;
  weft_init();
  say("weft_device_malloc", weft_device_malloc(64) == nullptr ? weft_take_error() : WEFT_OK);
  weft_device_malloc(64);
  std::printf("PE %d: %s\n", weft_pe(), weft_last_error());
  say("weft_device_check", weft_device_check());
  say("weft_device_ptr", weft_device_ptr(&kAny, 0) == nullptr ? WEFT_NOT_INITIALIZED : WEFT_OK);
  weft_finalize();
}

// More than a heap of 64 MiB has; then something that it has.
void large_block() {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  open();
  const void* large = weft_device_malloc(128 * kMiB);
  say("weft_device_malloc", large == nullptr ? weft_take_error() : WEFT_OK);
  const void* small = weft_device_malloc(kMiB);
  say("weft_device_malloc of 1 MiB", small == nullptr ? weft_take_error() : WEFT_OK);
  weft_finalize();
}

void device_to_host_call() {
  open();
  auto* on_gpu = static_cast<int*>(weft_device_malloc(64));
  auto* on_host = static_cast<int*>(weft_malloc(64));
  say("weft_put dest", weft_put(on_gpu, on_host, 4, 0));
  say("weft_put source", weft_put(on_host, on_gpu, 4, 0));
  say("weft_get dest", weft_get(on_gpu, on_host, 4, 0));
  weft_finalize();
}

void host_to_device_call() {
  open();
  auto* on_host = static_cast<int*>(weft_malloc(64));
  const void* mapped = weft_device_ptr(on_host, 0);
  say("weft_device_ptr", mapped == nullptr ? WEFT_INVALID_ARGUMENT : WEFT_OK);
  say("weft_device_free", weft_device_free(on_host));
  weft_finalize();
}

void host_to_kernel() {
  open();
  auto* on_gpu = static_cast<int*>(weft_device_malloc(64));
  put_to<<<1, 32>>>(static_cast<int*>(weft_malloc(64)), on_gpu, weft_pe());
  end_of_kernel();
}

void own_to_kernel() {
  open();
  int* own = nullptr;
  cudaMalloc(&own, 64);
  put_to<<<1, 32>>>(own, own, weft_pe());
  end_of_kernel();
}

void list_to_kernel() {
  open();
  auto* dest = static_cast<int*>(weft_device_calloc(8, sizeof(int)));
  int* own = nullptr;
  cudaMalloc(&own, 64);
  put_list_to<<<1, 32>>>(dest, own, 0);
  end_of_kernel();
}

void no_such_pe() {
  open();
  auto* on_gpu = static_cast<int*>(weft_device_malloc(64));
  put_to<<<1, 32>>>(on_gpu, on_gpu, weft_pe_count());
  end_of_kernel();
}

void beyond_heap() {
  open();
  auto* on_gpu = static_cast<std::uint32_t*>(weft_device_malloc(64));
  add_at<<<1, 1>>>(on_gpu + (std::size_t{1} << 40U), 0);
  end_of_kernel();
}

// PE 1 dies while the others' kernels wait for it. They outlive weft-run's SIGTERM to tell.
void killed(bool in_sync) {
  std::signal(SIGTERM, SIG_IGN);
  open();
  auto* word = static_cast<std::uint64_t*>(weft_device_calloc(1, 8));
  weft_barrier_all();
  if (weft_pe() == 1) {
    ::usleep(300000);
    std::raise(SIGKILL);
  }
  if (in_sync) {
    meet<<<1, 64>>>();
  } else {
    wait_for<<<1, 1>>>(word);
  }
  end_of_kernel();
}

// A call of grid scope in an ordinary launch, and in a cooperative one.
__global__ void meet_as_grid() {
  wd::sync_all<wd::Grid>();
}

void not_cooperative() {
  open();
  meet_as_grid<<<2, 32>>>();
  end_of_kernel();
}

// Nobody ever writes the word. WEFT_WAIT_REPORT and WEFT_TIMEOUT_S say what happens.
void waits_for_ever() {
  open();
  auto* word = static_cast<std::uint64_t*>(weft_device_calloc(1, 8));
  wait_for<<<1, 1>>>(word);
  cudaDeviceSynchronize();
  ::sleep(30);  // the library ends the job
  std::_Exit(0);
}

__global__ void put_large_from(int* dest, const int* source, int pe) {
  wd::put<wd::Block>(dest, source, 4096, pe);
  wd::quiet();
}

// The source is an address that nothing is at; only commands notice, as the proxy fetches it.
void unreadable_source() {
  open();
  auto* on_gpu = static_cast<int*>(weft_device_malloc(1 << 20U));
  put_large_from<<<1, 32>>>(on_gpu, reinterpret_cast<const int*>(std::uintptr_t{1} << 46U),
                            (weft_pe() + 1) % weft_pe_count());
  end_of_kernel();
}

// The put is not waited for, so only the wait behind it is there when the proxy refuses it.
__global__ void put_large_and_wait(int* dest, const int* source, int pe, std::uint64_t* word) {
  wd::put_nbi<wd::Block>(dest, source, 4096, pe);
  wd::signal_wait_until(word, wd::Comparison::Eq, 42);
}

// Within what the heap may become, where no block is: the kernel does not notice, the proxy does.
void beyond_blocks(bool waits) {
  open();
  auto* on_gpu = static_cast<int*>(weft_device_malloc(1 << 20U));
  auto* word = static_cast<std::uint64_t*>(weft_device_calloc(1, 8));
  constexpr std::size_t kInts = std::size_t{2} << 30U;
  const int next = (weft_pe() + 1) % weft_pe_count();
  if (waits) {
    put_large_and_wait<<<1, 32>>>(on_gpu + kInts, on_gpu, next, word);
  } else {
    put_large_from<<<1, 32>>>(on_gpu + kInts, on_gpu, next);
  }
  end_of_kernel();
}

void beyond_blocks_quiet() {
  beyond_blocks(false);
}

void beyond_blocks_waits() {
  beyond_blocks(true);
}

void killed_waiting() {
  killed(false);
}

void killed_meeting() {
  killed(true);
}

struct Case {
  const char* name;
  void (*run)();
};

constexpr Case kCases[] = {{"no-gpu", &no_gpu},
                           {"open", &just_open},
                           {"two-on-one", &two_on_one},
                           {"before-init", &before_init},
                           {"large-block", &large_block},
                           {"device-to-host-call", &device_to_host_call},
                           {"host-to-device-call", &host_to_device_call},
                           {"host-to-kernel", &host_to_kernel},
                           {"own-to-kernel", &own_to_kernel},
                           {"list-to-kernel", &list_to_kernel},
                           {"no-such-pe", &no_such_pe},
                           {"beyond-heap", &beyond_heap},
                           {"not-cooperative", &not_cooperative},
                           {"waits-for-ever", &waits_for_ever},
                           {"unreadable-source", &unreadable_source},
                           {"beyond-blocks", &beyond_blocks_quiet},
                           {"beyond-blocks-waits", &beyond_blocks_waits},
                           {"killed-waiting", &killed_waiting},
                           {"killed-meeting", &killed_meeting}};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    if (argc == 2 && std::strcmp(argv[1], one.name) == 0) {
      one.run();
      return 0;
    }
  }
  std::fprintf(stderr, "usage: device_bad_input CASE; cases:");
  for (const Case& one : kCases) {
    std::fprintf(stderr, " %s", one.name);
  }
  std::fprintf(stderr, "\n");
  return 2;
}
