#include "src/bootstrap/torchrun.hpp"

#include <array>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/launcher_variables.hpp"
#include "src/bootstrap/sha256.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::array<std::string_view, 4> kVariables{"RANK", "WORLD_SIZE", "MASTER_ADDR",
                                                     "MASTER_PORT"};
constexpr std::string_view kHint =
    "torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; start this program with "
    "torchrun, "
    "or unset WEFT_BOOTSTRAP";

// The same for all PEs of a job. Not a secret: it separates jobs that could meet by accident. The
// restart count keeps a PE of torchrun's previous attempt out of the new one.
std::string job_digest(const Lookup& lookup) {
  FieldWriter fields;
  for (const std::string_view name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                      "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    fields.text(lookup(name).value_or(""));
  }
  return to_hex(sha256(fields.bytes()));
}

bool is_loopback(std::string_view master) {
  return master == "localhost" || master == "::1" || master.starts_with("127.");
}

// torchrun tells how many of the job's processes are on this host. Without that (variables set by
// hand), a loopback address tells it; also where a host has several emulated nodes, unless there is
// a secret for TCP.
bool is_on_one_host(const HostedJob& job,
                    const Config& config,
                    const Lookup& lookup,
                    std::string_view master) {
  const auto local = lookup("LOCAL_WORLD_SIZE");
  if (local && *local == std::to_string(job.pe_count)) {
    return true;
  }
  return is_loopback(master) && (!local || config.job_secret.empty());
}

Address rendezvous_of(const HostedJob& job, const Config& config, const Lookup& lookup) {
  const LauncherVariables variables(lookup, kHint);
  const std::string master = variables.text("MASTER_ADDR");
  const std::uint32_t port = variables.number("MASTER_PORT", 65'534);
  if (!config.rendezvous.empty()) {
    return parse_address(config.rendezvous);
  }
  if (is_on_one_host(job, config, lookup, master)) {
    return {.host = {},
            .port = 0,
            .path = fmt::format("@weft-{}-{}", ::geteuid(), job_digest(lookup).substr(0, 32))};
  }
  return {.host = master, .port = static_cast<std::uint16_t>(port + 1), .path = {}};
}

std::string secret_of(const HostedJob& job, const Config& config, const Lookup& lookup) {
  if (!config.job_secret.empty()) {
    return config.job_secret;
  }
  if (job.rendezvous.is_unix()) {
    return job_digest(lookup);
  }
  fail(Status::InvalidArgument,
       "the rendezvous at {} can be reached from other hosts, and torchrun gives a job no secret: "
       "set WEFT_JOB_SECRET to the same random text on every host (openssl rand -hex 16 makes one)",
       to_string(job.rendezvous));
}

}  // namespace

bool has_torchrun_variables(const Lookup& lookup) {
  for (const std::string_view name : kVariables) {
    if (!lookup(name)) {
      return false;
    }
  }
  return true;
}

HostedJob parse_torchrun_job(const Config& config, const Lookup& lookup) {
  const LauncherVariables variables(lookup, kHint);
  HostedJob job = hosted_job("torchrun", config, variables, {"RANK", "WORLD_SIZE"});
  job.rendezvous = rendezvous_of(job, config, lookup);
  job.secret = secret_of(job, config, lookup);
  return job;
}

std::unique_ptr<Bootstrap> connect_torchrun(const Config& config, const Lookup& lookup) {
  const HostedJob job = parse_torchrun_job(config, lookup);
  return join_hosted(job, job.pe == Pe(0) ? host_rendezvous(job) : nullptr);
}

}  // namespace weft::bootstrap
