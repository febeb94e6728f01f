// weft-perf: measures Weft through its public interface. Every PE of the job runs it; PE 0 prints.
#include <cstdio>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "tools/perf/command_line.hpp"
#include "tools/perf/gpu/session.hpp"
#include "tools/perf/nic_counters.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {

namespace {

void run_job(const Options& options) {
  Job job(options);
  require_pes(job, options.benchmark->name, options.benchmark->pe_count_min);
  Report report(job, options);
  if (!options.shows_counters) {
    options.benchmark->run({job, options, report});
    return;
  }
  NicCounters counters(job, sample_interval_of(options), options.nic_rate_bits_per_s);
  options.benchmark->run({job, options, report, &counters});
  const BalanceReport balance = counters.finish();
  if (!balance.nics.empty()) {
    report.balance(balance);
  }
}

void print_error(const char* sentence) {
  if (*sentence != '\0') {
    // Not by fmt::print, which throws where standard error cannot be written.
    static_cast<void>(std::fputs(fmt::format("weft-perf: {}\n", sentence).c_str(), stderr));
  }
}

int run_main(std::span<const char* const> arguments) {
  try {
    const CommandLine line = parse_command_line(arguments);
    if (line.host) {
      run_job(*line.host);
    }
    if (line.gpu) {
      gpu::run(*line.gpu);
    }
    return 0;
  } catch (const JobError& error) {
    print_error(error.what());
    return error.status;
  } catch (const std::invalid_argument& error) {
    print_error(error.what());
    return kStatusUsage;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kStatusFailure;
  }
}

}  // namespace
}  // namespace weft::perf

int main(int argc, char** argv) {
  const int status = weft::perf::run_main({argv, static_cast<std::size_t>(argc)});
  if (status != 0) {
    // Without the destructors of a library that other PEs may still talk to: the launcher ends
    // them.
    static_cast<void>(std::fflush(nullptr));
    std::_Exit(status);
  }
  return 0;
}
