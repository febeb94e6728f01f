// weft-sim: what a machine's NICs would reach with each rail policy, from a simulation that runs
// Weft's own planner. Needs no NIC and no job; the same command prints the same lines.
//
// Status 0; 1 if the table of --calibrate does not fit; 2 with one line on stderr for bad input.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/open_files.hpp"
#include "tools/sim/calibration.hpp"
#include "tools/sim/options.hpp"
#include "tools/sim/report.hpp"

namespace weft::sim {
namespace {

constexpr int kDoesNotFit = 1;
constexpr int kBadInput = 2;
// A calibration that leaves a larger mean error explains nothing.
constexpr double kFits = 0.25;

void print(const std::string& text) {
  static_cast<void>(std::fputs(text.c_str(), stdout));
}

// Not by fmt::print, which throws where standard error cannot be written.
void say(const std::string& sentence) {
  static_cast<void>(std::fputs(("weft-sim: " + sentence + "\n").c_str(), stderr));
}

int list_machines(const Options& options) {
  if (!options.shown_machine.empty()) {
    print(machine_json(load_machine(options.shown_machine)));
    return EXIT_SUCCESS;
  }
  for (const BuiltIn& known : built_in_machines()) {
    const Machine machine = parse_machine(std::string(known.json), std::string(known.name));
    print(fmt::format("{:<20} {} PEs a node, {} NICs a PE, {:.4g} GB/s each: {}\n", known.name,
                      machine.pes_per_node, machine.nics_per_pe, machine.value("nic_gb_per_s"),
                      machine.text));
  }
  return EXIT_SUCCESS;
}

std::uint64_t message_bytes(const Options& options, std::uint64_t size) {
  return options.sizes_are_totals
             ? question_of(options.question, {.bytes = size}).setup.traffic.bytes
             : size;
}

std::string title_of(const Options& options, const Machine& machine) {
  const Setup& setup = options.question.setup;
  return fmt::format("{} on {}: {} nodes x {} PEs x {} NICs, {}",
                     options.is_put_bw ? "put_bw" : "weft-sim", machine.name, setup.nodes,
                     setup.pes_per_node, setup.nics.front(), name_of(setup.library));
}

Residuals print_rows(const Options& options, const Machine& machine, const Reference* reference) {
  const Format format{.is_csv = options.prints_csv, .is_compared = reference != nullptr};
  Residuals residuals;
  std::string header = header_text(format, title_of(options, machine));
  const auto print_row = [&](const std::string& policy, Question question,
                             std::optional<double> measured_us) {
    question.setup.policy = policy;
    Line line{.message_bytes = question.setup.traffic.bytes,
              .policy = policy,
              .prediction = predict(machine, question),
              .measured_us = measured_us};
    if (measured_us) {
      residuals.add(static_cast<std::uint64_t>(line.prediction.bytes), line.prediction.us,
                    *measured_us);
    }
    print(std::exchange(header, {}) + line_text(format, line));
    static_cast<void>(std::fflush(stdout));
  };
  for (const std::string& policy : options.policies) {
    for (std::size_t i = 0; reference != nullptr && i < reference->rows.size(); ++i) {
      print_row(policy, question_of(options.question, reference->rows[i]),
                reference->rows[i].value);
    }
    for (std::size_t i = 0; reference == nullptr && i < options.sizes.size(); ++i) {
      Question question = options.question;
      question.setup.traffic.bytes = message_bytes(options, options.sizes[i]);
      print_row(policy, question, std::nullopt);
    }
  }
  return residuals;
}

// Bandwidths; rows in which nothing is sent are left out, and said.
Residuals print_put_bw(const Options& options, const Machine& machine, const Reference* reference) {
  Residuals residuals;
  std::size_t empty = 0;
  const Library library = options.question.setup.library;
  print(options.prints_csv
            ? "bytes,gb_per_s,measured_gb_per_s,error_percent\n"
            : fmt::format("#{}\n{:<13} {:<12} {:<12} {}\n", title_of(options, machine), "size(B)",
                          "BW (GB/sec)", "real", "error %"));
  const auto print_row = [&](std::uint64_t bytes, double measured) {
    const auto predicted = predict_put_bw(machine, library, bytes);
    if (!predicted) {
      ++empty;
      return;
    }
    const double error = measured > 0 ? (*predicted / measured - 1) * 100 : 0;
    if (measured > 0) {
      residuals.add(bytes, *predicted, measured);
    }
    print(options.prints_csv
              ? fmt::format("{},{:.6f},{:.6f},{:.2f}\n", bytes, *predicted, measured, error)
              : fmt::format("{:<13} {:<12.6f} {:<12.6f} {:+.1f}\n", bytes, *predicted, measured,
                            error));
  };
  for (std::size_t i = 0; reference != nullptr && i < reference->rows.size(); ++i) {
    print_row(reference->rows[i].bytes, reference->rows[i].value);
  }
  for (std::size_t i = 0; reference == nullptr && i < options.sizes.size(); ++i) {
    print_row(options.sizes[i], 0);
  }
  if (empty > 0 && !options.prints_csv) {
    print(
        fmt::format("{} sizes are less than an element for each of {:.0f} CTAs: put_bw sends "
                    "nothing then\n",
                    empty, machine.value("put_bw_ctas")));
  }
  return residuals;
}

void check_table(const Options& options, const Reference& reference) {
  if (reference.is_bandwidth != options.is_put_bw) {
    fail(Status::InvalidArgument, "{} has {}, and {}", reference.file,
         reference.is_bandwidth ? "bandwidths" : "times",
         options.is_put_bw ? "put_bw predicts bandwidths"
                           : "only put_bw can be compared with bandwidths");
  }
}

void write_machine(const Machine& machine, const std::string& file) {
  std::ofstream stream(file);
  stream << machine_json(machine) << std::flush;
  if (!stream) {
    fail("--write {}: the file cannot be written", file);
  }
}

int predict_all(const Options& options) {
  Machine machine = load_machine(options.machine);
  std::optional<Reference> reference;
  if (!options.calibrate.empty()) {
    reference = load_reference(options.calibrate, options.rows);
    check_table(options, *reference);
    Question question = options.question;
    question.setup.policy = options.policies.front();
    const std::string fit =
        options.fit.empty() ? (options.is_put_bw ? "put_bw" : "start") : options.fit;
    calibrate(machine, question, *reference, fit);
    if (!options.write.empty()) {
      write_machine(machine, options.write);
    }
  }
  if (!options.compare.empty()) {
    reference = load_reference(options.compare, options.rows);
    check_table(options, *reference);
  }
  const Reference* const table = reference ? &*reference : nullptr;
  const Residuals residuals = options.is_put_bw ? print_put_bw(options, machine, table)
                                                : print_rows(options, machine, table);
  if (residuals.count > 0 && !options.prints_csv) {
    print(residuals_text(residuals));
  }
  if (!options.calibrate.empty() && residuals.mean > kFits) {
    say(
        fmt::format("{} does not fit {}: the errors above are {:.0f} % in the mean; is it of "
                    "another machine, number of nodes or policy?",
                    options.calibrate, machine.name, residuals.mean * 100));
    return kDoesNotFit;
  }
  return EXIT_SUCCESS;
}

int run(int argc, char** argv) {
  open_standard_streams();
  log::set_level(log::Level::Error);  // the planner's own words about its rails
  const auto options = parse_command_line(argc, argv);
  if (!options) {
    return EXIT_SUCCESS;
  }
  return options->lists_machines ? list_machines(*options) : predict_all(*options);
}

}  // namespace
}  // namespace weft::sim

int main(int argc, char** argv) {
  try {
    return weft::sim::run(argc, argv);
  } catch (const std::exception& error) {
    static_cast<void>(std::fflush(stdout));
    weft::sim::say(error.what());
    return weft::sim::kBadInput;
  }
}
