// Contexts of the C interface: created for the job (for a team: teams.cpp), and destroyed
// individually, with their team or with the job.
#include "src/api/contexts.hpp"

#include <memory>
#include <vector>

#include "src/api/checks.hpp"

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
using weft::api::check_given;
using weft::api::contexts;
using weft::api::guarded;
using weft::api::report;

int weft_ctx_create(weft_ctx_t* context) {
  return guarded("weft_ctx_create", [&](weft::runtime::Runtime& runtime) {
    if (const Status status = check_given("weft_ctx_create", "the context", context);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
    *context =
        contexts().adopt(std::make_unique<weft::rma::Context>(runtime.pe_count()), WEFT_TEAM_WORLD);
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
