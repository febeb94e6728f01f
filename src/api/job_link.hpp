// The process's bootstrap connection to the other PEs, used while a job starts and ends. It may outlive a runtime,
// so that a program can finalize and initialize again: launchers let a PE join only once.
//
// Threads: as Bootstrap; created and released under the lock of init and finalize.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/unique_id.hpp"

namespace weft::api {

// A non-owning bootstrap, for a runtime that wants to own one.
class BorrowedBootstrap final : public bootstrap::Bootstrap {
 public:
  explicit BorrowedBootstrap(bootstrap::Bootstrap& owned) : owned_(owned) {}

  [[nodiscard]] Pe pe() const override { return owned_.pe(); }

  [[nodiscard]] std::uint32_t pe_count() const override { return owned_.pe_count(); }

  [[nodiscard]] std::string_view name() const override { return owned_.name(); }

  std::vector<bootstrap::Blob> allgather(std::span<const std::byte> mine) override {
    return owned_.allgather(mine);
  }

  void barrier() override { owned_.barrier(); }

  void end_job(int status) override { owned_.end_job(status); }

  void follow_end() override { owned_.follow_end(); }

 private:
  bootstrap::Bootstrap& owned_;
};

// Lent to one runtime at a time; leaves the job when destroyed.
class JobLink {
 public:
  // Joins the job unless an earlier runtime has joined.
  [[nodiscard]] std::unique_ptr<bootstrap::Bootstrap> lend(const Config& config) {
    if (bootstrap_ == nullptr) {
      bootstrap_ = bootstrap::connect(config);
    }
    return std::make_unique<BorrowedBootstrap>(*bootstrap_);
  }

  // Joins the job that the program names, after leaving an earlier one.
  [[nodiscard]] std::unique_ptr<bootstrap::Bootstrap> lend(const Config& config,
                                                           const bootstrap::ExplicitJob& job) {
    leave();
    bootstrap_ = bootstrap::connect_with(config, job);
    return std::make_unique<BorrowedBootstrap>(*bootstrap_);
  }

  // The process will not join again.
  void leave() { bootstrap_.reset(); }

 private:
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;
};

}  // namespace weft::api
