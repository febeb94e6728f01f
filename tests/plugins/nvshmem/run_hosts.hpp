// A test as a job of fake hosts, each in a process of its own.
//
// Threads: the only thread of the test.
#pragma once

#include <functional>

#include "tests/plugins/nvshmem/fake_host.hpp"

namespace weft::plugins::nvshmem {

// A job of such hosts: started, `body`, ended. What fails on a PE is a failure of the test.
void run_hosts(const HostOptions& options, const std::function<void(FakeHost&)>& body);

// Options of the forked processes that go with `options`.
[[nodiscard]] ProcessesOptions processes_of(const HostOptions& options);

}  // namespace weft::plugins::nvshmem
