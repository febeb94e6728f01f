#include "src/bootstrap/connect.hpp"

#include <cstdlib>
#include <limits>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/bootstrap/pmix_bootstrap.hpp"
#include "src/bootstrap/single.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"
#include "src/bootstrap/torchrun.hpp"

namespace weft::bootstrap {
namespace {

bool has_pmix_variables(const Lookup& lookup) {
  return lookup("PMIX_RANK").has_value() && lookup("PMIX_NAMESPACE").has_value();
}

void require_pmix(const Lookup& lookup) {
  if (!pmix_is_built()) {
    fail(Status::InvalidArgument,
         "WEFT_BOOTSTRAP=pmix: this Weft was built without PMIx; build it with libpmix-dev");
  }
  if (!has_pmix_variables(lookup)) {
    fail(Status::InvalidArgument,
         "WEFT_BOOTSTRAP=pmix: PMIX_RANK and PMIX_NAMESPACE are not set; start this program with "
         "mpirun or srun --mpi=pmix");
  }
}

Method choose_automatically(const Config& config, const Lookup& lookup) {
  if (!config.rendezvous.empty()) {
    return Method::Tcp;
  }
  if (has_pmix_variables(lookup)) {
    if (pmix_is_built()) {
      return Method::Pmix;
    }
    log::warn(
        "started by a PMIx launcher, but this Weft was built without PMIx, and so ignores it");
  }
  return has_torchrun_variables(lookup) ? Method::Torchrun : Method::Single;
}

TcpBootstrap::Options tcp_options(const Config& config) {
  constexpr std::int64_t kPesMax = std::numeric_limits<std::int32_t>::max();
  if (config.rendezvous.empty() || config.pe < 0 || config.pe_count < 1 ||
      config.job_secret.empty()) {
    fail(Status::InvalidArgument,
         "the tcp bootstrap needs WEFT_RENDEZVOUS, WEFT_PE, WEFT_PE_COUNT and WEFT_JOB_SECRET, and "
         "{} is missing; weft-run sets them all",
         config.rendezvous.empty() ? "WEFT_RENDEZVOUS"
         : config.pe < 0           ? "WEFT_PE"
         : config.pe_count < 1     ? "WEFT_PE_COUNT"
                                   : "WEFT_JOB_SECRET");
  }
  if (config.pe >= config.pe_count || config.pe_count > kPesMax) {
    fail(Status::InvalidArgument, "WEFT_PE={} is not below WEFT_PE_COUNT={}", config.pe,
         config.pe_count);
  }
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
    require_pmix(lookup);
    return Method::Pmix;
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
