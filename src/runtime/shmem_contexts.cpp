#include "src/runtime/shmem_contexts.hpp"

#include <map>
#include <mutex>

namespace weft::c_api::shmem {
namespace {

struct Teams {
  std::mutex mutex;
  std::map<weft_context_t, weft_team_t> by_context;
};

Teams& teams() {
  static Teams all;
  return all;
}

}  // namespace

int create_context(weft_team_t team, weft_context_t* context) {
  *context = kInvalidContext;
  weft_context_t made = kInvalidContext;
  const int status =
      team == WEFT_TEAM_WORLD ? weft_context_create(&made) : weft_team_context_create(team, &made);
  if (status != WEFT_OK) {
    return status;
  }
  *context = made;
  const std::unique_lock lock(teams().mutex);
  teams().by_context[made] = team;
  return WEFT_OK;
}

int destroy_context(weft_context_t context) {
  if (context == kInvalidContext) {
    return WEFT_OK;
  }
  {
    const std::unique_lock lock(teams().mutex);
    teams().by_context.erase(context);
  }
  return weft_context_destroy(context);
}

int team_of_context(weft_context_t context, weft_team_t* team) {
  const std::unique_lock lock(teams().mutex);
  const auto found = teams().by_context.find(context);
  if (context != WEFT_CONTEXT_DEFAULT && found == teams().by_context.end()) {
    *team = WEFT_TEAM_INVALID;
    return report(Status::InvalidArgument, "shmem_ctx_get_team: not a context");
  }
  *team = context == WEFT_CONTEXT_DEFAULT ? WEFT_TEAM_WORLD : found->second;
  return WEFT_OK;
}

int fence_context(const Caller& caller) {
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK) : fence(caller);
}

int quiet_context(const Caller& caller) {
  return caller.context == kInvalidContext ? static_cast<int>(WEFT_OK) : quiet(caller);
}

}  // namespace weft::c_api::shmem
