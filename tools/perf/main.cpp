// weft-perf: measures Weft through its public interface. Every PE of the job runs it; PE 0 prints.
#include <cstdio>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "tools/perf/gpu/options.hpp"
#include "tools/perf/gpu/session.hpp"
#include "tools/perf/nic_counters.hpp"
#include "tools/perf/options.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {

void run_subcommand(const Run& run) {
  switch (run.options.subcommand) {
    case Subcommand::PutBw:
    case Subcommand::GetBw:
      return run_bandwidth(run);
    case Subcommand::PutLatency:
    case Subcommand::GetLatency:
      return run_latency(run);
    case Subcommand::PutSignalRate:
      return run_put_signal_rate(run);
    case Subcommand::PutSignalPingPong:
      return run_put_signal_ping_pong(run);
    case Subcommand::AtomicLatency:
      return run_atomic_latency(run);
    case Subcommand::BarrierLatency:
      return run_barrier_latency(run);
    case Subcommand::AlltoallLatency:
      return run_alltoall_latency(run);
    case Subcommand::PagedWrite:
      return run_paged_write(run);
    case Subcommand::ColdStart:
      return run_cold_start(run);
    case Subcommand::AllGetAll:
    case Subcommand::AllPutAll:
    case Subcommand::ExchangeGet:
      return run_many_to_many(run);
    case Subcommand::MessageRate:
      return run_message_rate(run);
    case Subcommand::Alltoall:
    case Subcommand::Broadcast:
    case Subcommand::Fcollect:
    case Subcommand::Collect:
    case Subcommand::Reduction:
      return run_collective(run);
    case Subcommand::Barrier:
    case Subcommand::Sync:
      return run_barrier(run);
  }
}

namespace {

// All PEs find the same mistake; one of them says it.
void check_pe_count(const Job& job, const Options& options) {
  const SubcommandDefaults& defaults = defaults_of(options.subcommand);
  if (job.pe_count() < defaults.pe_count_min) {
    throw JobError(fmt::format("{} needs {} PEs; start it with weft-run -n {}", defaults.name,
                               defaults.pe_count_min, defaults.pe_count_min),
                   kStatusUsage);
  }
}

void run_job(const Options& options) {
  Job job(options);
  check_pe_count(job, options);
  Report report(job, options);
  if (!options.shows_counters) {
    run_subcommand({job, options, report});
    return;
  }
  NicCounters counters(job, sample_interval_of(options), options.nic_rate_bits_per_s);
  run_subcommand({job, options, report, &counters});
  const BalanceReport balance = counters.finish();
  if (!balance.nics.empty()) {
    report.balance(balance);
  }
}

void print_error(const char* sentence) {
  if (*sentence != '\0') {
    fmt::print(stderr, "weft-perf: {}\n", sentence);
  }
}

int run_main(std::span<const char* const> arguments) {
  try {
    if (gpu::is_for_gpu(arguments)) {
      if (const auto options = gpu::parse_options(arguments)) {
        gpu::run(*options);
      }
    } else if (const auto options = parse_options(arguments)) {
      run_job(*options);
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
    // Without the destructors of a library that other PEs may still talk to: the launcher ends them.
    static_cast<void>(std::fflush(nullptr));
    std::_Exit(status);
  }
  return 0;
}
