#include "src/bootstrap/pmi_bootstrap.hpp"

#include <optional>

#include "src/base/error.hpp"
#include "src/bootstrap/hosted.hpp"
#include "src/bootstrap/launcher_variables.hpp"
#include "src/bootstrap/pmi_store.hpp"
#include "src/bootstrap/sha256.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::string_view kHint =
    "srun --mpi=pmi2 and Hydra's mpiexec set PMI_FD, PMI_RANK and PMI_SIZE; start this program "
    "with "
    "one of them, or unset WEFT_BOOTSTRAP";

// The store lasts as long as the process, because PMI has one init for each. Destroyed at exit,
// which tells the launcher how this process ended; a process that is killed says nothing.
struct PmiSession {
  PmiSession() = default;
  PmiSession(const PmiSession&) = delete;
  PmiSession& operator=(const PmiSession&) = delete;

  ~PmiSession() {
    if (store) {
      store->finish(has_failed ? 1 : 0);
    }
  }

  std::optional<PmiStore> store;
  std::uint32_t job_count = 0;  // that this process has joined; all PEs count alike
  bool has_failed =
      false;  // others may wait for ever for a process that never comes: the launcher ends them
};

PmiSession& session() {
  static PmiSession only;
  return only;
}

// Before an exit that runs no destructors.
void say_farewell() {
  session().store->finish(0);
}

// A PMI barrier does not tell who is missing.
void meet(PmiStore& store, const HostedJob& job) {
  try {
    store.barrier();
  } catch (const Error& error) {
    if (error.status() != Status::Timeout) {
      throw;
    }
    fail(Status::Timeout,
         "PE {} is here, and not all of the {} PEs came to the launcher's barrier (PMI) within {} "
         "s; "
         "PMI does not tell which are missing",
         job.pe.value, job.pe_count, job.timeout.count() / 1000);
  }
}

}  // namespace

bool has_pmi_variables(const Lookup& lookup) {
  return lookup("PMI_FD").has_value() && lookup("PMI_RANK").has_value() &&
         number_or_zero(lookup, "PMI_SIZE") > 1;
}

std::unique_ptr<Bootstrap> connect_pmi(const Config& config, const Lookup& lookup) {
  const LauncherVariables variables(lookup, kHint);
  HostedJob job = hosted_job("pmi", config, variables, {"PMI_RANK", "PMI_SIZE"});
  job.farewell = say_farewell;
  PmiSession& mine = session();
  if (!mine.store) {
    mine.store.emplace(static_cast<int>(variables.number("PMI_FD", kPesMax)), job.timeout);
  }
  mine.has_failed = true;  // until all have come
  const std::string key = fmt::format("weft.{}", mine.job_count++);
  std::unique_ptr<RendezvousThread> host;
  if (job.pe == Pe(0)) {
    job.secret = to_hex(random_digest());
    host = host_rendezvous(job);
    job.rendezvous.port = host->address().port;
    mine.store->put(key, encode_invitation(job, own_hosts(config), mine.store->value_bytes_max()));
  }
  meet(*mine.store, job);
  if (host == nullptr) {
    decode_invitation(mine.store->get(key), job);
  }
  std::unique_ptr<Bootstrap> joined = join_hosted(job, std::move(host));
  mine.has_failed = false;
  return joined;
}

}  // namespace weft::bootstrap
