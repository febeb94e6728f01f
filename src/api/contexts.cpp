// Contexts of the C interface: created, and destroyed individually or with their team.
#include "src/api/contexts.hpp"

#include <algorithm>
#include <numeric>

#include "src/api/calls.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"
#include "src/api/teams.hpp"
#include "src/collectives/team.hpp"

namespace weft::api {
namespace {

// Completes outstanding operations on contexts that are about to be destroyed.
Status quiet_all(const std::vector<std::unique_ptr<rma::Context>>& contexts) {
  Status status = Status::Ok;
  for (const auto& context : contexts) {
    if (const Status quiet = current()->quiet(*context); quiet != Status::Ok) {
      status = quiet;
    }
  }
  return status;
}

// The job's PE numbers, indexed by the number in the team.
std::vector<std::uint32_t> world_pes(const collectives::Team& team) {
  std::vector<std::uint32_t> pes(team.size());
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    pes[i] = team.pe(i).value;
  }
  return pes;
}

}  // namespace

Status destroy_contexts_of(weft_team_t team) {
  return quiet_all(
      contexts().take([&](weft_ctx_t /*handle*/, weft_team_t own) { return own == team; }));
}

Status destroy_all_contexts() {
  return quiet_all(contexts().take([](weft_ctx_t, weft_team_t) { return true; }));
}

}  // namespace weft::api

using weft::Status;
using weft::api::contexts;
using weft::api::guarded;
using weft::api::report;

int weft_ctx_create(weft_ctx_t* context) {
  return guarded("weft_ctx_create", [&](weft::runtime::Runtime& runtime) {
    *context =
        contexts().adopt(std::make_unique<weft::rma::Context>(runtime.pe_count()), WEFT_TEAM_WORLD);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_team_ctx_create(weft_team_t team, weft_ctx_t* context) {
  return guarded("weft_team_ctx_create", [&](weft::runtime::Runtime& runtime) {
    const weft::collectives::Team* object = weft::api::team_of(runtime, team);
    if (object == nullptr) {
      return report(Status::InvalidArgument, "weft_team_ctx_create: not a team of this PE");
    }
    *context = contexts().adopt(
        std::make_unique<weft::rma::Context>(runtime.pe_count(), weft::api::world_pes(*object)),
        team);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_ctx_destroy(weft_ctx_t context) {
  return guarded("weft_ctx_destroy", [&](weft::runtime::Runtime& /*runtime*/) {
    const auto taken =
        contexts().take([&](weft_ctx_t handle, weft_team_t /*team*/) { return handle == context; });
    if (taken.empty()) {
      return report(Status::InvalidArgument,
                    "weft_ctx_destroy: not a context that weft_ctx_create returned, or one "
                    "that was destroyed, maybe with its team");
    }
    return weft::api::finish(weft::api::quiet_all(taken), "weft_ctx_destroy");
  });
}
