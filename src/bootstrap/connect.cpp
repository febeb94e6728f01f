#include "src/bootstrap/connect.hpp"

#include <array>
#include <cstdlib>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/bootstrap/launcher_variables.hpp"
#include "src/bootstrap/pmi_bootstrap.hpp"
#include "src/bootstrap/pmix_bootstrap.hpp"
#include "src/bootstrap/single.hpp"
#include "src/bootstrap/slurm.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"
#include "src/bootstrap/torchrun.hpp"

namespace weft::bootstrap {
namespace {

bool has_pmix_variables(const Lookup& lookup) {
  return lookup("PMIX_RANK").has_value() && lookup("PMIX_NAMESPACE").has_value();
}

// Why PMIx cannot be used, or nothing. A file that WEFT_LIBPMIX names has to serve: throws Error
// otherwise.
std::string pmix_trouble(const Config& config) {
  if (!pmix_is_built()) {
    return "this Weft was built without PMIx; build it with libpmix-dev";
  }
  const LibrarySearch search = open_pmix(config);
  if (search.has_found()) {
    return "";
  }
  if (!config.libpmix.empty()) {
    fail(Status::InvalidArgument, "WEFT_LIBPMIX={}: {}", config.libpmix,
         search.refused.front().reason);
  }
  return fmt::format("libpmix cannot be opened ({}); install it, or name its file in WEFT_LIBPMIX",
                     refused_text(search));
}

void require_pmix(const Config& config, const Lookup& lookup) {
  if (const std::string trouble = pmix_trouble(config); !trouble.empty()) {
    fail(Status::InvalidArgument, "WEFT_BOOTSTRAP=pmix: {}", trouble);
  }
  if (!has_pmix_variables(lookup)) {
    fail(Status::InvalidArgument,
         "WEFT_BOOTSTRAP=pmix: PMIX_RANK and PMIX_NAMESPACE are not set; start this program with "
         "mpirun or srun --mpi=pmix");
  }
}

// Launchers that cannot be joined as they are, with the variable that tells how many tasks they
// started.
struct UnservedLauncher {
  std::string_view size_variable;
  std::string_view words;
};

constexpr std::array kUnservedLaunchers{
    UnservedLauncher{"OMPI_COMM_WORLD_SIZE", "OpenMPI's mpirun, which is joined by PMIx"},
    UnservedLauncher{"PMI_SIZE",
                     "a PMI launcher that left no PMI_FD; use one with PMI-1 (srun --mpi=pmi2, "
                     "Hydra's mpiexec) or PMIx (srun --mpi=pmix, OpenMPI's mpirun)"},
    UnservedLauncher{"FLUX_JOB_SIZE", "flux without PMI_FD; use flux run -o pmi=simple"},
    UnservedLauncher{"MV2_COMM_WORLD_SIZE", "MVAPICH's launcher without PMI_FD; use weft-run"},
};

// Without it each task would be a job of one PE, and the job's result silently wrong.
void refuse_unserved_launchers(const Lookup& lookup, const std::string& pmix_trouble) {
  for (const UnservedLauncher& launcher : kUnservedLaunchers) {
    if (const std::uint32_t tasks = number_or_zero(lookup, launcher.size_variable); tasks > 1) {
      fail(Status::InvalidArgument,
           "{}={}: this process was started by {}{}{}; WEFT_BOOTSTRAP=single makes each task a job "
           "of its own",
           launcher.size_variable, tasks, launcher.words, pmix_trouble.empty() ? "" : "; ",
           pmix_trouble);
    }
  }
}

constexpr std::int64_t kUnset = -1;  // the default of WEFT_PE and WEFT_PE_COUNT

void check_numbers(const Config& config) {
  if (config.pe_count < 1 || config.pe_count > kPesMax) {
    fail(Status::InvalidArgument, "WEFT_PE_COUNT={}: a job has 1 to {} PEs", config.pe_count,
         kPesMax);
  }
  if (config.pe < 0) {
    fail(Status::InvalidArgument, "WEFT_PE={}: PEs are numbered from 0", config.pe);
  }
  if (config.pe >= config.pe_count) {
    fail(Status::InvalidArgument, "WEFT_PE={} is not below WEFT_PE_COUNT={}", config.pe,
         config.pe_count);
  }
}

// What weft-run sets, without the rendezvous: each process would be a job of one PE, and the job's
// result silently wrong. PE 0 of 1 needs nobody to meet.
void refuse_numbers_without_rendezvous(const Config& config) {
  constexpr std::string_view kRemedy =
      "start the PEs with weft-run, which sets all variables, or unset this one for a job of one "
      "PE";
  if (config.pe != kUnset && config.pe_count == kUnset) {
    fail(Status::InvalidArgument, "WEFT_PE={} is set and WEFT_PE_COUNT is not; {}", config.pe,
         kRemedy);
  }
  if (config.pe == kUnset && config.pe_count != kUnset) {
    fail(Status::InvalidArgument, "WEFT_PE_COUNT={} is set and WEFT_PE is not; {}", config.pe_count,
         kRemedy);
  }
  if (config.pe == kUnset) {
    return;
  }
  check_numbers(config);
  if (config.pe_count > 1) {
    fail(Status::InvalidArgument,
         "WEFT_PE={} and WEFT_PE_COUNT={} are set and WEFT_RENDEZVOUS, where PEs meet, is not; "
         "start the PEs with weft-run, which sets all variables, or unset both for a job of one PE",
         config.pe, config.pe_count);
  }
}

Method choose_automatically(const Config& config, const Lookup& lookup) {
  if (!config.rendezvous.empty()) {
    return Method::Tcp;
  }
  // Launchers nest, and the inner one's variables stand beside those of the outer: torchrun runs
  // inside srun, and Hydra's and OpenMPI's daemons are tasks of a Slurm step.
  if (lookup("TORCHELASTIC_RUN_ID") && has_torchrun_variables(lookup)) {
    return Method::Torchrun;
  }
  std::string trouble;
  if (has_pmix_variables(lookup)) {
    trouble = pmix_trouble(config);
    if (trouble.empty()) {
      return Method::Pmix;
    }
    log::warn("the launcher offers PMIx, and {}; looking for another way to join the job", trouble);
  }
  if (has_pmi_variables(lookup)) {
    return Method::Pmi;
  }
  refuse_unserved_launchers(lookup, trouble);
  if (has_slurm_step(lookup)) {
    return Method::Slurm;
  }
  if (has_torchrun_variables(lookup)) {
    return Method::Torchrun;
  }
  refuse_numbers_without_rendezvous(config);
  return Method::Single;
}

TcpBootstrap::Options tcp_options(const Config& config) {
  if (config.rendezvous.empty() || config.pe == kUnset || config.pe_count == kUnset ||
      config.job_secret.empty()) {
    fail(Status::InvalidArgument,
         "the tcp bootstrap needs WEFT_RENDEZVOUS, WEFT_PE, WEFT_PE_COUNT and WEFT_JOB_SECRET, and "
         "{} is missing; weft-run sets them all",
         config.rendezvous.empty()   ? "WEFT_RENDEZVOUS"
         : config.pe == kUnset       ? "WEFT_PE"
         : config.pe_count == kUnset ? "WEFT_PE_COUNT"
                                     : "WEFT_JOB_SECRET");
  }
  check_numbers(config);
  return {.address = parse_address(config.rendezvous),
          .secret = config.job_secret,
          .pe = Pe(static_cast<std::uint32_t>(config.pe)),
          .pe_count = static_cast<std::uint32_t>(config.pe_count),
          .timeout = std::chrono::seconds(config.bootstrap_timeout_s)};
}

void check_timeout(const Config& config) {
  if (config.bootstrap_timeout_s < 1) {
    fail(Status::InvalidArgument, "WEFT_BOOTSTRAP_TIMEOUT={}: at least 1 s is wanted",
         config.bootstrap_timeout_s);
  }
}

}  // namespace

Method choose_method(const Config& config, const Lookup& lookup) {
  if (config.bootstrap == "tcp") {
    return Method::Tcp;  // tcp_options names what is missing
  }
  if (config.bootstrap == "pmix") {
    require_pmix(config, lookup);
    return Method::Pmix;
  }
  if (config.bootstrap == "pmi") {
    return Method::Pmi;  // connect_pmi names what is missing
  }
  if (config.bootstrap == "slurm") {
    return Method::Slurm;  // parse_slurm_job names what is missing
  }
  if (config.bootstrap == "torchrun") {
    return Method::Torchrun;  // parse_torchrun_job names what is missing
  }
  if (config.bootstrap == "single") {
    return Method::Single;
  }
  return choose_automatically(config, lookup);
}

std::unique_ptr<Bootstrap> connect(const Config& config, const Lookup& lookup) {
  const Method method = choose_method(config, lookup);
  if (method == Method::Single) {
    return std::make_unique<SingleBootstrap>();
  }
  check_timeout(config);
  switch (method) {
    case Method::Tcp:
      return std::make_unique<TcpBootstrap>(tcp_options(config));
    case Method::Pmix:
      return connect_pmix(config);
    case Method::Pmi:
      return connect_pmi(config, lookup);
    case Method::Slurm:
      return connect_slurm(config, lookup);
    case Method::Torchrun:
      return connect_torchrun(config, lookup);
    case Method::Single:
      break;
  }
  return std::make_unique<SingleBootstrap>();
}

std::unique_ptr<Bootstrap> connect(const Config& config) {
  return connect(config, [](std::string_view name) -> std::optional<std::string> {
    // Init is single-threaded with respect to setenv, as POSIX requires.
    const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace weft::bootstrap
