#include "tools/info/bootstrap_found.hpp"

#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/bootstrap/connect.hpp"
#include "src/bootstrap/pmix_bootstrap.hpp"
#include "src/bootstrap/slurm.hpp"
#include "src/bootstrap/torchrun.hpp"
#include "tools/info/libraries.hpp"

namespace weft::info {
namespace {

using bootstrap::Method;

std::optional<std::string> first_of(const Lookup& lookup,
                                    std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto value = lookup(name); value && !value->empty()) {
      return value;
    }
  }
  return std::nullopt;
}

std::string half_set_launcher(const Lookup& lookup) {
  if (lookup("PMIX_RANK") && !lookup("PMIX_NAMESPACE")) {
    return "PMIX_RANK is set and PMIX_NAMESPACE is not; was it passed on by hand?";
  }
  return "";
}

void describe(Method method, const Lookup& lookup, BootstrapFound& found) {
  switch (method) {
    case Method::Tcp:
      found.method = "tcp";
      found.variables = {"WEFT_RENDEZVOUS", "WEFT_PE", "WEFT_PE_COUNT"};
      found.pe = lookup("WEFT_PE");
      found.pe_count = lookup("WEFT_PE_COUNT");
      return;
    case Method::Pmix:
      found.method = "pmix";
      found.variables = {"PMIX_RANK", "PMIX_NAMESPACE"};
      found.pe = lookup("PMIX_RANK");
      found.pe_count = first_of(lookup, {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
      return;
    case Method::Pmi:
      found.method = "pmi";
      found.variables = {"PMI_FD", "PMI_RANK", "PMI_SIZE"};
      found.pe = lookup("PMI_RANK");
      found.pe_count = lookup("PMI_SIZE");
      return;
    case Method::Slurm:
      found.method = "slurm";
      found.variables = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"};
      found.pe = lookup("SLURM_PROCID");
      found.pe_count = lookup("SLURM_STEP_NUM_TASKS");
      return;
    case Method::Torchrun:
      found.method = "torchrun";
      found.variables = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
      found.pe = lookup("RANK");
      found.pe_count = lookup("WORLD_SIZE");
      return;
    case Method::Single:
      found.method = "single";
      found.pe = "0";
      found.pe_count = "1";
      found.trouble = half_set_launcher(lookup);
      return;
  }
}

std::string pmix_text(const BootstrapFound& found) {
  if (!bootstrap::pmix_is_built()) {
    return "  libpmix: this Weft was built without PMIx\n";
  }
  if (found.pmix.has_found()) {
    return fmt::format("  libpmix: {} ({})\n{}", found.pmix.file, found.pmix_version,
                       refused_lines(found.pmix));
  }
  return fmt::format("  libpmix: none could be opened; only launchers with PMIx need it\n{}",
                     refused_lines(found.pmix));
}

}  // namespace

BootstrapFound find_bootstrap(const Config& config, const Lookup& lookup) {
  BootstrapFound found;
  try {
    const Method method = bootstrap::choose_method(config, lookup);
    describe(method, lookup, found);
    if (method == Method::Torchrun) {
      static_cast<void>(bootstrap::parse_torchrun_job(config, lookup));  // throws what a PE would
    } else if (method == Method::Slurm) {
      static_cast<void>(bootstrap::parse_slurm_job(config, lookup));
    }
  } catch (const Error& error) {
    found.trouble = error.what();
  }
  found.pmix = bootstrap::open_pmix(config);
  found.pmix_version = found.pmix.has_found() ? bootstrap::pmix_version() : "";
  if (config.bootstrap != "auto") {
    found.variables.insert(found.variables.begin(), "WEFT_BOOTSTRAP");
  }
  return found;
}

std::string bootstrap_text(const BootstrapFound& found) {
  std::string text = "bootstrap: ";
  if (found.method.empty()) {
    text += "none fits\n";
  } else if (found.method == "single") {
    text += "single: a program started like this is a job of one PE\n";
  } else {
    text += fmt::format("{}, known by {}: PE {} of {}\n", found.method,
                        fmt::join(found.variables, ", "), found.pe.value_or("?"),
                        found.pe_count.value_or("?"));
  }
  return text + (found.trouble.empty() ? "" : fmt::format("  {}\n", found.trouble)) +
         pmix_text(found);
}

nlohmann::ordered_json bootstrap_json(const BootstrapFound& found) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::optional<std::string>& text) {
    return text ? Json(*text) : Json(nullptr);
  };
  return {
      {"method", found.method.empty() ? Json(nullptr) : Json(found.method)},
      {"variables", found.variables},
      {"pe", or_null(found.pe)},
      {"pe_count", or_null(found.pe_count)},
      {"trouble", found.trouble.empty() ? Json(nullptr) : Json(found.trouble)},
      {"libpmix", library_json(found.pmix)},
      {"libpmix_version", found.pmix_version.empty() ? Json(nullptr) : Json(found.pmix_version)}};
}

}  // namespace weft::info
