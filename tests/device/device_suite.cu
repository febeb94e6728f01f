// Runs the registered cases; see device_suite.hpp.
#include <weft/device.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#ifdef DEVICE_SUITE_BY_NVSHMEM
#define NVSHMEM_HOSTLIB_ONLY 1
#include <nvshmem.h>
#endif

#include "tests/device/device_suite.hpp"
#include "tests/device/random.hpp"

namespace suite {
namespace {

constexpr int kSkipped = 77;
// How much fewer rounds of waiting for each other a shared GPU gets: a turn of it takes about 2 ms.
constexpr double kSharedTurns = 1.0 / 500;

struct Reason {
  char text[256];
};

struct State {
  Options options;
  int me = 0;
  int pe_count = 1;
  bool is_shared = false;
  Case* first = nullptr;
  Case** last = &first;
  const Case* current = nullptr;
  Reason why{};            // why it failed here
  std::string skipped;     // why it was skipped
  Reason* mine = nullptr;  // symmetric, as all
  Reason* all = nullptr;
  std::string gpu;
  std::string driver;
  int cuda_of_driver = 0;
  std::chrono::steady_clock::time_point start;
};

State& state() {
  static State one;
  return one;
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::string version(int number) {
  return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10);
}

// Of the kernel's module: "... Kernel Module  580.95.05  ...".
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
  }
  return "unknown";
}

double elapsed_ms() {
  const auto elapsed = std::chrono::steady_clock::now() - state().start;
  return std::chrono::duration<double, std::milli>(elapsed).count();
}

void record(const char* result, const std::string& why) {
  const State& s = state();
  if (s.options.json.empty()) {
    return;
  }
  if (std::FILE* file = std::fopen(s.options.json.c_str(), "a")) {
    std::fprintf(file,
                 "{\"program\": %s, \"case\": %s, \"pes\": %d, \"node_size\": %d, \"shared\": %s, "
                 "\"seed\": %llu, "
                 "\"scale\": %g, \"result\": \"%s\", \"why\": %s, \"ms\": %.1f, \"gpu\": %s, "
                 "\"driver\": \"%s\", "
                 "\"driver_cuda\": \"%s\", \"cuda\": \"%s\", \"date\": \"%s\"}\n",
                 json_text(program_invocation_short_name).c_str(),
                 json_text(s.current->name).c_str(), s.pe_count, weft_node_pe_count(),
                 s.is_shared ? "true" : "false", static_cast<unsigned long long>(s.options.seed),
                 s.options.scale, result, json_text(why).c_str(), elapsed_ms(),
                 json_text(s.gpu).c_str(), s.driver.c_str(), version(s.cuda_of_driver).c_str(),
                 version(CUDART_VERSION).c_str(), today().c_str());
    std::fclose(file);
  }
}

void say(const char* result, const std::string& why) {
  std::printf("%s %s%s%s\n", result, state().current->name, why.empty() ? "" : ": ", why.c_str());
  std::fflush(stdout);
  std::string word = result;
  std::transform(word.begin(), word.end(), word.begin(), [](char c) { return std::tolower(c); });
  record(word.c_str(), why);
}

// What all PEs came to; prints it on PE 0. True if the case failed.
bool report() {
  State& s = state();
  *s.mine = s.why;
  require_weft(weft_team_fcollect(WEFT_TEAM_WORLD, s.all, s.mine, sizeof(Reason)), "agreeing");
  for (int pe = 0; pe < s.pe_count; ++pe) {
    if (s.all[pe].text[0] != 0) {
      if (s.me == 0) {
        say("FAIL", "PE " + std::to_string(pe) + ": " + s.all[pe].text + " (seed " +
                        std::to_string(s.options.seed) + ")");
      }
      return true;
    }
  }
  if (s.me == 0) {
    say(s.skipped.empty() ? "PASS" : "SKIP", s.skipped);
  }
  return false;
}

bool run(const Case& one) {
  State& s = state();
  s.current = &one;
  s.why = {};
  s.skipped.clear();
  s.start = std::chrono::steady_clock::now();
  one.run();
  return report();
}

int run_all() {
  const State& s = state();
  int ran = 0;
  int failed = 0;
  for (const Case* one = s.first; one != nullptr; one = one->next) {
    if (s.options.only.empty() || std::strstr(one->name, s.options.only.c_str()) != nullptr) {
      failed += run(*one) ? 1 : 0;
      ++ran;
    }
  }
  if (s.me == 0) {
    std::printf("done: %d cases, %d failed, %d PEs, nodes of %d, seed %llu\n", ran, failed,
                s.pe_count, weft_node_pe_count(), static_cast<unsigned long long>(s.options.seed));
  }
  return failed != 0 || ran == 0 ? 1 : 0;
}

void parse(int argc, char** argv) {
  Options& options = state().options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 0);
    } else if (name == "--scale") {
      options.scale = std::strtod(value, nullptr);
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--only") {
      options.only = value;
    } else {
      std::fprintf(stderr, "%s: unknown; there are --seed --scale --json --only\n", argv[i]);
      std::exit(2);
    }
  }
}

