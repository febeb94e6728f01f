// The process: the library's global state, and access to it. It does not exist before weft_init or after
// weft_finalize; every function of the C interface checks `current` first.
//
// Threads: weft_init and weft_finalize call `publish`; any thread between them may call everything else.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "src/api/contexts.hpp"
#include "src/api/errors.hpp"
#include "src/base/atomic.hpp"
#include "src/base/config.hpp"
#include "src/bootstrap/unique_id.hpp"
#include "src/rma/rma.hpp"
#include "src/runtime/runtime.hpp"

namespace weft::api {

// Loaded by the fast path of every data call; null before init and after finalize.
extern rma::Rma* rma_of_process;

inline void publish(rma::Rma* rma) {
  // SYNC runtime-pointer: a thread that sees the pointer also sees the runtime behind it.
  AtomicRef(rma_of_process).store(rma, std::memory_order_release);
}

[[nodiscard]] inline rma::Rma* current() {
  // SYNC runtime-pointer: pairs with publish.
  return AtomicRef(rma_of_process).load(std::memory_order_acquire);
}

// The process's runtime; valid only if current() is not null.
[[nodiscard]] runtime::Runtime& runtime();

// All PEs but this one: a wait for an unspecified PE may depend on any of them.
[[nodiscard]] std::span<const Pe> others();

// The differences between weft_init, weft_init_with and shmem_init.
struct InitOptions {
  const char* name;
  bool symmetric_globals = false;
  void (*adjust)(Config& config) = nullptr;  // reads further variables; may throw Error
  // Who this process is, if the program says so and no launcher does.
  const bootstrap::ExplicitJob* job = nullptr;
};

// Joins the job; returns WEFT_OK, or a status whose message is set and printed.
int initialize(const InitOptions& options);

// The process may join again: it keeps its connection to the launcher's other PEs until leave_job or its end, as
// launchers let a PE join once.
int finalize();
// No effect while a job runs.
void leave_job();

// OpenSHMEM's SHMEM_CTX_INVALID.
inline const weft_ctx_t kInvalidContext = reinterpret_cast<weft_ctx_t>(UINTPTR_MAX);

// Device modules that register later get no state.
void forget_device();

// The object behind a handle. Undefined for a handle that no function returned, except for kInvalidContext,
// which check rejects.
[[nodiscard]] rma::Context& context_of(weft_ctx_t context);

// All contexts except the default one.
[[nodiscard]] Contexts& contexts();
// Both first complete the outstanding operations on them.
Status destroy_contexts_of(weft_team_t team);
Status destroy_all_contexts();

// The job's number of PE `pe` of the context; kNoPe if there is none.
[[nodiscard]] inline std::uint32_t world_pe(weft_ctx_t context, int pe) {
  if (context == WEFT_CTX_DEFAULT) [[likely]] {
    return static_cast<std::uint32_t>(pe);
  }
  return context == kInvalidContext ? rma::kNoPe
                                    : reinterpret_cast<const rma::Context*>(context)->world_pe(
                                          static_cast<std::uint32_t>(pe));
}

// The value of WEFT_CHECK_LEVEL.
[[nodiscard]] std::int64_t check_level();
// The value of WEFT_CHECK_COLLECTIVES.
[[nodiscard]] std::string_view check_collectives();

// Runs `body(Runtime&)` and converts exceptions to a return value.
template <typename Body>
int guarded(const char* name, Body&& body) {
  if (current() == nullptr) {
    return report_not_initialized(name);
  }
  try {
    return std::forward<Body>(body)(runtime());
  } catch (const Error& error) {
    return report(error.status(), error.what());
  } catch (const std::exception& error) {
    return report(Status::Internal, error.what());
  }
}

}  // namespace weft::api
