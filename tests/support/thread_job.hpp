// A job whose PEs are threads of the test: each gets a Runtime of its own, joined by an in-process
// bootstrap. What one PE throws ends the test with its message.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/base/config.hpp"
#include "src/bootstrap/in_process.hpp"
#include "src/runtime/runtime.hpp"
#include "src/runtime/transport_kinds.hpp"

namespace weft::testing {

// The defaults, with a small heap and no variables of the environment.
[[nodiscard]] inline Config test_config() {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.heap_size = std::uint64_t{4} << 20U;
  return config;
}

// {kEmulated} in a process that has emulated NICs (loom run -- multi_tests), else nothing: values
// of suites that are to run over them.
inline constexpr const char* kEmulated = "emulated";

[[nodiscard]] inline std::vector<std::string> emulated_only() {
  const bool is_emulated = std::getenv("LOOM_PERSONA") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  return is_emulated ? std::vector<std::string>{kEmulated} : std::vector<std::string>{};
}

inline void run_pes(std::uint32_t pe_count,
                    const std::function<void(runtime::Runtime&)>& body,
                    const Config& config = test_config(),
                    std::span<const runtime::TransportKind> kinds = runtime::transport_kinds()) {
  bootstrap::InProcessGroup group(pe_count);
  std::vector<std::exception_ptr> errors(pe_count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      threads.emplace_back([&, pe] {
        try {
          runtime::Runtime runtime(config, group.take(Pe(pe)), kinds);
          body(runtime);
        } catch (...) {
          errors[pe] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

}  // namespace weft::testing
