#include "tests/plugins/nvshmem/run_hosts.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace weft::plugins::nvshmem {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

}  // namespace

ProcessesOptions processes_of(const HostOptions& options) {
  static const Nics loopback;
  const Nics* nics = options.nics == nullptr ? &loopback : options.nics;
  return {.pe_count = options.pe_count, .limit_s = options.limit_s, .variables = [nics](int pe) {
            return nics->variables(pe);
          }};
}

void run_hosts(const HostOptions& options, const std::function<void(FakeHost&)>& body) {
  if (options.nics != nullptr && !options.nics->why_absent().empty()) {
    GTEST_SKIP() << options.nics->why_absent();
  }
  expect_success(run_processes(processes_of(options), [&](Board& board, int pe) {
    FakeHost host(board, pe, options);
    try {
      require(host.connect() == 0, "connect_endpoints failed");
      host.start();
      body(host);
      require(!::testing::Test::HasFailure(), "expectations failed");
      if (!options.ends_itself) {
        host.end();
      }
    } catch (const std::exception& error) {
      // Without unwinding: the proxy thread may be in a call that does not end.
      board.set_failures(pe, failures_so_far() + error.what() + "\n");
      ::_exit(1);
    }
  }));
}

}  // namespace weft::plugins::nvshmem
