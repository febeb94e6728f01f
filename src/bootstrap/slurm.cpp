#include "src/bootstrap/slurm.hpp"

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/launcher_variables.hpp"
#include "src/bootstrap/sha256.hpp"
#include "src/bootstrap/slurm_lists.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::string_view kHint =
    "srun sets it for each task; start this program with srun, or unset WEFT_BOOTSTRAP";

// Below the ports that Linux hands out by itself (32768 and up, ip(7)), above those of common
// services.
constexpr std::uint32_t kPortFirst = 16'384;
constexpr std::uint32_t kPortCount = 16'384;

// The same for all tasks of a step. Not a secret: it separates steps that could meet by accident.
// The restart count keeps a task of a job's earlier attempt out.
Digest step_digest(const Lookup& lookup) {
  FieldWriter fields;
  for (const std::string_view name :
       {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}) {
    fields.text(lookup(name).value_or(""));
  }
  return sha256(fields.bytes());
}

Address rendezvous_of(const Config& config, const Lookup& lookup) {
  if (!config.rendezvous.empty()) {
    return parse_address(config.rendezvous);
  }
  const LauncherVariables variables(lookup, kHint);
  const auto hosts = expand_host_list(variables.text("SLURM_STEP_NODELIST"));
  if (hosts.size() == 1) {
    const std::string name = to_hex(step_digest(lookup)).substr(0, 32);
    return {.host = {}, .port = 0, .path = fmt::format("@weft-{}-{}", ::geteuid(), name)};
  }
  // Consecutive steps and jobs have different ports.
  const std::uint32_t sum = variables.number("SLURM_JOB_ID", UINT32_MAX) * 64 +
                            variables.number("SLURM_STEP_ID", UINT32_MAX);
  const auto port = static_cast<std::uint16_t>(kPortFirst + sum % kPortCount);
  return {.host = hosts.front(), .port = port, .path = {}};
}

std::string secret_of(const Address& rendezvous, const Config& config, const Lookup& lookup) {
  if (!config.job_secret.empty()) {
    return config.job_secret;
  }
  if (rendezvous.is_unix()) {
    return to_hex(step_digest(lookup));
  }
  fail(
      Status::InvalidArgument,
      "plain srun on several hosts needs a secret, because others can reach the rendezvous at {}: "
      "use srun --mpi=pmi2 or --mpi=pmix, or export WEFT_JOB_SECRET=$(openssl rand -hex 16) before "
      "srun, which passes it on (WEFT_BOOTSTRAP=single makes each task a job of its own)",
      to_string(rendezvous));
}

}  // namespace

bool has_slurm_step(const Lookup& lookup) {
  return lookup("SLURM_PROCID").has_value() && number_or_zero(lookup, "SLURM_STEP_NUM_TASKS") > 1;
}

HostedJob parse_slurm_job(const Config& config, const Lookup& lookup) {
  const LauncherVariables variables(lookup, kHint);
  HostedJob job = hosted_job("slurm", config, variables, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"});
  job.rendezvous = rendezvous_of(config, lookup);
  job.secret = secret_of(job.rendezvous, config, lookup);
  return job;
}

std::unique_ptr<Bootstrap> connect_slurm(const Config& config, const Lookup& lookup) {
  const HostedJob job = parse_slurm_job(config, lookup);
  return join_hosted(job, job.pe == Pe(0) ? host_rendezvous(job) : nullptr);
}

}  // namespace weft::bootstrap
