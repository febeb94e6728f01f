// What of OpenSHMEM's contexts is not weft_context_* already: contexts know their team, and
// SHMEM_CTX_INVALID is accepted where the specification says so.
//
// Threads: any.
#pragma once

#include <span>

#include "src/api/errors.hpp"

namespace weft::api::shmem {

// 0, or an error and *context invalid.
int create_context(weft_team_t team, weft_context_t* context);
// Nothing for an invalid one.
int destroy_context(weft_context_t context);
// 0 and the team that the context was made on; an error and no team for an invalid one.
int team_of_context(weft_context_t context, weft_team_t* team);
// Nothing for an invalid one.
int fence_context(const Caller& caller);
int quiet_context(const Caller& caller);
int pe_quiet_context(const Caller& caller, std::span<const int> pes);
// A session begins or ends. It changes nothing: what may be delayed or sent together is, always, and a quiet
// sends it. Nothing for an invalid context.
int check_session(const Caller& caller);

}  // namespace weft::api::shmem
