// The process's NVSHMEM job: whether it has begun, where its symmetric memory is, and how errors
// are said. Each message names the function that the program called.
//
// Threads: as calls.hpp.
#pragma once

#include <weft/device.h>
#include <weft/weft.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"

namespace weft::nvshmem {

// Symmetric host memory for the shim's own exchanges.
struct Scratch {
  std::int64_t* mine = nullptr;  // kWords of them
  std::int64_t* all = nullptr;   // kWords for each PE
  std::byte* block = nullptr;    // kBlockBytes

  static constexpr std::size_t kWords = 4;
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;
};

struct Job {
  int init_count = 0;
  bool is_found = false;      // the process was in a job of Weft's before; whoever began it ends it
  bool is_on_host = false;    // NVSHMEM_HEAP_KIND=SYSMEM
  bool has_device = false;    // the second stage of initialization is done
  bool is_all_mapped = true;  // every PE's GPU memory is reached by loads and stores
  cudaStream_t stream = nullptr;  // of calls without one
  Scratch scratch;
};

[[nodiscard]] Job& job();

// Prints one line on stderr: the PE, the function, and `text`.
void say(const Call& call, const std::string& text);
// Weft's last message with NVSHMEM's names, without Weft's function at its beginning.
[[nodiscard]] std::string last_words();
// One of Weft's statuses as NVSHMEM's.
[[nodiscard]] int status_of(int weft_status);
// For functions that return a status: 0, or a status after the message is printed.
[[nodiscard]] int result_of(const Call& call, int weft_status);
// For functions without a result: prints the message and ends the job, if it is an error.
void must(const Call& call, int weft_status);
[[noreturn]] void end(const Call& call, const std::string& text);

// Ends the program if it is not initialized.
void require_init(const Call& call);
// Also does the second stage of initialization, if it is due: this PE takes its GPU. Collective the
// first time.
void require_memory(const Call& call);

// CUDA's error as one of Weft's, with a message.
[[nodiscard]] int from_cuda(const Call& call, int error);

// Runs enqueue(stream), which returns one of Weft's statuses, on the call's stream, or on the job's
// and waits for it.
template <typename Enqueue>
int on_gpu(const Call& call, Enqueue&& enqueue) {
  const cudaStream_t stream = call.stream.value_or(job().stream);
  const int status = std::forward<Enqueue>(enqueue)(stream);
  if (status != WEFT_OK || call.stream) {
    return status;
  }
  return from_cuda(call, gpu::wait_for(stream));
}

// What the job's stream has posted to other nodes is complete.
[[nodiscard]] int finish_own_work(const Call& call);

[[nodiscard]] weft_team_t team_of(nvshmem_team_t team);
// The teams of this job are gone.
void forget_teams();

}  // namespace weft::nvshmem
