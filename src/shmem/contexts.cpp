#include "src/shmem/contexts.hpp"

#include <optional>
#include <span>

#include "src/api/calls.hpp"
#include "src/api/process.hpp"

namespace weft::api::shmem {

int create_context(weft_team_t team, weft_ctx_t* context) {
  *context = kInvalidContext;
  return weft_team_ctx_create(team, context);
}

int destroy_context(weft_ctx_t context) {
  return context == kInvalidContext ? static_cast<int>(WEFT_OK) : weft_ctx_destroy(context);
}

int team_of_context(weft_ctx_t context, weft_team_t* team) {
  *team = WEFT_TEAM_WORLD;
  if (context == WEFT_CTX_DEFAULT) {
    return WEFT_OK;
  }
  const auto found = current() == nullptr ? std::nullopt : contexts().team_of(context);
  *team = found.value_or(WEFT_TEAM_INVALID);
  return found ? static_cast<int>(WEFT_OK)
               : report(Status::InvalidArgument, "shmem_ctx_get_team: not a context");
}

int fence_context(const Caller& caller) {
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK) : fence(caller);
}

int quiet_context(const Caller& caller) {
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK) : quiet(caller);
}

int pe_quiet_context(const Caller& caller, std::span<const int> pes) {
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK) : pe_quiet(caller, pes);
}

int check_session(const Caller& caller) {
  if (current() == nullptr) {
    return report_not_initialized(caller.name);
  }
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK)
                                           : static_cast<int>(check_context(caller));
}

}  // namespace weft::api::shmem
