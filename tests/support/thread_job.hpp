// A job whose PEs are threads of the test: each gets a Runtime of its own, joined by an in-process
// bootstrap. What one PE throws ends the test with its message.
#pragma once

#include <barrier>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/runtime/runtime.hpp"

namespace weft::testing {

// What the threads share: one slot each, and a barrier on either side of reading them.
struct ThreadGroup {
  explicit ThreadGroup(std::uint32_t pe_count) : slots(pe_count), barrier(pe_count) {}

  std::vector<bootstrap::Blob> slots;
  std::barrier<> barrier;
};

class ThreadBootstrap final : public bootstrap::Bootstrap {
 public:
  ThreadBootstrap(std::shared_ptr<ThreadGroup> group, Pe me) : group_(std::move(group)), me_(me) {}

  [[nodiscard]] Pe pe() const override { return me_; }

  [[nodiscard]] std::uint32_t pe_count() const override {
    return static_cast<std::uint32_t>(group_->slots.size());
  }

  [[nodiscard]] std::string_view name() const override { return "in-process"; }

  std::vector<bootstrap::Blob> allgather(std::span<const std::byte> mine) override {
    group_->slots[me_.value].assign(mine.begin(), mine.end());
    group_->barrier.arrive_and_wait();
    std::vector<bootstrap::Blob> all = group_->slots;
    group_->barrier.arrive_and_wait();
    return all;
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  Pe me_;
};

// The defaults, with a small heap and no variables of the environment.
[[nodiscard]] inline Config test_config() {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.heap_size = std::uint64_t{4} << 20U;
  return config;
}

inline void run_pes(std::uint32_t pe_count,
                    const std::function<void(runtime::Runtime&)>& body,
                    const Config& config = test_config()) {
  const auto group = std::make_shared<ThreadGroup>(pe_count);
  std::vector<std::exception_ptr> errors(pe_count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      threads.emplace_back([&, pe] {
        try {
          runtime::Runtime runtime(config, std::make_unique<ThreadBootstrap>(group, Pe(pe)));
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
