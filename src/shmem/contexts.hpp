// The part of OpenSHMEM's contexts that weft_ctx_* does not provide: contexts know their team, and
// SHMEM_CTX_INVALID is accepted where the specification requires it.
//
// Threads: any.
#pragma once

#include <span>

#include "src/api/errors.hpp"

namespace weft::api::shmem {

// Returns 0, or an error with *context set to the invalid context.
int create_context(weft_team_t team, weft_ctx_t* context);
// No effect for an invalid context.
int destroy_context(weft_ctx_t context);
// 0 and the context's team; an error and no team for an invalid context.
int team_of_context(weft_ctx_t context, weft_team_t* team);
// No effect for an invalid context.
int fence_context(const Caller& caller);
int quiet_context(const Caller& caller);
int pe_quiet_context(const Caller& caller, std::span<const int> pes);
// Starts or stops a session. It has no effect: operations that may be delayed or combined always
// are, and a quiet sends them. An invalid context is ignored.
int check_session(const Caller& caller);

}  // namespace weft::api::shmem
