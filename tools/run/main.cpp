// weft-run: starts the PEs of a job, here, on other hosts or in a lab. README.md tells what it does;
// launcher.hpp is the place to begin reading.
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/launcher.hpp"
#include "tools/run/options.hpp"

namespace {

int run(const std::vector<std::string>& arguments) {
  bool exits = false;
  const weft::run::Options options = weft::run::parse_options(arguments, exits);
  if (exits) {
    return 0;
  }
  // Blocked before any process is started, so that none is missed.
  sigset_t signal_mask;
  const sigset_t signals = weft::run::Launcher::signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &signal_mask);
  if (options.is_agent) {
    return weft::run::run_remote_agent(signal_mask);
  }
  ::signal(SIGPIPE, SIG_IGN);
  return weft::run::Launcher(options, signal_mask).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const weft::Error& error) {
    fmt::print(stderr, "weft-run: {}\n", error.what());
    return error.status() == weft::Status::InvalidArgument ? weft::run::kStatusUsage
                                                           : weft::run::kStatusFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-run: {}\n", error.what());
    return weft::run::kStatusFailure;
  }
}
