// The process: the library's global state, and access to it. It does not exist before weft_init or
// after weft_finalize; every function of the C interface checks `current` first.
//
// Threads: weft_init and weft_finalize (init.cpp) create, publish and destroy the job, one at a
// time; any thread between them may call everything else.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "src/api/context_table.hpp"
#include "src/base/atomic.hpp"
#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
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

// Makes the process's job, which no call sees before publish. Throws Error.
void create_job(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap);
[[nodiscard]] bool has_job();
// Call publish(nullptr) first.
void destroy_job();

// The process's runtime; valid only if current() is not null.
[[nodiscard]] runtime::Runtime& runtime();

// All PEs but this one: a wait for an unspecified PE may depend on any of them.
[[nodiscard]] std::span<const Pe> others();

// OpenSHMEM's SHMEM_CTX_INVALID.
inline const weft_ctx_t kInvalidContext = reinterpret_cast<weft_ctx_t>(UINTPTR_MAX);

// The object behind a handle. Undefined for a handle that no function returned, except for
// kInvalidContext, which check rejects.
[[nodiscard]] rma::Context& context_of(weft_ctx_t context);

// All contexts except the default one.
[[nodiscard]] ContextTable& contexts();

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

}  // namespace weft::api
