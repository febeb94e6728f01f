// weft-info: what was found on this machine, which NICs a PE would use and why the others not; with
// --doctor, whether it works.
//
// Changes nothing and needs no job. Status 0, 1 if the doctor finds a problem, or 2 with one line
// on stderr for bad input.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>

#include "src/base/config.hpp"
#include "src/base/error.hpp"
#include "src/base/open_files.hpp"
#include "src/topology/node.hpp"
#include "tools/info/bootstrap_found.hpp"
#include "tools/info/doctor/doctor.hpp"
#include "tools/info/doctor/job.hpp"
#include "tools/info/env_table.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

constexpr int kNotReady = 1;
constexpr int kBadInput = 2;
constexpr int kStepLimitMaxS = 3600;
constexpr int kPeCountMax = 4096;  // of one node
constexpr std::chrono::seconds kOthersTime{
    1};  // for other PEs to say what they could not tell PE 0

struct Options {
  bool env = false;
  bool markdown = false;
  bool json = false;
  std::string topology;
  bool doctor = false;
  std::string doctor_step;  // of the doctor's own children
  DoctorOptions doctoring;
};

CLI::Option* declare_doctor(CLI::App& app, Options& options) {
  auto* doctor = app.add_flag(
      "--doctor", options.doctor,
      "Try it: heap, processes of a node, GPUs, and a job over the rails; "
      "started by "
      "weft-run or another launcher, between the PEs. Status 1 if there is something to change");
  app.add_flag("--all-nics", options.doctoring.all_nics,
               "With --doctor: try all NICs that are up, not only those that a PE would use")
      ->needs(doctor);
  app.add_option("--step-limit", options.doctoring.step_limit_s,
                 "With --doctor: seconds after which a step is ended as not answering")
      ->check(CLI::Range(1, kStepLimitMaxS))
      ->capture_default_str()
      ->needs(doctor);
  app.add_option("--doctor-step", options.doctor_step)->needs(doctor)->group("");  // hidden
  app.add_flag("--doctor-pair", options.doctoring.is_pair)->needs(doctor)->group("");
  return doctor;
}

void declare(CLI::App& app, Options& options) {
  auto* env = app.add_flag("--env", options.env, "Print the configuration table and its values");
  app.add_flag("--markdown", options.markdown, "With --env: print docs/ENV.md")->needs(env);
  app.add_flag("--json", options.json, "Print JSON");
  app.add_option("--pe", options.doctoring.pe.index,
                 "The PE of the node whose NICs are chosen, from 0")
      ->check(CLI::Range(0, kPeCountMax - 1));
  app.add_option("--pes", options.doctoring.pe.count, "How many PEs the node has")
      ->check(CLI::Range(1, kPeCountMax));
  auto* topology = app.add_option(
      "--topology", options.topology,
      "Look at the machine in this hwloc XML file (lstopo machine.xml) instead of this one");
  declare_doctor(app, options)->excludes(topology)->excludes(env);
  app.set_version_flag("--version", "weft-info " WEFT_VERSION);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

void print_env(const Options& options) {
  if (options.markdown) {
    print(settings_markdown());
    return;
  }
  const Lookup lookup = environment();
  print(options.json ? env_json(lookup) : env_text(lookup));
  // The table first: the message about a wrong variable points to it.
  static_cast<void>(load_config_from_environment());
}

void print_report(const Options& options) {
  Report report =
      make_report(load_config_from_environment(), options.doctoring.pe, options.topology);
  report.version = WEFT_VERSION;
  print(options.json ? report_json(report) : report_text(report));
}

// One step, in the process that the doctor made for it; it does not outlive the doctor.
int run_doctor_step(const Options& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool known =
      run_step(options.doctor_step, load_config_from_environment(), options.doctoring);
  return known ? EXIT_SUCCESS : kBadInput;
}

int run_doctor(const Options& options) {
  const PeQuestion& asked = options.doctoring.pe;
  if (asked.index >= asked.count) {
    fail(Status::InvalidArgument, "--pe {} is not one of --pes {}; the first is 0", asked.index,
         asked.count);
  }
  const Config config = load_config_from_environment();
  const bool in_job = is_job(config);
  DoctorOptions doctoring = options.doctoring;
  doctoring.with_info = config.log == "info" || config.log == "debug";
  std::string text = fmt::format("weft {}: trying this machine; a step may take {} s\n\n",
                                 WEFT_VERSION, doctoring.step_limit_s);
  // In a job only PE 0 speaks, and that is known at the end.
  const bool speaks_at_once = !in_job && !options.json;
  const auto flush = [&](std::FILE* to) {
    std::fputs(text.c_str(), to);
    std::fflush(to);
    text.clear();
  };
  const Diagnosis diagnosis = diagnose(doctoring, in_job, [&](const StepResult& step) {
    text += step_text(step);
    if (speaks_at_once) {
      flush(stdout);
    }
  });
  const bool is_told = !in_job || diagnosis.seat.has_value();
  const std::string pe = find_bootstrap(config, environment()).pe.value_or("0");
  if (in_job && pe != "0") {
    // A launcher may end the job at the first status that is not 0, before PE 0 has spoken.
    if (!is_told) {
      text = fmt::format("weft-info: PE {} on {} could not tell PE 0 what it found:\n{}{}", pe,
                         topology::node_identity().hostname, text, verdict_text(diagnosis));
      flush(stderr);
    }
    return EXIT_SUCCESS;
  }
  if (!is_told) {
    std::this_thread::sleep_for(kOthersTime);
  }
  text = options.json ? diagnosis_json(diagnosis, WEFT_VERSION) : text + verdict_text(diagnosis);
  flush(stdout);
  return diagnosis.is_ready() ? EXIT_SUCCESS : kNotReady;
}

// Not by fmt::print, which throws where standard error cannot be written.
void say(const std::string& sentence) {
  static_cast<void>(std::fputs(("weft-info: " + sentence + "\n").c_str(), stderr));
}

int run(int argc, char** argv) {
  // As inherited, either would hide how the doctor's steps end.
  open_standard_streams();
  ::signal(SIGCHLD, SIG_DFL);
  CLI::App app("What Weft finds on this machine, which NICs it would use, and why.", "weft-info");
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    say(fmt::format("{}; weft-info --help lists the options", error.what()));
    return kBadInput;
  }
  if (!options.doctor_step.empty()) {
    return run_doctor_step(options);
  }
  if (options.doctor) {
    return run_doctor(options);
  }
  options.env ? print_env(options) : print_report(options);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace weft::info

int main(int argc, char** argv) {
  try {
    return weft::info::run(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    weft::info::say(error.what());
    return weft::info::kBadInput;
  }
}
