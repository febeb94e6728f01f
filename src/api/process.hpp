// The process: the one global of the library, and the ways to what it holds. There is none before weft_init and after
// weft_finalize; every function of the C interface asks `current` first.
//
// Threads: `publish` by weft_init and weft_finalize; everything else by any thread between them.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <span>
#include <utility>

#include "src/api/contexts.hpp"
#include "src/api/errors.hpp"
#include "src/base/atomic.hpp"
#include "src/base/config.hpp"
#include "src/rma/rma.hpp"
#include "src/runtime/runtime.hpp"

namespace weft::api {

// What the fast path of every data call loads; null before init and after finalize.
extern rma::Rma* rma_of_process;

inline void publish(rma::Rma* rma) {
  // SYNC runtime-pointer: whoever sees the pointer sees the runtime behind it.
  AtomicRef(rma_of_process).store(rma, std::memory_order_release);
}

[[nodiscard]] inline rma::Rma* current() {
  // SYNC runtime-pointer: pairs with publish.
  return AtomicRef(rma_of_process).load(std::memory_order_acquire);
}

// The process's runtime; only where current() is not null.
[[nodiscard]] runtime::Runtime& runtime();

// All PEs but this one: those that a wait for nobody in particular may be waiting for.
[[nodiscard]] std::span<const Pe> others();

// Where weft_init and shmem_init differ.
struct InitOptions {
  const char* name;
  bool symmetric_globals = false;
  void (*adjust)(Config& config) = nullptr;  // what else the environment says; may throw Error
};

// Joins the job; WEFT_OK, or a status whose sentence is set and printed.
int initialize(const InitOptions& options);

// Whether a process that finalizes may join again: it then keeps its way to the others until leave_job.
enum class LinkUse : bool { Keep, Leave };
int finalize(LinkUse use);
// Nothing while a job runs.
void leave_job();

// OpenSHMEM's SHMEM_CTX_INVALID.
inline const weft_context_t kInvalidContext = reinterpret_cast<weft_context_t>(UINTPTR_MAX);

// Files of device code that come from now on are told nothing.
void forget_device();

// The object behind a handle. A handle that nobody returned is undefined, except kInvalidContext,
// which check refuses.
[[nodiscard]] rma::Context& context_of(weft_context_t context);

// All but the default one.
[[nodiscard]] Contexts& contexts();
// Both complete what is under way on them first.
Status destroy_contexts_of(weft_team_t team);
Status destroy_all_contexts();

// The job's number of the context's PE `pe`; kNoPe if there is none.
[[nodiscard]] inline std::uint32_t world_pe(weft_context_t context, int pe) {
  if (context == WEFT_CONTEXT_DEFAULT) [[likely]] {
    return static_cast<std::uint32_t>(pe);
  }
  return context == kInvalidContext ? rma::kNoPe
                                    : reinterpret_cast<const rma::Context*>(context)->world_pe(
                                          static_cast<std::uint32_t>(pe));
}

// WEFT_CHECK_LEVEL.
[[nodiscard]] std::int64_t check_level();

// Runs `body(Runtime&)` and turns what it throws into a return value.
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
