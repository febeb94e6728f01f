// weft-run: starts the PEs of a job, here, on other hosts or in a lab. README.md tells what it
// does; launcher.hpp is the place to begin reading.
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/launcher.hpp"
#include "tools/run/options.hpp"
#include "tools/run/output.hpp"

namespace {

int run(const std::vector<std::string>& arguments) {
  bool exits = false;
  const weft::run::Options options = weft::run::parse_options(arguments, exits);
  if (exits) {
    return 0;
  }
  // Blocked before any process is started, so that none is missed.
  const weft::run::Inherited inherited = weft::run::take_over(weft::run::Launcher::signals());
  if (options.is_agent) {
    return weft::run::run_remote_agent(inherited);
  }
  return weft::run::Launcher(options, inherited).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const weft::Error& error) {
    weft::run::say_now(error.what());
    return error.status() == weft::Status::InvalidArgument ? weft::run::kStatusUsage
                                                           : weft::run::kStatusFailure;
  } catch (const std::exception& error) {
    weft::run::say_now(error.what());
    return weft::run::kStatusFailure;
  }
}
