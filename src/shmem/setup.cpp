#include "src/shmem/setup.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/base/config.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"

namespace weft::api::shmem {
namespace {

constexpr int kThreadLevelMax = 3;  // SHMEM_THREAD_MULTIPLE

int provided_level = kThreadLevelMax;
int init_count = 0;  // calls of init without a matching call of finalize

const char* variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread writes the environment while a job starts
  const char* value = std::getenv(name);
  if (const std::string_view whole = name; value == nullptr && whole.starts_with("SHMEM_")) {
    const std::string deprecated = "SMA_" + std::string(whole.substr(6));
    // NOLINTNEXTLINE(concurrency-mt-unsafe): as above
    value = std::getenv(deprecated.c_str());
  }
  return value == nullptr ? "" : value;
}

// OpenSHMEM's switches are on if they have any value.
bool is_set(const char* name) {
  return *variable(name) != '\0';
}

void apply_environment(Config& config) {
  if (is_set("SHMEM_SYMMETRIC_SIZE") && !is_set("WEFT_HEAP_SIZE")) {
    const std::string_view size = variable("SHMEM_SYMMETRIC_SIZE");
    try {
      config.heap_size = parse_bytes(size);
      if (config.heap_size == 0) {
        fail(Status::InvalidArgument, "the heap must not be empty");
      }
    } catch (const Error& error) {
      fail(Status::InvalidArgument, "SHMEM_SYMMETRIC_SIZE={}: {}", shown(size), error.what());
    }
  }
  if (is_set("SHMEM_DEBUG") && !is_set("WEFT_LOG")) {
    config.log = "debug";
  }
}

void print_information() {
  if (weft_pe() != 0) {
    return;
  }
  if (is_set("SHMEM_VERSION")) {
    std::fputs("OpenSHMEM 1.6 on Weft 0.1\n", stderr);
  }
  if (is_set("SHMEM_INFO")) {
    std::fputs(
        "SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap of each PE, for example 512M or 1.5G\n"
        "SHMEM_VERSION         prints the version at the start\n"
        "SHMEM_INFO            prints this text\n"
        "SHMEM_DEBUG           logs what happens (as WEFT_LOG=debug)\n"
        "WEFT_*                `weft-info --env` lists all\n",
        stderr);
  }
}

// A program that returns from main has no further communication with its peers, and may finalize
// with them. One that exits with an error may leave its peers in any state, and must not wait for
// them. A child of fork comes here too, and is in no job.
void finalize_at_exit(int status, void* /*unused*/) {
  init_count = std::min(init_count, 1);
  if (status == 0) {
    finalize();
  }
  leave_job();
}

}  // namespace

int init(const Caller& caller, int thread_level) {
  if (init_count > 0 && current() != nullptr) {
    ++init_count;
    return WEFT_OK;
  }
  const int status = initialize({.name = caller.name,
                                 .symmetric_globals = true,
                                 .adjust = apply_environment,
                                 .says_errors = false});  // the caller prints what it returns
  if (status != WEFT_OK) {
    return status;
  }
  init_count = 1;
  provided_level = thread_level;
  print_information();
  static const int registered = on_exit(finalize_at_exit, nullptr);
  static_cast<void>(registered);
  return WEFT_OK;
}

int init_thread(const Caller& caller, int requested, int* provided) {
  if (requested < 0 || requested > kThreadLevelMax) {
    const int status = report(
        Status::InvalidArgument,
        fmt::format("{}: there is no thread level {}; use SHMEM_THREAD_SINGLE, "
                    "SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE",
                    caller.name, requested));
    return rename_on_error(caller.name, status);
  }
  const int status = rename_on_error(caller.name, init(caller, requested));
  if (status == WEFT_OK) {
    *provided = provided_level;
  }
  return status;
}

int thread_level() {
  return provided_level;
}

int start_pes(const Caller& caller) {
  return current() != nullptr ? static_cast<int>(WEFT_OK) : init(caller, kThreadLevelMax);
}

int finalize() {
  if (current() == nullptr) {
    return WEFT_OK;
  }
  if (init_count > 1) {
    --init_count;
    return weft_barrier_all();
  }
  init_count = 0;
  return api::finalize();
}

int is_pe(int pe) {
  return pe >= 0 && pe < weft_pe_count() ? 1 : 0;
}

int is_accessible(const void* address, int pe) {
  const rma::Rma* rma = current();
  heap::Place place;
  return rma != nullptr && is_pe(pe) != 0 &&
                 rma->find(address, 1, Pe(static_cast<std::uint32_t>(pe)), place)
             ? 1
             : 0;
}

void copy_name(char* name, std::string_view text) {
  *std::ranges::copy(text, name).out = '\0';
}

void* allocate(const Caller& caller, std::size_t bytes) {
  return bytes == 0 ? nullptr : api::allocate(caller, bytes, kCacheLineBytes, false);
}

void* allocate_zeroed(const Caller& caller, std::size_t bytes) {
  return bytes == 0 ? nullptr : api::allocate(caller, bytes, kCacheLineBytes, true);
}

void* allocate_aligned(const Caller& caller, std::size_t alignment, std::size_t bytes) {
  return bytes == 0 ? nullptr : api::allocate(caller, bytes, alignment, false);
}

}  // namespace weft::api::shmem