// The job begins and ends by Weft's calls, or, for the programs in nvshmem/, by NVSHMEM's.
#ifdef DEVICE_SUITE_BY_NVSHMEM
void begin_job() {
  nvshmem_init();
}

// Without a GPU: why.
std::string take_gpu(bool has_gpu) {
  if (has_gpu) {
    nvshmem_free(nvshmem_malloc(1));  // the second stage of initialization
  }
  return "no GPU";
}

void end_job() {
  nvshmem_finalize();
}
#else
void begin_job() {
  require_weft(weft_init(), "weft_init");
}

std::string take_gpu(bool has_gpu) {
  const int status = weft_device_init();
  if (has_gpu) {
    require_weft(status, "weft_device_init");
  }
  return weft_last_error();
}

void end_job() {
  weft_finalize();
}
#endif

// Takes a GPU and the symmetric memory of the suite; false if there is no GPU.
bool open() {
  State& s = state();
  setenv("WEFT_DEVICE_SHARED", "yes", 0);
  begin_job();
  s.me = weft_pe();
  s.pe_count = weft_pe_count();
  int gpus = 0;
  const bool has_gpu = cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
  if (has_gpu) {
    require_cuda(cudaSetDevice(weft_machine_pe() % gpus), "cudaSetDevice");
  }
  const std::string why_not = take_gpu(has_gpu);
  if (!has_gpu) {
    if (s.me == 0) {
      std::printf("SKIP all: %s\n", why_not.c_str());
    }
    return false;
  }
  s.is_shared = s.pe_count > gpus;
  cudaDeviceProp properties{};
  require_cuda(cudaGetDeviceProperties(&properties, weft_machine_pe() % gpus), "the GPU's name");
  s.gpu = properties.name;
  require_cuda(cudaDriverGetVersion(&s.cuda_of_driver), "the driver's version");
  s.driver = driver_release();
  s.mine = static_cast<Reason*>(weft_calloc(1, sizeof(Reason)));
  s.all = static_cast<Reason*>(weft_calloc(static_cast<std::size_t>(s.pe_count), sizeof(Reason)));
  require(s.mine != nullptr && s.all != nullptr, "weft_calloc");
  return true;
}

// Ends all PEs: after an error of CUDA nothing goes on.
[[noreturn]] void end(const std::string& why) {
  const State& s = state();
  const char* name = s.current != nullptr ? s.current->name : "start";
  std::printf("FAIL %s: PE %d: %s (seed %llu)\n", name, s.me, why.c_str(),
              static_cast<unsigned long long>(s.options.seed));
  std::fflush(stdout);
  if (s.current != nullptr) {
    record("fail", why);
  }
  if (weft_initialized() != 0) {
    weft_global_exit(1);
  }
  std::exit(1);
}

}  // namespace

const Options& options() {
  return state().options;
}

int me() {
  return state().me;
}

int pe_count() {
  return state().pe_count;
}

bool is_shared() {
  return state().is_shared;
}

std::uint32_t rounds(double count, std::uint32_t least) {
  return std::max(static_cast<std::uint32_t>(count * state().options.scale), least);
}

std::uint32_t turns(double count, std::uint32_t least) {
  return rounds(state().is_shared ? count * kSharedTurns : count, least);
}

const char* name() {
  return state().current->name;
}

std::uint64_t seed() {
  std::uint64_t mixed = state().options.seed;
  for (const char* c = state().current->name; *c != 0; ++c) {
    mixed = random_of(mixed + static_cast<unsigned char>(*c));
  }
  return mixed;
}

void fail(const char* format, ...) {
  Reason& why = state().why;
  if (why.text[0] == 0) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
  }
}

void skip(const char* reason) {
  state().skipped = reason;
}

void require_cuda(int status, const char* what) {
  if (status != cudaSuccess) {
    const std::string error = cudaGetErrorString(static_cast<cudaError_t>(status));
    const bool is_record = weft_device_initialized() != 0 && weft_device_check() != WEFT_OK;
    end(std::string(what) + ": " + error +
        (is_record ? std::string("; ") + weft_last_error() : ""));
  }
}

void require_weft(int status, const char* what) {
  if (status != WEFT_OK) {
    end(std::string(what) + ": " + weft_last_error());
  }
}

void require(bool is_so, const char* what) {
  if (!is_so) {
    end(std::string(what) + ": " + weft_last_error());
  }
}

void finish(const char* what) {
  require_cuda(cudaGetLastError(), what);
  require_cuda(cudaDeviceSynchronize(), what);
  require_weft(weft_barrier_all(), what);
}

Registration::Registration(Case& added) {
  *state().last = &added;
  state().last = &added.next;
}

}  // namespace suite

int main(int argc, char** argv) {
  suite::parse(argc, argv);
  if (!suite::open()) {
    suite::end_job();
    return suite::kSkipped;
  }
  const int status = suite::run_all();
  suite::end_job();
  return status;
}
